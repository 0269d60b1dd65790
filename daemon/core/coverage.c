#include "core/coverage.h"

#include <string.h>

#include "proto/sum.h"

#define COVERAGE_LONG_NS UINT64_C(50000000) /* shorter times have no tick by chance */

static uint64_t less(uint64_t a, uint64_t b)
{
    return a > b ? a - b : 0;
}

void coverage_make(const struct profile *p, struct coverage *out)
{
    memset(out, 0, sizeof *out);
    const struct counts *c = &p->counts;
    for (uint32_t i = 0; i < c->histogram_count; i++) {
        const struct counts_histogram *h = &c->histograms[i];
        for (uint32_t k = h->first; collector_is_dimension(h->dimension) && k < h->first + h->used; k++) {
            if (c->bin_index[k] >= COLLECTOR_COUNTERS_MAX) {
                continue;
            }
            uint64_t *counter = &out->counters[c->bin_index[k]];
            sum_add(counter, c->bin_ticks[k], &out->saturated);
            out->saturated |= *counter == SUM_MAX;
            out->any = true;
        }
    }
    /* Each undelivered tick counts as a whole period, although its thread may have had only a part of it. */
    const uint64_t most = less(out->counters[COLLECTOR_CPU_NS],
                               less(out->counters[COLLECTOR_SAMPLED_NS], out->counters[COLLECTOR_UNCLOCKED_NS]));
    if (out->counters[COLLECTOR_UNDELIVERED_NS] > most) {
        out->counters[COLLECTOR_UNDELIVERED_NS] = most;
    }
}

uint64_t coverage_attributed(const struct coverage *c)
{
    static const enum collector_counter LOSSES[] = {COLLECTOR_INSIDE_NS, COLLECTOR_BLOCKED_NS, COLLECTOR_DROPPED_NS,
                                                    COLLECTOR_OUTSIDE_NS};
    uint64_t left = c->counters[COLLECTOR_SAMPLED_NS];
    for (unsigned i = 0; i < sizeof LOSSES / sizeof *LOSSES; i++) {
        left -= c->counters[LOSSES[i]] < left ? c->counters[LOSSES[i]] : left;
    }
    return left;
}

bool coverage_is_recorded(const struct coverage *c)
{
    return c->counters[COLLECTOR_RECORDED] != 0 && c->counters[COLLECTOR_RECORDED] >= c->counters[COLLECTOR_PROCESSES];
}

uint64_t coverage_clocked(const struct coverage *c)
{
    return less(coverage_attributed(c), c->counters[COLLECTOR_UNCLOCKED_NS]);
}

bool coverage_share(const struct coverage *c, double *share)
{
    if (c->counters[COLLECTOR_CPU_NS] <= c->counters[COLLECTOR_INSIDE_NS]) {
        return false;
    }
    *share = (double)coverage_clocked(c) / (double)(c->counters[COLLECTOR_CPU_NS] - c->counters[COLLECTOR_INSIDE_NS]);
    return true;
}

bool coverage_overhead(const struct coverage *c, double *share)
{
    if (coverage_is_recorded(c) || c->counters[COLLECTOR_SAMPLED_NS] < c->counters[COLLECTOR_INSIDE_NS] ||
        c->counters[COLLECTOR_SAMPLED_NS] == 0 ||
        c->counters[COLLECTOR_SAMPLED_NS] < c->counters[COLLECTOR_CPU_NS] / 2) {
        return false;
    }
    *share = (double)c->counters[COLLECTOR_INSIDE_NS] / (double)c->counters[COLLECTOR_SAMPLED_NS];
    return true;
}

double coverage_per_tick(const struct coverage *c, double rate)
{
    const uint64_t *w = c->counters;
    const double ticks = (double)w[COLLECTOR_SAMPLED_NS] / 1e9 * rate;
    const double samples = (double)w[COLLECTOR_SAMPLES];
    return samples > 0 && samples < ticks ? samples / ticks : 1;
}

double coverage_samples(const struct coverage *c, const struct report *r)
{
    double rate = r->rate_count == 0 ? 0 : r->rates[0];
    return report_samples(r, (double)r->ticks + (double)c->counters[COLLECTOR_INSIDE_NS] / 1e9 * rate);
}

bool coverage_overhead_below(const struct coverage *c, const struct report *r, double *most)
{
    double share, samples = coverage_samples(c, r);
    if (!coverage_overhead(c, &share) || c->counters[COLLECTOR_INSIDE_NS] != 0 || samples < COVERAGE_SAMPLES_LEAST) {
        return false;
    }
    *most = 3 / samples;
    return true;
}

uint64_t coverage_without_ticks(const struct coverage *c)
{
    const uint64_t *w = c->counters;
    const uint64_t sampled = less(w[COLLECTOR_SAMPLED_NS], w[COLLECTOR_UNCLOCKED_NS]);
    bool lacks =
        sampled < w[COLLECTOR_CPU_NS] - w[COLLECTOR_CPU_NS] / 10 && w[COLLECTOR_CPU_NS] - sampled >= COVERAGE_LONG_NS;
    return lacks ? w[COLLECTOR_CPU_NS] - sampled : 0;
}

void coverage_add_why(struct buffer *out, const struct coverage *c)
{
    static const struct {
        enum collector_counter counter;
        const char *text;
    } CAUSES[] = {{COLLECTOR_CLOCK_OFF_NS, "the clock was off"},
                  {COLLECTOR_PAUSES, "counting was paused"},
                  {COLLECTOR_SIGPROF_FOREIGN, "the program handles SIGPROF itself"},
                  {COLLECTOR_THREADS_UNTIMED, "threads have no timer"},
                  {COLLECTOR_UNDELIVERED_NS, "threads ended before their ticks came"},
                  {COLLECTOR_KERNEL_UNSEEN, "time in the kernel was not sampled"},
                  {COLLECTOR_SAMPLES_LOST, "the kernel lost samples"}};
    const char *separator = "";
    for (size_t i = 0; i < sizeof CAUSES / sizeof *CAUSES; i++) {
        if (c->counters[CAUSES[i].counter] != 0) {
            buffer_add_text(out, separator);
            buffer_add_text(out, CAUSES[i].text);
            separator = ", ";
        }
    }
    buffer_add_text(out, separator[0] != '\0'      ? ""
                         : coverage_is_recorded(c) ? "the kernel took no samples"
                                                   : "threads block SIGPROF or still ran when their process ended");
}
