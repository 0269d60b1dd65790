#include "core/report_places.h"

#include <stdlib.h>
#include <string.h>

#include "core/compare.h"
#include "proto/bins.h"

#define ROUNDING 1e-9 /* of a self time: two ways of adding the same numbers differ by less */

struct placed {
    uint32_t function;
    struct report_place place;
};

struct placing {
    const struct report *report;
    struct placed *list;
    uint32_t count, capacity;
    uint64_t bin_bytes;
};

static int placed_compare(const void *left, const void *right)
{
    const struct placed *a = left, *b = right;
    return compare_pairs(a->function, b->function, a->place.address, b->place.address);
}

/* The first function of a build, or of the ones behind it, with an address above this one. Functions ascend by build
 * and address. */
static uint32_t find_above(const struct report *r, uint32_t build, uint64_t address)
{
    uint32_t low = 0, high = r->function_count;
    while (low < high) {
        const uint32_t middle = low + (high - low) / 2;
        const struct report_function *f = &r->functions[middle];
        if (f->build < build || (f->build == build && f->address <= address)) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    return low;
}

static void add_bins(struct placing *p, struct arena *a, const struct profile_histogram *h, uint32_t build)
{
    const struct report *r = p->report;
    const struct bins bins = bins_make(h->low, h->high, h->bins);
    for (uint32_t i = 0; i < h->used; i++) {
        uint64_t low, high;
        bins_range(&bins, h->index[i], &low, &high);
        const uint32_t above = find_above(r, build, low);
        const struct report_function *f = above > 0 ? &r->functions[above - 1] : NULL;
        if (f == NULL || f->build != build || report_kind_is_class(f->kind) || high - f->address > f->size) {
            continue;
        }
        struct placed *list = arena_extend(a, p->list, p->count, &p->capacity, sizeof *list);
        p->list = list;
        list[p->count++] = (struct placed){above - 1, {low, (double)h->ticks[i] / h->rate}};
        p->bin_bytes = high - low > p->bin_bytes ? high - low : p->bin_bytes;
    }
}

/* One row for each function and address. */
static void join_rows(struct placing *p)
{
    uint32_t n = 0;
    if (p->count > 0) {
        qsort(p->list, p->count, sizeof *p->list, placed_compare);
    }
    for (uint32_t i = 0; i < p->count; i++) {
        if (n > 0 && placed_compare(&p->list[n - 1], &p->list[i]) == 0) {
            p->list[n - 1].place.seconds += p->list[i].place.seconds;
        } else {
            p->list[n++] = p->list[i];
        }
    }
    p->count = n;
}

/* Writes the places of one function, list[begin … end), to out and returns how many. A function inside another one may
 * own bytes of it: then the bins say more than its self time, and it has no places. */
static uint32_t take_rows(const struct placing *p, uint32_t begin, uint32_t end, double self, struct report_place *out)
{
    double sum = 0;
    for (uint32_t i = begin; i < end; i++) {
        sum += p->list[i].place.seconds;
    }
    if (!(self > 0) || !(sum > 0) || (!p->report->time_measured && sum > self * (1 + ROUNDING))) {
        return 0;
    }
    for (uint32_t i = begin; i < end; i++) {
        out[i - begin] = p->list[i].place;
        out[i - begin].seconds *= p->report->time_measured ? self / sum : 1;
    }
    return end - begin;
}

void report_places_make(struct arena *a, const struct report *report, const struct profile *profile,
                        struct report_places *out)
{
    struct placing p = {.report = report};
    for (uint32_t i = 0; profile != NULL && i < profile->histogram_count; i++) {
        const struct profile_histogram *h = &profile->histograms[i];
        uint32_t build = 0;
        while (build < report->build_count && strcmp(report->builds[build], profile->builds[h->build]) != 0) {
            build++;
        }
        if (build < report->build_count && strcmp(h->dimension, report->dimension) == 0) {
            add_bins(&p, a, h, build);
        }
    }
    join_rows(&p);
    uint32_t *first = ARENA_ARRAY(a, (size_t)report->function_count + 1, uint32_t), n = 0, at = 0;
    struct report_place *list = ARENA_ARRAY(a, (size_t)p.count + 1, struct report_place);
    for (uint32_t i = 0; i < report->function_count; i++) {
        const uint32_t begin = at;
        while (at < p.count && p.list[at].function == i) {
            at++;
        }
        first[i] = n;
        n += take_rows(&p, begin, at, report->functions[i].self, list + n);
    }
    first[report->function_count] = n;
    *out = (struct report_places){.first = first, .list = list, .bin_bytes = n > 0 ? p.bin_bytes : 0};
}
