#include "core/share.h"

#include <string.h>

#include "core/sum.h"
#include "proto/collector.h"

#define SECOND 1000000000u

/* Ticks at a rate as nanoseconds, stopping at 2^63−1. rate is within limits.h, so nothing else can overflow. */
static uint64_t to_nanoseconds(uint64_t ticks, uint32_t rate, bool *saturated)
{
    uint64_t whole;
    if (__builtin_mul_overflow(ticks / rate, (uint64_t)SECOND, &whole)) {
        *saturated = true;
        return SUM_MAX;
    }
    sum_add(&whole, ticks % rate * SECOND / rate, saturated);
    return whole;
}

static void add_bins(struct share *share, const uint64_t *ticks, uint32_t n, const char *dimension, uint32_t rate,
                     bool *saturated)
{
    uint64_t sum = 0;
    if (collector_is_dimension(dimension)) {
        return;
    }
    for (uint32_t i = 0; i < n; i++) {
        sum_add(&sum, ticks[i], saturated);
    }
    if (strcmp(dimension, "seconds") == 0) { /* ticks of anything else are not time */
        sum_add(&share->nanoseconds, to_nanoseconds(sum, rate, saturated), saturated);
    }
}

bool share_add_counts(struct share *shares, const struct counts *c)
{
    bool saturated = false;
    for (uint32_t i = 0; i < c->histogram_count; i++) {
        const struct counts_histogram *h = &c->histograms[i];
        add_bins(&shares[h->build], c->bin_ticks + h->first, h->used, h->dimension, h->rate, &saturated);
    }
    for (uint32_t i = 0; i < c->arc_count; i++) {
        if (c->to_build[i] != COUNTS_NOWHERE) {
            sum_add(&shares[c->to_build[i]].calls, c->calls[i], &saturated);
        }
    }
    return saturated;
}
