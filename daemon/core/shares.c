#include "core/shares.h"

#include <string.h>

#include "proto/sum.h"
#include "proto/collector.h"
#include "proto/counts.h"

#define SECOND 1000000000u

bool share_add_counts(struct share *shares, const struct counts *c)
{
    bool saturated = false;
    for (uint32_t i = 0; i < c->histogram_count; i++) {
        const struct counts_histogram *h = &c->histograms[i];
        uint64_t ticks = 0, ns;
        for (uint32_t k = 0; k < h->used && !collector_is_dimension(h->dimension); k++) {
            sum_add(&ticks, c->bin_ticks[h->first + k], &saturated);
        }
        if (strcmp(h->dimension, "seconds") != 0) { /* ticks of anything else are not time */
            continue;
        }
        /* The rate is within limits.h, so that nothing else can overflow. */
        if (__builtin_mul_overflow(ticks / h->rate, (uint64_t)SECOND, &ns)) {
            saturated = true;
            ns = SUM_MAX;
        } else {
            sum_add(&ns, ticks % h->rate * SECOND / h->rate, &saturated);
        }
        sum_add(&shares[h->build].nanoseconds, ns, &saturated);
    }
    for (uint32_t i = 0; i < c->arc_count; i++) {
        if (c->to_build[i] != COUNTS_NOWHERE) {
            sum_add(&shares[c->to_build[i]].calls, c->calls[i], &saturated);
        }
    }
    return saturated;
}
