#include "compat/compat_hist.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

/* Records of one range. */
struct group {
    uint64_t low, high;
    uint32_t records; /* how many */
    uint32_t last;    /* latest record of the group; its other records are found by its range */
    uint32_t size;    /* bins of the first record */
    uint64_t bins;    /* non-zero bins of all its records */
};

static double record_scale(const struct counts_histogram *h)
{
    return (double)((h->high - h->low) / 2) / h->bins;
}

static enum profd_status record_check(const struct counts_histogram *first, const struct counts_histogram *h,
                                      struct profd_error *e)
{
    if (strncmp(first->dimension, h->dimension, 15) != 0) {
        return profd_error_set(e, PROFD_CONFLICT, "dimension unit changed between histogram records: %.15s, then %.15s",
                               first->dimension, h->dimension);
    }
    if (first->abbreviation != h->abbreviation) {
        return profd_error_set(e, PROFD_CONFLICT,
                               "dimension abbreviation changed between histogram records: %c, then %c",
                               first->abbreviation, h->abbreviation);
    }
    if (fabs(record_scale(first) - record_scale(h)) > 0.000001) {
        return profd_error_set(e, PROFD_CONFLICT, "different scales in histogram records: %.9g, then %.9g bytes a bin",
                               2 * record_scale(first), 2 * record_scale(h));
    }
    return PROFD_OK;
}

static enum profd_status group_add(struct group *groups, uint32_t *count, const struct counts_histogram *h,
                                   uint32_t record, struct profd_error *e)
{
    const struct group *met = NULL;
    for (uint32_t i = 0; i < *count; i++) {
        struct group *g = &groups[i];
        if (g->low == h->low && g->high == h->high) {
            g->records++;
            g->last = record;
            g->bins += h->used;
            return PROFD_OK;
        }
        if (h->low >= g->high || g->low >= h->high || h->low >= h->high || g->low >= g->high) {
            continue;
        }
        met = met == NULL ? g : met;
    }
    if (met != NULL) {
        return profd_error_set(e, PROFD_CONFLICT,
                               "overlapping histogram records: 0x%" PRIx64 " to 0x%" PRIx64 ", then 0x%" PRIx64
                               " to 0x%" PRIx64,
                               met->low, met->high, h->low, h->high);
    }
    groups[(*count)++] = (struct group){h->low, h->high, 1, record, h->bins, h->used};
    return PROFD_OK;
}

/* Bins of a group: ascending, not zero. */
struct bins {
    uint64_t count;
    const uint32_t *index;
    const uint64_t *ticks;
};

/* Stable sort of the pairs by index in three passes of 11 bits. */
static void pairs_sort(uint32_t *index[2], uint64_t *ticks[2], uint64_t n)
{
    for (unsigned shift = 0; shift < 33; shift += 11) {
        uint64_t place[2048] = {0}, sum = 0;
        for (uint64_t i = 0; i < n; i++) {
            place[index[0][i] >> shift & 2047]++;
        }
        for (unsigned d = 0; d < 2048; d++) {
            uint64_t here = place[d];
            place[d] = sum;
            sum += here;
        }
        for (uint64_t i = 0; i < n; i++) {
            uint64_t to = place[index[0][i] >> shift & 2047]++;
            index[1][to] = index[0][i];
            ticks[1][to] = ticks[0][i];
        }
        uint32_t *swap_index = index[0];
        uint64_t *swap_ticks = ticks[0];
        index[0] = index[1], index[1] = swap_index;
        ticks[0] = ticks[1], ticks[1] = swap_ticks;
    }
}

static uint64_t pairs_add_up(uint32_t *index, uint64_t *ticks, uint64_t n)
{
    uint64_t kept = 0;
    for (uint64_t i = 0; i < n; i++) {
        if (kept > 0 && index[kept - 1] == index[i]) {
            uint64_t *sum = &ticks[kept - 1];
            *sum = *sum > UINT64_MAX - ticks[i] ? UINT64_MAX : *sum + ticks[i];
        } else {
            index[kept] = index[i];
            ticks[kept++] = ticks[i];
        }
    }
    return kept;
}

static enum profd_status group_bins(const struct counts *c, const struct group *g, struct arena *a, struct bins *out)
{
    const struct counts_histogram *only = &c->histograms[g->last];
    if (g->records == 1) {
        *out = (struct bins){only->used, c->bin_index + only->first, c->bin_ticks + only->first};
        return PROFD_OK;
    }
    uint32_t *index[2];
    uint64_t *ticks[2];
    for (unsigned i = 0; i < 2; i++) {
        index[i] = ARENA_ARRAY(a, g->bins + 1, uint32_t);
        ticks[i] = ARENA_ARRAY(a, g->bins + 1, uint64_t);
        if (index[i] == NULL || ticks[i] == NULL) {
            return PROFD_NO_MEMORY;
        }
    }
    uint64_t n = 0;
    for (uint32_t i = 0; i < c->histogram_count; i++) {
        const struct counts_histogram *h = &c->histograms[i];
        if (h->low != g->low || h->high != g->high) {
            continue;
        }
        for (uint32_t j = h->first; j < h->first + h->used; j++, n++) {
            index[0][n] = c->bin_index[j];
            ticks[0][n] = c->bin_ticks[j];
        }
    }
    pairs_sort(index, ticks, n);
    n = pairs_add_up(index[0], ticks[0], n);
    *out = (struct bins){n, index[0], ticks[0]};
    return PROFD_OK;
}

static uint64_t max_u64(uint64_t a, uint64_t b)
{
    return a > b ? a : b;
}

static uint64_t min_u64(uint64_t a, uint64_t b)
{
    return a < b ? a : b;
}

/* gprof gives the last symbol no end, so it gets no ticks (rule S8). */
static void bins_apportion(const struct bins *b, uint64_t low_pc, const struct compat_symbols *s,
                           const struct compat_filter *f, struct compat_hist *h)
{
    uint64_t low = low_pc / 2;
    uint32_t first = 0; /* symbols before it end before the current bin */
    for (uint64_t i = 0; i < b->count; i++) {
        if (b->ticks[i] == 0) {
            continue;
        }
        double ticks = (double)b->ticks[i];
        h->total += ticks;
        if (isnan(h->scale)) { /* the first record is empty and has no bins: gprof's bins then are behind all symbols */
            continue;
        }
        uint64_t bin_low = low + (uint64_t)(h->scale * (double)b->index[i]);
        uint64_t bin_high = low + (uint64_t)(h->scale * (double)((uint64_t)b->index[i] + 1));
        for (uint32_t j = first; j + 1 < s->count && s->address[j] / 2 <= bin_high; j++) {
            uint64_t start = s->address[j] / 2, stop = s->address[j + 1] / 2;
            if (bin_low >= stop) {
                first = j + 1;
                continue;
            }
            uint64_t overlap = min_u64(bin_high, stop) - max_u64(bin_low, start);
            if (overlap == 0) {
                continue;
            }
            double credit = (double)overlap * ticks / h->scale;
            if (compat_filter_on(f, COMPAT_FLAT, j)) {
                h->time[j] += credit;
            } else {
                h->total -= credit;
            }
        }
    }
}

enum profd_status compat_hist_assign(const struct counts *c, const struct compat_symbols *s,
                                     const struct compat_filter *f, struct arena *a, struct compat_hist *out,
                                     struct profd_error *e)
{
    struct compat_hist h = {.time = ARENA_ARRAY(a, s->count, double)};
    struct group *groups = ARENA_ARRAY(a, (size_t)c->histogram_count + 1, struct group);
    if (h.time == NULL || groups == NULL) {
        return profd_error_set(e, PROFD_NO_MEMORY, "no memory for the times of %u symbols", s->count);
    }
    uint32_t count = 0;
    for (uint32_t i = 0; i < c->histogram_count; i++) {
        enum profd_status status = record_check(&c->histograms[0], &c->histograms[i], e);
        if (status == PROFD_OK) {
            status = group_add(groups, &count, &c->histograms[i], i, e);
        }
        if (status != PROFD_OK) {
            return status;
        }
    }
    h.ranges = ARENA_ARRAY(a, (size_t)count + 1, struct compat_hist_range);
    if (h.ranges == NULL) {
        return profd_error_set(e, PROFD_NO_MEMORY, "no memory for %u histograms", count);
    }
    if (count > 0) {
        const struct counts_histogram *first = &c->histograms[0];
        h.scale = record_scale(first);
        h.rate = first->rate;
        memcpy(h.dimension, first->dimension, 15);
        h.abbreviation = first->abbreviation;
    }
    for (uint32_t i = 0; i < count; i++) {
        struct bins b;
        if (group_bins(c, &groups[i], a, &b) != PROFD_OK) {
            return profd_error_set(e, PROFD_NO_MEMORY, "no memory for %" PRIu64 " bins", groups[i].bins);
        }
        const struct group *g = &groups[i];
        h.ranges[h.range_count++] = (struct compat_hist_range){g->low, g->high, g->size, b.count, b.index, b.ticks};
        bins_apportion(&b, g->low, s, f, &h);
    }
    *out = h;
    return PROFD_OK;
}
