/* What grows keeps what it had, in its order, and gains exactly what came: against looking for every row from end to
 * end. */
#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>

#include "core/counts_merge.h"

static unsigned pick(unsigned n)
{
    return (unsigned)rand() % n;
}

/* Arcs and histograms of which a small room makes many alike. */
static void make_counts(struct counts *c, unsigned arcs, unsigned histograms, unsigned capacity)
{
    struct profd_error e;
    uint32_t n = 0;
    cr_assert_eq(counts_init(c, histograms, histograms * 20, arcs, &e), PROFD_OK);
    for (uint32_t i = 0; i < arcs; i++) {
        c->from_build[i] = pick(3) ? pick(2) : COUNTS_NOWHERE;
        c->to_build[i] = pick(2);
        c->from[i] = pick(capacity);
        c->to[i] = pick(capacity);
        c->calls[i] = pick(20) ? pick(1000) : INT64_MAX - pick(2000);
    }
    for (uint32_t i = 0; i < histograms; i++) {
        struct counts_histogram *h = &c->histograms[i];
        *h = (struct counts_histogram){.build = pick(2),
                                       .bins = 64 + 64 * pick(2),
                                       .low = 0x1000,
                                       .high = 0x2000 + 0x1000 * pick(2),
                                       .rate = 100 + pick(2),
                                       .dimension = "seconds",
                                       .abbreviation = 's',
                                       .first = n};
        h->dimension[6] = pick(4) ? 's' : '\0';
        for (uint32_t bin = pick(10); bin < h->bins && h->used < 20; bin += 1 + pick(8), n++, h->used++) {
            c->bin_index[n] = bin;
            c->bin_ticks[n] = 1 + pick(100);
        }
    }
    c->bin_count = n;
}

static bool same_arc(const struct counts *a, uint32_t i, const struct counts *b, uint32_t k)
{
    return a->from[i] == b->from[k] && a->to[i] == b->to[k] && a->from_build[i] == b->from_build[k] &&
           a->to_build[i] == b->to_build[k];
}

static bool same_histogram(const struct counts_histogram *a, const struct counts_histogram *b)
{
    return a->build == b->build && a->bins == b->bins && a->low == b->low && a->high == b->high && a->rate == b->rate &&
           a->abbreviation == b->abbreviation && strcmp(a->dimension, b->dimension) == 0;
}

static uint64_t add(uint64_t a, uint64_t b, bool *full)
{
    *full |= a > (uint64_t)INT64_MAX - b;
    return a > (uint64_t)INT64_MAX - b ? (uint64_t)INT64_MAX : a + b;
}

static void check_arcs(const struct counts *old, const struct counts *more, const struct counts *sum, bool *full)
{
    struct counts naive;
    struct profd_error e;
    uint32_t n = old->arc_count;
    cr_assert_eq(counts_init(&naive, 0, 0, n + more->arc_count, &e), PROFD_OK);
    for (uint32_t i = 0; i < old->arc_count + more->arc_count; i++) {
        const struct counts *from = i < old->arc_count ? old : more;
        uint32_t at = i < old->arc_count ? i : i - old->arc_count, k = 0;
        while (from == more && k < n && !same_arc(&naive, k, more, at)) {
            k++;
        }
        if (from == old || k == n) {
            k = from == old ? i : n++;
            naive.from_build[k] = from->from_build[at];
            naive.to_build[k] = from->to_build[at];
            naive.from[k] = from->from[at];
            naive.to[k] = from->to[at];
        }
        naive.calls[k] = add(naive.calls[k], from->calls[at], full);
    }
    cr_assert_eq(sum->arc_count, n);
    for (uint32_t i = 0; i < n; i++) {
        cr_assert(same_arc(&naive, i, sum, i) && naive.calls[i] == sum->calls[i], "arc %u", i);
    }
    counts_done(&naive);
}

/* Ticks of a bin in all histograms like h. */
static uint64_t ticks_of(const struct counts *c, const struct counts_histogram *h, uint32_t bin)
{
    uint64_t sum = 0;
    for (uint32_t i = 0; i < c->histogram_count; i++) {
        for (uint32_t k = c->histograms[i].first; k < c->histograms[i].first + c->histograms[i].used; k++) {
            if (c->bin_index[k] == bin && same_histogram(&c->histograms[i], h)) {
                sum += c->bin_ticks[k];
            }
        }
    }
    return sum;
}

static void check_bins(const struct counts *old, const struct counts *more, const struct counts *sum)
{
    uint64_t all[3] = {0};
    cr_assert_geq(sum->histogram_count, old->histogram_count);
    for (uint32_t i = 0; i < sum->histogram_count; i++) {
        const struct counts_histogram *h = &sum->histograms[i];
        cr_assert(i >= old->histogram_count || same_histogram(h, &old->histograms[i]), "histogram %u has moved", i);
        for (uint32_t k = i + 1; k < sum->histogram_count && i >= old->histogram_count; k++) {
            cr_assert_not(same_histogram(h, &sum->histograms[k]), "a new one stands twice");
        }
        for (uint32_t bin = 0; bin < h->bins; bin++) {
            cr_assert_eq(ticks_of(sum, h, bin), ticks_of(old, h, bin) + ticks_of(more, h, bin), "bin %u", bin);
        }
    }
    const struct counts *three[] = {old, more, sum};
    for (int c = 0; c < 3; c++) {
        for (uint32_t k = 0; k < three[c]->bin_count; k++) {
            all[c] += three[c]->bin_ticks[k];
        }
    }
    cr_assert_eq(all[2], all[0] + all[1]);
}

Test(core_counts_merge, gains_exactly_what_came)
{
    struct arena *a = arena_new(0);
    struct profd_error e;
    for (unsigned seed = 1; seed <= 1500; seed++) {
        struct counts old, more, sum;
        uint8_t *bytes;
        size_t size;
        bool saturated = false, full = false;
        srand(seed);
        unsigned capacity = 1 + pick(seed % 50 == 0 ? 1000 : 12), most = seed % 50 == 0 ? 1500 : 40;
        make_counts(&old, pick(most), pick(5), capacity);
        make_counts(&more, pick(most), pick(5), capacity);
        cr_assert_eq(counts_merge(a, &old, &more, &sum, &saturated, &e), PROFD_OK, "%s", e.sentence);
        check_arcs(&old, &more, &sum, &full);
        check_bins(&old, &more, &sum);
        cr_assert_eq(saturated, full, "seed %u", seed);
        cr_assert_eq(counts_encode(&sum, &bytes, &size, &e), PROFD_OK, "seed %u: %s", seed, e.sentence);
        free(bytes);
        counts_done(&old);
        counts_done(&more);
        counts_done(&sum);
    }
    arena_free(a);
}
