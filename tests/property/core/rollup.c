/* Laws of sums: any order, any sharding, uploads and rollups mixed give the same bytes, and they say what
 * sorting all rows gives. */
#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>

#include "core/profile.h"
#include "core/rollup.h"
#include "proto/sum.h"
#include "proto/collector.h"
#include "proto/limits.h"
#include "tests/profile_sum.h"
#include "tests/rounds.h"

#define UPLOADS 24
#define BUILDS 5

static uint64_t state;

static uint64_t roll(void)
{
    state = state * 6364136223846793005u + 1442695040888963407u;
    return state >> 33 ^ state << 31 >> 40;
}

static uint32_t below(uint32_t n)
{
    return (uint32_t)(roll() >> 3) % n;
}

struct sample {
    struct counts counts;
    uint64_t commit;
    uint32_t group;
};

static uint64_t random_count(unsigned kind)
{
    switch (below(kind == 3 ? 3 : 8)) {
    case 0:
        return kind == 3 ? SUM_MAX - below(3) : 0;
    case 1:
        return roll() << below(30);
    default:
        return 1 + below(300);
    }
}

static uint32_t random_build(void)
{
    return below(12) == 0 ? COUNTS_NOWHERE : below(BUILDS);
}

static void random_histogram(struct counts *c, uint32_t at, uint32_t *first, unsigned kind)
{
    static const char *const DIMENSIONS[] = {"seconds", "", "page faults"};
    struct counts_histogram *h = &c->histograms[at];
    h->build = below(BUILDS);
    h->low = 0x1000 * (uint64_t)below(3);
    h->bins = 1 + below(2) * 4999;
    h->high = h->low + 4 * (uint64_t)h->bins;
    h->rate = below(3) == 0 ? 1000 : 100;
    const char *dimension = DIMENSIONS[below(8) < 6 ? 0 : below(3)];
    memcpy(h->dimension, dimension, strlen(dimension));
    h->abbreviation = below(9) == 0 ? '\x7e' : 's';
    h->first = *first;
    uint32_t bin = below(h->bins);
    for (uint32_t most = below(12); most > 0 && bin < h->bins && *first < c->bin_count; most--) {
        uint64_t ticks = random_count(kind);
        c->bin_index[*first] = bin;
        c->bin_ticks[(*first)++] = ticks == 0 ? 1 : ticks;
        h->used++;
        bin += 1 + below(40);
    }
}

/* What a collector knows beside: in every third upload, of the program, which is build 0; often near the largest
 * number. */
static void random_words(struct counts *c, uint32_t *first)
{
    struct counts_histogram *h = &c->histograms[c->histogram_count];
    if (below(3) != 0) {
        return;
    }
    collector_make_histogram(h, 0);
    h->first = *first;
    for (uint32_t word = below(9); word < COLLECTOR_COUNTERS_MAX && h->used < 12; word += 1 + below(9), h->used++) {
        c->bin_index[*first] = word;
        c->bin_ticks[(*first)++] = 1 + random_count(below(2) == 0 ? 3 : 0);
    }
    c->histogram_count++;
}

/* kind 0: few keys that repeat; 1: many; 2: none at all now and then; 3: numbers near the largest. */
static void random_upload(struct sample *u, uint64_t commit, unsigned kind)
{
    uint32_t histograms = below(4), arcs = kind == 1 ? below(9000) : kind == 2 ? below(2) * below(50) : below(60);
    cr_assert_eq(counts_init(&u->counts, histograms + 1, (histograms + 1) * 12, arcs, NULL), PROFD_OK);
    struct counts *c = &u->counts;
    uint32_t first = 0, spread = kind == 1 ? 1000000 : 40;
    for (uint32_t i = 0; i < histograms; i++) {
        random_histogram(c, i, &first, kind);
    }
    c->histogram_count = histograms;
    random_words(c, &first);
    c->bin_count = first;
    for (uint32_t i = 0; i < arcs; i++) {
        c->from_build[i] = random_build();
        c->to_build[i] = random_build();
        c->from[i] = below(50) == 0 ? UINT64_MAX - below(2) : 0x400000 + below(spread);
        c->to[i] = below(50) == 0 ? 0 : 0x400000 + 16 * (uint64_t)below(spread / 8);
        c->calls[i] = random_count(kind);
    }
    u->commit = commit;
    u->group = kind == 2 ? 7 : below(COUNTS_GROUPS);
}

/* Some rows of an earlier upload, in another order and with other numbers: one sum has all keys of the other. */
static void random_repeat(struct sample *u, const struct sample *of, uint64_t commit, unsigned kind)
{
    const struct counts *from = &of->counts;
    uint32_t bins = 0, arcs = 0;
    const bool all = below(2) == 0;
    cr_assert_eq(counts_init(&u->counts, from->histogram_count, from->bin_count, from->arc_count, NULL), PROFD_OK);
    struct counts *c = &u->counts;
    for (uint32_t i = 0; i < from->histogram_count; i++) {
        struct counts_histogram *h = &c->histograms[i];
        *h = from->histograms[i];
        h->first = bins;
        for (uint32_t k = from->histograms[i].first; k < from->histograms[i].first + from->histograms[i].used; k++) {
            if (all || below(3) != 0) {
                c->bin_index[bins] = from->bin_index[k];
                c->bin_ticks[bins++] = 1 + random_count(kind) % SUM_MAX;
            }
        }
        h->used = bins - h->first;
    }
    for (uint32_t i = from->arc_count; i > 0; i--) {
        if (all || below(3) != 0) {
            c->from_build[arcs] = from->from_build[i - 1];
            c->to_build[arcs] = from->to_build[i - 1];
            c->from[arcs] = from->from[i - 1];
            c->to[arcs] = from->to[i - 1];
            c->calls[arcs++] = random_count(kind);
        }
    }
    c->bin_count = bins;
    c->arc_count = arcs;
    u->commit = commit;
    u->group = below(COUNTS_GROUPS);
}

struct bytes {
    uint8_t *counts, *spread;
    size_t counts_size, spread_size;
};

static void bytes_done(struct bytes *b)
{
    free(b->counts);
    free(b->spread);
}

static struct bytes finish(struct rollup_sum *s)
{
    struct counts r;
    struct counts_shares spread;
    struct bytes b;
    struct profd_error e = {""};
    cr_assert_eq(rollup_sum_finish(s, &r, &spread, &e), PROFD_OK, "%s", e.sentence);
    cr_assert_eq(counts_encode(&r, &b.counts, &b.counts_size, &e), PROFD_OK, "%s", e.sentence);
    cr_assert_eq(counts_encode_shares(&r, &spread, &b.spread, &b.spread_size, &e), PROFD_OK, "%s", e.sentence);
    return b;
}

static void add_bytes(struct rollup_sum *s, struct arena *a, const struct bytes *b)
{
    struct counts r;
    struct counts_shares spread;
    struct profd_error e = {""};
    cr_assert_eq(rollup_decode(a, b->counts, b->counts_size, BUILDS, false, &r, &e), PROFD_OK, "%s", e.sentence);
    cr_assert_eq(rollup_decode_spread(a, &r, b->spread, b->spread_size, &spread, &e), PROFD_OK, "%s", e.sentence);
    cr_assert_eq(rollup_sum_add(s, &r, &spread, &e), PROFD_OK, "%s", e.sentence);
}

static void cr_same(const struct bytes *x, const struct bytes *y)
{
    cr_assert(x->counts_size == y->counts_size && memcmp(x->counts, y->counts, x->counts_size) == 0);
    cr_assert(x->spread_size == y->spread_size && memcmp(x->spread, y->spread, x->spread_size) == 0);
}

static struct bytes sum_uploads(const struct sample *u, const uint32_t *order, uint32_t n)
{
    struct arena *a = arena_new(0);
    struct rollup_sum *s = rollup_sum_new(a, ROLLUP_ALL);
    for (uint32_t i = 0; i < n; i++) {
        cr_assert_eq(rollup_sum_add_upload(s, &u[order[i]].counts, u[order[i]].commit, u[order[i]].group, NULL),
                     PROFD_OK);
    }
    struct bytes b = finish(s);
    arena_free(a);
    return b;
}

/* The uploads dealt to shards, some of which become rollups; a tree of sums over them in any order. */
static struct bytes sum_shards(const struct sample *u, const uint32_t *order, uint32_t n)
{
    struct bytes shards[UPLOADS];
    uint32_t count = 0;
    struct arena *a = arena_new(0);
    struct rollup_sum *whole = rollup_sum_new(a, ROLLUP_ALL);
    for (uint32_t i = 0; i < n;) {
        uint32_t length = 1 + below(5);
        length = length > n - i ? n - i : length;
        if (below(3) == 0) {
            for (uint32_t k = i; k < i + length; k++) {
                cr_assert_eq(
                    rollup_sum_add_upload(whole, &u[order[k]].counts, u[order[k]].commit, u[order[k]].group, NULL),
                    PROFD_OK);
            }
        } else {
            shards[count++] = sum_uploads(u, order + i, length);
        }
        i += length;
    }
    while (count > 0) { /* two rollups become one now and then */
        uint32_t pick = below(count);
        struct bytes b = shards[pick];
        shards[pick] = shards[--count];
        if (count > 0 && below(2) == 0) {
            struct rollup_sum *pair = rollup_sum_new(a, ROLLUP_ALL);
            add_bytes(pair, a, &b);
            add_bytes(pair, a, &shards[0]);
            struct bytes joined = finish(pair);
            bytes_done(&shards[0]);
            shards[0] = joined;
        } else {
            add_bytes(whole, a, &b);
        }
        bytes_done(&b);
    }
    struct bytes b = finish(whole);
    arena_free(a);
    return b;
}

static void shuffle(uint32_t *order, uint32_t n)
{
    for (uint32_t i = 0; i < n; i++) {
        order[i] = i;
    }
    for (uint32_t i = n; i > 1; i--) {
        uint32_t j = below(i), other = order[j];
        order[j] = order[i - 1];
        order[i - 1] = other;
    }
}

static struct profile *add_up(const struct sample *u, uint32_t n, struct arena *a)
{
    struct profile_sum *s = profile_sum_new(a);
    struct profile *p = NULL;
    uint32_t map[BUILDS];
    for (uint32_t i = 0; i < BUILDS; i++) {
        map[i] = profile_sum_build(s, (const char[]){(char)('a' + i), '\0'});
    }
    for (uint32_t i = 0; i < n; i++) {
        profile_sum_add(s, &u[i].counts, map, u[i].commit);
    }
    cr_assert_eq(profile_sum_finish(s, &p, NULL), PROFD_OK);
    return p;
}

static void cr_same_histogram(const struct counts *p, const struct counts_histogram *h, const struct counts *r,
                              const struct counts_histogram *g)
{
    cr_assert(h->build == g->build && h->low == g->low && h->high == g->high && h->bins == g->bins &&
              h->rate == g->rate && h->used == g->used &&
              memcmp(h->dimension, g->dimension, sizeof h->dimension) == 0 && h->abbreviation == g->abbreviation &&
              h->order.commit == g->order.commit && h->order.rank == g->order.rank);
    for (uint32_t k = 0; k < h->used; k++) {
        cr_assert(p->bin_index[h->first + k] == r->bin_index[g->first + k] &&
                  p->bin_ticks[h->first + k] == r->bin_ticks[g->first + k]);
    }
}

static void cr_same_as_profile(const struct bytes *b, const struct sample *u, uint32_t n)
{
    struct arena *a = arena_new(0);
    struct counts r;
    uint64_t ticks, calls;
    const struct profile *profile = add_up(u, n, a);
    const struct counts *p = &profile->counts;
    cr_assert_eq(rollup_decode(a, b->counts, b->counts_size, BUILDS, false, &r, NULL), PROFD_OK);
    counts_totals(&r, &ticks, &calls);
    cr_assert(profile->ticks == ticks && profile->calls == calls && p->saturated == r.saturated);
    cr_assert(p->arc_count == r.arc_count && p->histogram_count == r.histogram_count);
    for (uint32_t i = 0; i < p->arc_count; i++) {
        cr_assert(p->from_build[i] == r.from_build[i] && p->to_build[i] == r.to_build[i] && p->from[i] == r.from[i] &&
                  p->to[i] == r.to[i] && p->calls[i] == r.calls[i] && p->commit[i] == r.commit[i] &&
                  p->rank[i] == r.rank[i]);
    }
    for (uint32_t i = 0; i < p->histogram_count; i++) {
        cr_same_histogram(p, &p->histograms[i], &r, &r.histograms[i]);
    }
    struct counts arcs;
    cr_assert_eq(rollup_decode(a, b->counts, b->counts_size, BUILDS, true, &arcs, NULL), PROFD_OK);
    cr_assert(arcs.arc_count == r.arc_count && arcs.bin_count == 0 && arcs.histogram_count == 0);
    cr_assert(r.arc_count == 0 || memcmp(arcs.calls, r.calls, r.arc_count * sizeof *r.calls) == 0);
    arena_free(a);
}

/* Each group's column is the sum of that group's uploads alone. */
static void cr_same_groups(const struct bytes *b, const struct sample *u, uint32_t n)
{
    struct arena *a = arena_new(0);
    struct counts r;
    struct counts_shares spread;
    cr_assert_eq(rollup_decode(a, b->counts, b->counts_size, BUILDS, false, &r, NULL), PROFD_OK);
    cr_assert_eq(rollup_decode_spread(a, &r, b->spread, b->spread_size, &spread, NULL), PROFD_OK);
    for (uint32_t g = 0; g < COUNTS_GROUPS; g++) {
        struct sample of[UPLOADS];
        uint32_t count = 0, at = 0;
        for (uint32_t i = 0; i < n; i++) {
            if (u[i].group == g) {
                of[count++] = u[i];
            }
        }
        const struct profile *profile = add_up(of, count, a);
        const struct counts *p = &profile->counts;
        for (uint32_t i = 0; i < r.arc_count; i++) {
            bool here = at < p->arc_count && p->from[at] == r.from[i] && p->to[at] == r.to[i] &&
                        p->from_build[at] == r.from_build[i] && p->to_build[at] == r.to_build[i];
            cr_assert_eq(spread.arcs[(size_t)i * COUNTS_GROUPS + g], here ? p->calls[at] : 0);
            at += here;
        }
        cr_assert_eq(at, p->arc_count);
        uint64_t ticks = 0;
        bool saturated = false;
        for (uint32_t i = 0; i < r.histogram_count; i++) {
            for (uint32_t k = 0; k < r.histograms[i].used && !collector_is_dimension(r.histograms[i].dimension); k++) {
                sum_add(&ticks, spread.bins[(size_t)(r.histograms[i].first + k) * COUNTS_GROUPS + g], &saturated);
            }
        }
        cr_assert_eq(ticks, profile->ticks);
    }
    arena_free(a);
}

Test(rollup, any_order_and_sharding_gives_the_same_bytes)
{
    for (uint32_t round = 0; round < rounds(100); round++) {
        struct sample u[UPLOADS] = {0};
        uint32_t order[UPLOADS], n = below(UPLOADS + 1);
        unsigned kind = round % 30 == 1 ? 1 : round % 4 == 1 ? 0 : round % 4;
        bool repeats = round % 3 == 0;
        state = 77 + round;
        for (uint32_t i = 0; i < n; i++) {
            if (repeats && i > 0 && below(4) != 0) {
                random_repeat(&u[i], &u[below(i)], 1000 + 7 * (uint64_t)i, kind);
            } else {
                random_upload(&u[i], 1000 + 7 * (uint64_t)i, kind);
            }
        }
        shuffle(order, n);
        struct bytes whole = sum_uploads(u, order, n);
        cr_same_as_profile(&whole, u, n);
        cr_same_groups(&whole, u, n);
        for (int again = 0; again < 3; again++) {
            shuffle(order, n);
            struct bytes other = again == 0 ? sum_uploads(u, order, n) : sum_shards(u, order, n);
            cr_same(&whole, &other);
            bytes_done(&other);
        }
        bytes_done(&whole);
        for (uint32_t i = 0; i < n; i++) {
            counts_done(&u[i].counts);
        }
    }
}

/* Without spread: the same numbers, whatever is added. */
Test(rollup, a_plain_sum_says_the_same)
{
    for (uint32_t round = 0; round < rounds(40); round++) {
        struct arena *a = arena_new(0);
        struct sample u[8] = {0};
        uint32_t order[8];
        state = 4242 + round;
        for (uint32_t i = 0; i < 8; i++) {
            random_upload(&u[i], i, round % 4);
        }
        shuffle(order, 8);
        struct bytes whole = sum_uploads(u, order, 8), half = sum_uploads(u, order, 4);
        struct counts r, out;
        uint8_t *bytes;
        size_t size;
        struct rollup_sum *s = rollup_sum_new(a, ROLLUP_PLAIN);
        for (uint32_t i = 4; i < 8; i++) {
            cr_assert_eq(rollup_sum_add_upload(s, &u[order[i]].counts, u[order[i]].commit, UINT32_MAX, NULL), PROFD_OK);
        }
        cr_assert_eq(rollup_decode(a, half.counts, half.counts_size, BUILDS, false, &r, NULL), PROFD_OK);
        cr_assert_eq(rollup_sum_add(s, &r, NULL, NULL), PROFD_OK);
        cr_assert_eq(rollup_sum_finish(s, &out, NULL, NULL), PROFD_OK);
        cr_assert_eq(counts_encode(&out, &bytes, &size, NULL), PROFD_OK);
        cr_assert(size == whole.counts_size && memcmp(bytes, whole.counts, size) == 0);
        free(bytes);
        bytes_done(&whole);
        bytes_done(&half);
        for (uint32_t i = 0; i < 8; i++) {
            counts_done(&u[i].counts);
        }
        arena_free(a);
    }
}

/* Any one byte changed is noticed, or means the same. */
Test(rollup, damage_is_noticed)
{
    struct sample u[6] = {0};
    uint32_t order[6], refused = 0, tried = 0;
    state = 99;
    for (uint32_t i = 0; i < 6; i++) {
        random_upload(&u[i], i + 5, 0);
    }
    shuffle(order, 6);
    struct bytes b = sum_uploads(u, order, 6);
    struct arena *a = arena_new(0);
    struct counts r;
    struct counts_shares known;
    cr_assert_eq(rollup_decode(a, b.counts, b.counts_size, BUILDS, false, &r, NULL), PROFD_OK);
    cr_assert_eq(rollup_decode_spread(a, &r, b.spread, b.spread_size, &known, NULL), PROFD_OK);
    for (size_t i = 0; i < b.counts_size + b.spread_size; i++) {
        uint8_t *byte = i < b.counts_size ? &b.counts[i] : &b.spread[i - b.counts_size], was = *byte;
        struct counts other = {0};
        struct counts_shares spread;
        struct profd_error e = {""};
        *byte ^= (uint8_t)(1 + below(255));
        enum profd_status status = i < b.counts_size
                                       ? rollup_decode(a, b.counts, b.counts_size, BUILDS, false, &other, &e)
                                       : rollup_decode_spread(a, &r, b.spread, b.spread_size, &spread, &e);
        *byte = was;
        tried++;
        refused += status != PROFD_OK;
        cr_assert(status == PROFD_OK || (status == PROFD_DAMAGED && e.sentence[0] != '\0' && other.arc_count == 0));
        if (status == PROFD_OK) { /* a bit of the compressed frame that means nothing */
            struct bytes same;
            cr_assert_eq(counts_encode(i < b.counts_size ? &other : &r, &same.counts, &same.counts_size, NULL),
                         PROFD_OK);
            cr_assert_eq(
                counts_encode_shares(&r, i < b.counts_size ? &known : &spread, &same.spread, &same.spread_size, NULL),
                PROFD_OK);
            cr_same(&b, &same);
            bytes_done(&same);
        }
    }
    cr_assert(refused >= tried - 12, "%u of %u", refused, tried);
    for (size_t n = 0; n < b.counts_size; n++) {
        cr_assert_eq(rollup_decode(a, b.counts, n, BUILDS, false, &r, NULL), PROFD_DAMAGED);
    }
    struct counts_shares spread;
    for (size_t n = 0; n < b.spread_size; n++) {
        cr_assert_eq(rollup_decode_spread(a, &r, b.spread, n, &spread, NULL), PROFD_DAMAGED);
    }
    cr_assert_eq(rollup_decode(a, b.counts, b.counts_size, 1, false, &r, NULL), PROFD_DAMAGED, "builds beyond the set");
    bytes_done(&b);
    for (uint32_t i = 0; i < 6; i++) {
        counts_done(&u[i].counts);
    }
    arena_free(a);
}

/* More arcs and bins than a sum may have: the largest stay, and nothing is lost. */
Test(rollup, a_limited_sum_keeps_the_largest_rows_and_all_counts)
{
    enum { ARCS = LIMIT_SUM_ROWS + 1000, BINS = LIMIT_SUM_ROWS / 2 + 5 };
    struct counts c, r;
    struct counts_shares spread;
    struct arena *a = arena_new(0);
    cr_assert_eq(counts_init(&c, 1, BINS, ARCS, NULL), PROFD_OK);
    c.histograms[0] =
        (struct counts_histogram){.bins = BINS, .low = 0x1000, .high = 0x1000 + 4 * BINS, .rate = 100, .used = BINS};
    for (uint32_t i = 0; i < BINS; i++) {
        c.bin_index[i] = i;
        c.bin_ticks[i] = i == 3 ? 7 : 8 + i % 5;
    }
    uint64_t calls = 0, ticks = 0, all_calls, all_ticks;
    for (uint32_t i = 0; i < ARCS; i++) {
        c.from[i] = i;
        calls += c.calls[i] = i % 3 == 0 ? 100 : 1;
    }
    for (uint32_t i = 0; i < BINS; i++) {
        ticks += c.bin_ticks[i];
    }
    for (unsigned twice = 0; twice < 2; twice++) {
        struct rollup_sum *s = rollup_sum_new(a, ROLLUP_ALL);
        rollup_sum_limit(s);
        if (twice) { /* what was cut once is cut again */
            cr_assert_eq(rollup_sum_add(s, &r, &spread, NULL), PROFD_OK);
        }
        cr_assert_eq(rollup_sum_add_upload(s, &c, 7, 5, NULL), PROFD_OK);
        cr_assert_eq(rollup_sum_finish(s, &r, &spread, NULL), PROFD_OK);
        counts_totals(&r, &all_ticks, &all_calls);
        cr_assert_eq(all_calls, calls * (twice + 1));
        cr_assert_eq(all_ticks, ticks * (twice + 1));
        cr_assert_eq(r.arc_count, LIMIT_SUM_ROWS / 2 + 1u - twice);
        cr_assert_eq(r.bin_count, LIMIT_SUM_ROWS / 2 + 1u - twice);
        const uint32_t rest = r.arc_count - 1;
        cr_assert(r.from_build[rest] == COUNTS_NOWHERE && r.to_build[rest] == COUNTS_NOWHERE);
        cr_assert(r.from[rest] == ROLLUP_REST && r.to[rest] == ROLLUP_REST);
        cr_assert_eq(spread.arcs[rest * 16 + 5], r.calls[rest]);
        for (uint32_t i = 0, k = 0; i < ARCS; i += 3, k++) {
            for (; k < rest && r.from[k] < i; k++) {
            }
            cr_assert(r.from[k] == i && r.calls[k] == 100u * (twice + 1));
        }
        cr_assert_eq(r.histogram_count, 2);
        cr_assert(r.histograms[0].low == 0 && r.histograms[0].high == ROLLUP_REST && r.histograms[0].bins == 1);
        cr_assert(r.bin_index[4] == 4 && r.bin_ticks[r.histograms[1].first + 2] == 10u * (twice + 1));
        cr_assert_eq(spread.bins[5], r.bin_ticks[0]);
    }
    counts_done(&c);
    arena_free(a);
}

Test(rollup, a_small_arena_is_no_memory)
{
    struct sample u[3] = {0};
    uint32_t order[3] = {0, 1, 2}, refused = 0, good = 0;
    state = 5;
    for (uint32_t i = 0; i < 3; i++) {
        random_upload(&u[i], i, 0);
    }
    struct bytes b = sum_uploads(u, order, 3);
    for (size_t limit = 512; limit < 400000; limit += limit / 40 + 64) {
        struct arena *a = arena_new(limit);
        struct rollup_sum *s = rollup_sum_new(a, ROLLUP_ALL);
        struct counts r, out = {.arc_count = 77};
        struct counts_shares spread;
        enum profd_status status = s == NULL ? PROFD_NO_MEMORY : rollup_sum_add_upload(s, &u[0].counts, 1, 3, NULL);
        if (status == PROFD_OK) {
            status = rollup_decode(a, b.counts, b.counts_size, BUILDS, false, &r, NULL);
        }
        if (status == PROFD_OK) {
            status = rollup_decode_spread(a, &r, b.spread, b.spread_size, &spread, NULL);
        }
        if (status == PROFD_OK) {
            status = rollup_sum_add(s, &r, &spread, NULL);
        }
        if (status == PROFD_OK) {
            status = rollup_sum_finish(s, &out, &spread, NULL);
        }
        cr_assert(status == PROFD_OK ? out.arc_count != 77 : status == PROFD_NO_MEMORY && out.arc_count == 77);
        refused += status != PROFD_OK;
        good += status == PROFD_OK;
        arena_free(a);
    }
    cr_assert(refused > 20 && good > 3, "%u refused, %u good", refused, good);
    bytes_done(&b);
    for (uint32_t i = 0; i < 3; i++) {
        counts_done(&u[i].counts);
    }
}
