/* Laws of stacks in sums: any order and sharding gives the same bytes, and what a list of all stacks says; folding
 * never changes the ticks of a clock or of a group. */
#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>

#include "core/rollup.h"
#include "proto/counts_tree.h"
#include "proto/limits.h"
#include "proto/segment.h"
#include "tests/rounds.h"

#define UPLOADS 20
#define BUILDS 5
#define CLOCKS 3

static uint64_t state;

static uint32_t below(uint32_t n)
{
    state = state * 6364136223846793005u + 1442695040888963407u;
    return (uint32_t)(state >> 35) % n;
}

static const struct {
    uint32_t rate;
    const char *dimension;
    char abbreviation;
} clocks[CLOCKS] = {{99, "seconds", 's'}, {99, "switches", 'x'}, {100, "seconds", 's'}};

/* One stack that was added somewhere. Frames are compared by their bytes. */
struct stack {
    struct counts_frame frames[8];
    uint32_t clock, n;
    uint64_t ticks, groups[COUNTS_GROUPS];
};
/* Each stack once, found by hashing. */
struct naive {
    struct stack *stacks;
    uint32_t count, *slots;
};
#define SLOTS (1u << 18)

static struct naive naive_new(void)
{
    return (struct naive){calloc(SLOTS / 2, sizeof(struct stack)), 0, calloc(SLOTS, sizeof(uint32_t))};
}

static void naive_free(struct naive *x)
{
    free(x->stacks);
    free(x->slots);
}

static void naive_add(struct naive *x, const struct stack *s, uint32_t group, uint64_t ticks)
{
    uint64_t hash = 1469598103934665603u + s->clock;
    for (uint32_t i = 0; i < s->n; i++) {
        hash = (hash ^ s->frames[i].address ^ (uint64_t)s->frames[i].build << 40 ^ s->frames[i].kind) * 1099511628211u;
    }
    uint32_t at = (uint32_t)(hash >> 20) % SLOTS;
    for (; x->slots[at] != 0; at = (at + 1) % SLOTS) {
        const struct stack *k = &x->stacks[x->slots[at] - 1];
        if (k->clock == s->clock && k->n == s->n && memcmp(k->frames, s->frames, sizeof k->frames) == 0) {
            break;
        }
    }
    if (x->slots[at] == 0) {
        cr_assert_lt(x->count, SLOTS / 2);
        x->stacks[x->count] = *s;
        x->slots[at] = ++x->count;
    }
    struct stack *to = &x->stacks[x->slots[at] - 1];
    to->ticks += ticks;
    to->groups[group] += ticks;
}

static struct counts_frame draw_frame(uint32_t wide, bool innermost)
{
    struct counts_frame f;
    memset(&f, 0, sizeof f);
    f.build = below(15) == 0 ? COUNTS_NOWHERE : below(BUILDS);
    f.address = f.build == COUNTS_NOWHERE ? COUNTS_FRAME_OUTSIDE : 0x1000 + 4 * (uint64_t)below(wide);
    f.kind = innermost && below(5) != 0 ? COUNTS_NODE_PC : COUNTS_NODE_RETURN;
    return f;
}

static struct stack draw_stack(uint32_t wide)
{
    struct stack s;
    memset(&s, 0, sizeof s);
    s.clock = below(4) == 0 ? below(CLOCKS) : 0;
    s.n = 1 + below(8);
    for (uint32_t i = 0; i < s.n; i++) {
        s.frames[i] = draw_frame(i < 4 ? 3 : wide, i + 1 == s.n);
    }
    if (s.n > 1 && below(6) == 0) {
        s.frames[0] = (struct counts_frame){.address = COUNTS_FRAME_INCOMPLETE, .build = COUNTS_NOWHERE};
    }
    return s;
}

struct sample {
    struct counts counts;
    uint32_t group;
};

/* An upload of that many stacks, and a few arcs beside them. */
static void make_upload(struct sample *u, uint32_t stacks, uint32_t wide, struct naive *all)
{
    struct counts_stacks *s = counts_stacks_new();
    struct counts_sizes sizes = {.arcs = below(4)};
    u->group = below(COUNTS_GROUPS);
    for (uint32_t i = 0; i < stacks; i++) {
        const struct stack x = draw_stack(wide);
        const uint64_t ticks = 1 + below(20);
        cr_assert_eq(counts_stacks_add(s, clocks[x.clock].rate, clocks[x.clock].dimension, clocks[x.clock].abbreviation,
                                       x.frames, x.n, ticks, NULL),
                     PROFD_OK);
        naive_add(all, &x, u->group, ticks);
    }
    cr_assert_eq(counts_stacks_finish(s, &sizes, NULL), PROFD_OK);
    cr_assert_eq(counts_init_sizes(&u->counts, &sizes, NULL), PROFD_OK);
    counts_stacks_copy(s, &u->counts);
    for (uint32_t i = 0; i < sizes.arcs; i++) {
        u->counts.from[i] = 0x1000 + below(50);
        u->counts.to[i] = 0x2000 + below(50);
        u->counts.calls[i] = below(100);
    }
    counts_stacks_free(s);
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
    cr_assert_leq(r.node_count, LIMIT_STACK_NODES);
    cr_assert_eq(counts_encode(&r, &b.counts, &b.counts_size, &e), PROFD_OK, "%s", e.sentence);
    cr_assert_eq(counts_encode_shares(&r, &spread, &b.spread, &b.spread_size, &e), PROFD_OK, "%s", e.sentence);
    return b;
}

static void decode(struct arena *a, const struct bytes *b, struct counts *r, struct counts_shares *spread)
{
    struct profd_error e = {""};
    cr_assert_eq(rollup_decode(a, b->counts, b->counts_size, BUILDS, false, r, &e), PROFD_OK, "%s", e.sentence);
    cr_assert_eq(rollup_decode_spread(a, r, b->spread, b->spread_size, spread, &e), PROFD_OK, "%s", e.sentence);
}

static void add_bytes(struct rollup_sum *s, struct arena *a, const struct bytes *b)
{
    struct counts r;
    struct counts_shares spread;
    decode(a, b, &r, &spread);
    cr_assert_eq(rollup_sum_add(s, &r, &spread, NULL), PROFD_OK);
}

static void add_upload(struct rollup_sum *s, const struct sample *u)
{
    cr_assert_eq(rollup_sum_add_upload(s, &u->counts, 7, u->group, NULL), PROFD_OK);
}

static void shuffle(uint32_t *order, uint32_t n)
{
    for (uint32_t i = 0; i < n; i++) {
        uint32_t k = below(i + 1);
        order[i] = order[k];
        order[k] = i;
    }
}

/* In any order, some of them in sums of their own first. */
static struct bytes sum_up(const struct sample *u, uint32_t n, bool sharded)
{
    uint32_t order[UPLOADS];
    struct arena *a = arena_new(0);
    struct rollup_sum *whole = rollup_sum_new(a, ROLLUP_ALL);
    shuffle(order, n);
    for (uint32_t i = 0; i < n;) {
        struct rollup_sum *s = sharded && below(2) == 0 ? rollup_sum_new(a, ROLLUP_ALL) : whole;
        for (uint32_t length = 1 + below(5); length > 0 && i < n; length--) {
            add_upload(s, &u[order[i++]]);
        }
        if (s != whole) {
            struct bytes b = finish(s);
            add_bytes(whole, a, &b);
            bytes_done(&b);
        }
    }
    struct bytes b = finish(whole);
    arena_free(a);
    return b;
}

static void take_stack(const struct counts *r, uint32_t tree, uint32_t node, struct stack *path)
{
    const uint32_t depth = r->node_depth[node];
    path->n = depth + 1;
    memset(&path->frames[depth], 0, (8 - depth) * sizeof path->frames[0]);
    path->frames[depth].address = r->node_address[node];
    path->frames[depth].build = r->node_build[node];
    path->frames[depth].kind = r->node_kind[node];
    for (path->clock = 0; clocks[path->clock].rate != r->trees[tree].rate ||
                          strcmp(clocks[path->clock].dimension, r->trees[tree].dimension) != 0;) {
        path->clock++;
    }
}

/* All stacks of a sum, as the naive list has them. */
static struct naive list(const struct counts *r, const struct counts_shares *spread)
{
    struct naive x = naive_new();
    for (uint32_t t = 0; t < r->tree_count; t++) {
        struct stack path = {.n = 0};
        for (uint32_t i = r->trees[t].first; i < r->trees[t].first + r->trees[t].used; i++) {
            uint64_t ticks = 0;
            take_stack(r, t, i, &path);
            for (uint32_t g = 0; g < COUNTS_GROUPS; g++) {
                const uint64_t share = spread->nodes[(size_t)i * COUNTS_GROUPS + g];
                ticks += share;
                if (share > 0) {
                    naive_add(&x, &path, g, share);
                }
            }
            cr_assert_eq(ticks, r->node_ticks[i]);
        }
    }
    return x;
}

static int compare_stacks(const void *a, const void *b)
{
    const struct stack *x = a, *y = b;
    if (x->clock != y->clock) {
        return x->clock < y->clock ? -1 : 1;
    }
    return memcmp(x->frames, y->frames, sizeof x->frames);
}

static void cr_same_list(const struct bytes *b, struct naive *all)
{
    struct arena *a = arena_new(0);
    struct counts r;
    struct counts_shares spread;
    decode(a, b, &r, &spread);
    struct naive found = list(&r, &spread);
    cr_assert_eq(found.count, all->count);
    qsort(found.stacks, found.count, sizeof *found.stacks, compare_stacks);
    qsort(all->stacks, all->count, sizeof *all->stacks, compare_stacks);
    for (uint32_t i = 0; i < found.count; i++) {
        const struct stack *x = &found.stacks[i], *y = &all->stacks[i];
        cr_assert(compare_stacks(x, y) == 0 && x->n == y->n && x->ticks == y->ticks &&
                  memcmp(x->groups, y->groups, sizeof x->groups) == 0);
    }
    naive_free(&found);
    arena_free(a);
}

Test(rollup_stacks, any_order_and_sharding_gives_the_same_bytes_and_the_list_of_all_stacks)
{
    for (uint32_t round = 0; round < rounds(40); round++) {
        struct sample u[UPLOADS] = {0};
        struct naive all = naive_new();
        state = 1000 + round;
        const uint32_t n = below(UPLOADS + 1), most = round % 5 == 0 ? 1500 : 40;
        for (uint32_t i = 0; i < n; i++) {
            make_upload(&u[i], below(most), round % 2 == 0 ? 4 : 300, &all);
        }
        struct bytes whole = sum_up(u, n, false);
        cr_same_list(&whole, &all);
        for (int again = 0; again < 3; again++) {
            struct bytes other = sum_up(u, n, again > 0);
            cr_assert(other.counts_size == whole.counts_size &&
                      memcmp(other.counts, whole.counts, whole.counts_size) == 0);
            cr_assert(other.spread_size == whole.spread_size &&
                      memcmp(other.spread, whole.spread, whole.spread_size) == 0);
            bytes_done(&other);
        }
        bytes_done(&whole);
        naive_free(&all);
        for (uint32_t i = 0; i < n; i++) {
            counts_done(&u[i].counts);
        }
    }
}

#ifndef __SANITIZE_ADDRESS__ /* it takes half of the suite's time there; smaller sums go the same ways */
/* The ticks of each clock and group. */
struct totals {
    uint64_t of[CLOCKS][COUNTS_GROUPS];
};

static struct totals totals_of(const struct naive *all)
{
    struct totals t = {0};
    for (uint32_t i = 0; i < all->count; i++) {
        for (uint32_t g = 0; g < COUNTS_GROUPS; g++) {
            t.of[all->stacks[i].clock][g] += all->stacks[i].groups[g];
        }
    }
    return t;
}

/* Levels above levels, each of which folds. */
Test(rollup_stacks, folding_keeps_the_ticks_of_each_clock_and_group)
{
    struct sample u[6] = {0};
    struct bytes level[6];
    struct naive all = naive_new();
    struct arena *a = arena_new(0);
    state = 5;
    for (uint32_t i = 0; i < 6; i++) {
        make_upload(&u[i], 16000, 1000000, &all);
        struct rollup_sum *s = rollup_sum_new(a, ROLLUP_ALL);
        add_upload(s, &u[i]);
        level[i] = finish(s);
        counts_done(&u[i].counts);
    }
    const struct totals before = totals_of(&all);
    for (uint32_t n = 6; n > 1; n--) {
        struct rollup_sum *s = rollup_sum_new(a, ROLLUP_ALL);
        struct counts r;
        struct counts_shares spread;
        add_bytes(s, a, &level[n - 1]);
        add_bytes(s, a, &level[n - 2]);
        bytes_done(&level[n - 1]);
        bytes_done(&level[n - 2]);
        level[n - 2] = finish(s);
        decode(a, &level[n - 2], &r, &spread);
        if (n == 2) {
            cr_assert_eq(r.node_count, LIMIT_STACK_NODES, "it folded: %u nodes", r.node_count);
            struct naive folded = list(&r, &spread);
            const struct totals after = totals_of(&folded);
            cr_assert_eq(memcmp(&before, &after, sizeof before), 0);
            naive_free(&folded);
        }
    }
    bytes_done(&level[0]);
    naive_free(&all);
    arena_free(a);
}
#endif

/* An upload with a stack for each of so many clocks. */
static void make_clocks(struct sample *u, uint32_t first, uint32_t n)
{
    const struct counts_sizes sizes = {.trees = n, .nodes = n};
    cr_assert_eq(counts_init_sizes(&u->counts, &sizes, NULL), PROFD_OK);
    u->group = first % COUNTS_GROUPS;
    for (uint32_t i = 0; i < n; i++) {
        u->counts.trees[i] = (struct counts_tree){
            .rate = 100 + first + i, .dimension = "seconds", .abbreviation = 's', .first = i, .used = 1};
        u->counts.node_kind[i] = COUNTS_NODE_PC;
        u->counts.node_address[i] = 0x1000 + i % 2;
        u->counts.node_ticks[i] = 1 + i;
    }
}

/* A sum without shares has the same trees. */
static void cr_same_query(const struct sample *u, const uint32_t *order, uint32_t n, const struct counts *r)
{
    struct arena *a = arena_new(0);
    struct rollup_sum *s = rollup_sum_new(a, ROLLUP_PLAIN);
    struct counts t;
    for (uint32_t i = 0; i < n; i++) {
        add_upload(s, &u[order[i]]);
    }
    cr_assert_eq(rollup_sum_finish(s, &t, NULL, NULL), PROFD_OK);
    cr_assert(t.tree_count == r->tree_count && t.node_count == r->node_count);
    for (uint32_t i = 0; i < t.tree_count; i++) {
        cr_assert(counts_compare_clocks(&t.trees[i], &r->trees[i]) == 0 && t.trees[i].used == r->trees[i].used);
    }
    cr_assert_eq(memcmp(t.node_address, r->node_address, r->node_count * sizeof *r->node_address), 0);
    cr_assert_eq(memcmp(t.node_ticks, r->node_ticks, r->node_count * sizeof *r->node_ticks), 0);
    arena_free(a);
}

/* Of more clocks than a sum may have, the same are left in any order, with all their ticks. */
Test(rollup_stacks, too_many_clocks)
{
    struct sample u[4] = {0};
    state = 3;
    for (uint32_t i = 0; i < 4; i++) {
        make_clocks(&u[i], 25 * i, 50);
    }
    struct bytes whole = sum_up(u, 4, false);
    for (unsigned again = 0; again < 20; again++) {
        struct bytes other = sum_up(u, 4, true);
        cr_assert(other.counts_size == whole.counts_size && memcmp(other.counts, whole.counts, whole.counts_size) == 0);
        cr_assert(other.spread_size == whole.spread_size && memcmp(other.spread, whole.spread, whole.spread_size) == 0);
        bytes_done(&other);
    }
    struct arena *a = arena_new(0);
    struct counts r;
    struct counts_shares spread;
    decode(a, &whole, &r, &spread);
    cr_assert_eq(r.tree_count, LIMIT_STACK_TREES);
    for (uint32_t t = 0; t < LIMIT_STACK_TREES; t++) {
        uint64_t ticks = 0, expected = 0;
        for (uint32_t i = r.trees[t].first; i < r.trees[t].first + r.trees[t].used; i++) {
            ticks += r.node_ticks[i];
        }
        for (uint32_t i = 0; i < 4; i++) {
            expected += t >= 25 * i && t < 25 * i + 50 ? 1 + t - 25 * i : 0;
        }
        cr_assert(r.trees[t].rate == 100 + t && ticks == expected);
    }
    for (unsigned again = 0; again < 20; again++) {
        uint32_t order[4];
        shuffle(order, 4);
        cr_same_query(u, order, 4, &r);
    }
    bytes_done(&whole);
    arena_free(a);
    for (uint32_t i = 0; i < 4; i++) {
        counts_done(&u[i].counts);
    }
}

/* A sum becomes a segment and a sum again. */
Test(rollup_stacks, through_a_segment)
{
    static const struct message_build builds[BUILDS] = {{"aa", ""}, {"bb", ""}, {"cc", ""}, {"dd", ""}, {"ee", ""}};
    for (uint32_t round = 0; round < rounds(10); round++) {
        struct sample u[4] = {0};
        struct naive all = naive_new();
        struct arena *a = arena_new(0);
        struct counts r;
        struct counts_shares spread, shares;
        struct segment s = {.kind = SEGMENT_COUNTS, .sequence = 1, .build_count = BUILDS, .builds = builds}, read;
        struct profd_error e = {""};
        uint8_t *bytes, *first, *second, *encoded;
        size_t size, first_size, second_size;
        state = 77 + round;
        struct rollup_sum *sum = rollup_sum_new(a, ROLLUP_ALL);
        for (uint32_t i = 0; i < 4; i++) {
            make_upload(&u[i], below(300), 20, &all);
            add_upload(sum, &u[i]);
        }
        cr_assert_eq(rollup_sum_finish(sum, &r, &spread, &e), PROFD_OK, "%s", e.sentence);
        rollup_rank(&r, a);
        cr_assert_eq(counts_encode_shares(&r, &spread, &encoded, &s.shares.size, &e), PROFD_OK, "%s", e.sentence);
        s.shares.data = encoded;
        s.counts = r;
        cr_assert_eq(segment_encode(&s, &bytes, &size, &e), PROFD_OK, "%s", e.sentence);
        cr_assert_eq(segment_decode(bytes, size, &read, &e), PROFD_OK, "%s", e.sentence);
        cr_assert_eq(rollup_decode_spread(a, &read.counts, read.shares.data, read.shares.size, &shares, &e), PROFD_OK);
        cr_assert_eq(counts_encode(&r, &first, &first_size, NULL), PROFD_OK);
        cr_assert_eq(counts_encode(&read.counts, &second, &second_size, NULL), PROFD_OK);
        cr_assert(first_size == second_size && memcmp(first, second, first_size) == 0);
        cr_assert_eq(memcmp(spread.nodes, shares.nodes, (size_t)r.node_count * COUNTS_GROUPS * sizeof(uint64_t)), 0);
        free(encoded);
        segment_done(&read);
        free(bytes);
        free(first);
        free(second);
        for (uint32_t i = 0; i < 4; i++) {
            counts_done(&u[i].counts);
        }
        naive_free(&all);
        arena_free(a);
    }
}

/* Any one byte changed is noticed, or means the same. */
Test(rollup_stacks, damage_is_noticed)
{
    struct sample u = {0};
    struct naive all = naive_new();
    struct arena *a = arena_new(0);
    state = 8;
    make_upload(&u, 60, 6, &all);
    struct bytes b = sum_up(&u, 1, false);
    struct counts r, other;
    struct counts_shares spread;
    uint32_t refused = 0;
    decode(a, &b, &r, &spread);
    for (size_t i = 0; i < b.counts_size; i++) {
        struct profd_error e = {""};
        const uint8_t was = b.counts[i];
        b.counts[i] ^= (uint8_t)(1 + below(255));
        enum profd_status status = rollup_decode(a, b.counts, b.counts_size, BUILDS, false, &other, &e);
        b.counts[i] = was;
        cr_assert(status == PROFD_OK || (status == PROFD_DAMAGED && e.sentence[0] != 0));
        refused += status != PROFD_OK;
        if (status == PROFD_OK) {
            cr_assert(other.node_count == r.node_count &&
                      memcmp(other.node_ticks, r.node_ticks, r.node_count * sizeof *r.node_ticks) == 0);
        }
    }
    cr_assert_geq(refused, b.counts_size - 12);
    for (size_t n = 0; n < b.counts_size; n++) {
        cr_assert_eq(rollup_decode(a, b.counts, n, BUILDS, false, &other, NULL), PROFD_DAMAGED);
    }
    cr_assert_eq(rollup_decode(a, b.counts, b.counts_size, 1, false, &other, NULL), PROFD_DAMAGED);
    bytes_done(&b);
    counts_done(&u.counts);
    naive_free(&all);
    arena_free(a);
}
