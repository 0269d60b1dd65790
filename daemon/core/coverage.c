#include "core/coverage.h"

#include <string.h>

#include "core/sum.h"

#define COVERAGE_LONG_NS UINT64_C(50000000) /* shorter times have no tick by chance */

void coverage_make(const struct profile *p, struct coverage *out)
{
    memset(out, 0, sizeof *out);
    for (uint32_t i = 0; i < p->histogram_count; i++) {
        const struct profile_histogram *h = &p->histograms[i];
        for (uint32_t k = 0; collector_is_dimension(h->dimension) && k < h->used; k++) {
            if (h->index[k] >= COLLECTOR_COUNTERS_MAX) {
                continue;
            }
            uint64_t *counter = &out->counters[h->index[k]];
            sum_add(counter, h->ticks[k], &out->saturated);
            out->saturated |= *counter == SUM_MAX;
            out->any = true;
        }
    }
}

uint64_t coverage_attributed(const struct coverage *c)
{
    static const enum collector_counter LOSSES[] = {COLLECTOR_INSIDE_NS, COLLECTOR_BLOCKED_NS, COLLECTOR_DROPPED_NS,
                                                    COLLECTOR_OUTSIDE_NS};
    bool saturated = false;
    uint64_t left = c->counters[COLLECTOR_SAMPLED_NS];
    sum_add(&left, c->counters[COLLECTOR_WALL_NS], &saturated);
    for (unsigned i = 0; i < sizeof LOSSES / sizeof *LOSSES; i++) {
        left -= c->counters[LOSSES[i]] < left ? c->counters[LOSSES[i]] : left;
    }
    return left;
}

bool coverage_share(const struct coverage *c, double *share)
{
    if (c->counters[COLLECTOR_WALL_NS] != 0 || c->counters[COLLECTOR_CPU_NS] <= c->counters[COLLECTOR_INSIDE_NS]) {
        return false;
    }
    *share =
        (double)coverage_attributed(c) / (double)(c->counters[COLLECTOR_CPU_NS] - c->counters[COLLECTOR_INSIDE_NS]);
    return true;
}

bool coverage_overhead(const struct coverage *c, double *share)
{
    if (c->counters[COLLECTOR_WALL_NS] != 0 || c->counters[COLLECTOR_SAMPLED_NS] < c->counters[COLLECTOR_INSIDE_NS] ||
        c->counters[COLLECTOR_SAMPLED_NS] == 0 ||
        c->counters[COLLECTOR_SAMPLED_NS] < c->counters[COLLECTOR_CPU_NS] / 2) {
        return false;
    }
    *share = (double)c->counters[COLLECTOR_INSIDE_NS] / (double)c->counters[COLLECTOR_SAMPLED_NS];
    return true;
}

bool coverage_lacks_ticks(const struct coverage *c)
{
    const uint64_t *w = c->counters;
    return w[COLLECTOR_WALL_NS] == 0 && w[COLLECTOR_SAMPLED_NS] < w[COLLECTOR_CPU_NS] - w[COLLECTOR_CPU_NS] / 10 &&
           w[COLLECTOR_CPU_NS] - w[COLLECTOR_SAMPLED_NS] >= COVERAGE_LONG_NS;
}
