/* Stacks in sums with shares of stacks alone: whatever the order, the sum is what sorting all nodes under their new
 * builds gives. */
#include <criterion/criterion.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "core/rollup.h"
#include "proto/counts_tree.h"
#include "proto/limits.h"
#include "tests/rounds.h"

static uint64_t state;

static uint32_t below(uint32_t n)
{
    state ^= state << 13;
    state ^= state >> 7;
    state ^= state << 17;
    return (uint32_t)((state >> 20) % n);
}

#define BUILDS 4
#define UPLOADS 6
#define NODES 4000

/* Trees of two clocks over builds 0 to 3. */
static void draw_counts(struct counts *c)
{
    struct counts_stacks *s = counts_stacks_new();
    for (uint32_t n = below(60); n > 0; n--) {
        struct counts_frame f[20];
        uint32_t depth = 1 + below(20);
        for (uint32_t k = 0; k < depth; k++) {
            bool outside = below(6) == 0;
            f[k] = (struct counts_frame){.build = outside ? COUNTS_NOWHERE : below(BUILDS),
                                         .address = outside ? COUNTS_FRAME_OUTSIDE : below(3),
                                         .kind = k + 1 == depth && below(4) > 0};
        }
        cr_assert_eq(counts_stacks_add(s, 99 + below(2), "seconds", 's', f, depth, 1 + below(9), NULL), PROFD_OK);
    }
    struct counts_sizes sizes = {0};
    cr_assert_eq(counts_stacks_finish(s, &sizes, NULL), PROFD_OK);
    cr_assert_eq(counts_init_sizes(c, &sizes, NULL), PROFD_OK);
    counts_stacks_copy(s, c);
    counts_stacks_free(s);
}

/* All nodes of one clock of many uploads, in the numbers of the sum. */
struct naive {
    struct counts_node nodes[NODES];
    uint32_t group[NODES], used;
};

static bool is_outside(const struct counts_frame *f)
{
    return f->build == COUNTS_NOWHERE && f->address == COUNTS_FRAME_OUTSIDE && f->kind == COUNTS_NODE_RETURN;
}

static void naive_add(struct naive *x, const struct counts *c, const struct counts_tree *t, const uint32_t *map,
                      bool alone, uint32_t group)
{
    const struct counts_nodes nodes = COUNTS_NODES(c);
    uint32_t path[LIMIT_STACK_DEPTH + 1] = {COUNTS_NOWHERE};
    for (uint32_t i = t->first; i < t->first + t->used; i++) {
        struct counts_frame f = counts_node_frame(&nodes, i);
        uint32_t above = path[nodes.depth[i]], build = f.build == COUNTS_NOWHERE ? f.build : map[f.build];
        if (build != f.build && build == COUNTS_NOWHERE) {
            f.address = COUNTS_FRAME_OUTSIDE;
        }
        f.build = build;
        path[nodes.depth[i] + 1] = above;
        if (alone && is_outside(&f) && above != COUNTS_NOWHERE && is_outside(&x->nodes[above].frame)) {
            continue;
        }
        bool counts = !alone || (f.kind == COUNTS_NODE_PC && f.build != COUNTS_NOWHERE);
        x->nodes[x->used] = (struct counts_node){.parent = above, .frame = f, .ticks = counts ? nodes.ticks[i] : 0};
        x->group[x->used] = group;
        path[nodes.depth[i] + 1] = x->used++;
    }
}

static void finish(struct rollup_sum *s, struct counts *out, struct counts_shares *shares)
{
    cr_assert_eq(rollup_sum_finish(s, out, shares, NULL), PROFD_OK);
}

/* Adds an upload; with a map, as a sum of its own. */
static void add(struct rollup_sum *s, struct arena *a, const struct counts *c, const uint32_t *map, bool alone,
                uint32_t group)
{
    if (map == NULL) {
        cr_assert_eq(rollup_sum_add_upload(s, c, 1, group, NULL), PROFD_OK);
        return;
    }
    struct rollup_sum *one = rollup_sum_new(a, ROLLUP_NODES);
    struct counts r;
    struct counts_shares shares;
    cr_assert_eq(rollup_sum_add_upload(one, c, 1, group, NULL), PROFD_OK);
    finish(one, &r, &shares);
    cr_assert(shares.arcs == NULL && shares.bins == NULL);
    cr_assert_eq(rollup_sum_add_mapped(s, &r, &shares, map, BUILDS, alone, NULL), PROFD_OK);
}

static void check_tree(const struct naive *x, const struct counts *t, const uint64_t *spread, uint32_t *tree,
                       uint32_t rate, uint64_t seed)
{
    static uint8_t depth[NODES], kind[NODES];
    static uint32_t build[NODES], place[NODES];
    static uint64_t address[NODES], ticks[NODES], shares[NODES * COUNTS_GROUPS];
    const struct counts_nodes out = {depth, kind, build, address, ticks};
    uint32_t used = 0;
    cr_assert_eq(counts_tree_sort(x->nodes, x->used, &out, &used, place, NULL), PROFD_OK);
    if (used == 0) {
        return;
    }
    const struct counts_tree *found = &t->trees[(*tree)++];
    cr_assert(*tree <= t->tree_count && found->rate == rate && found->used == used, "seed %u", (unsigned)seed);
    memset(shares, 0, sizeof shares);
    for (uint32_t i = 0; i < x->used; i++) {
        if (place[i] != COUNTS_NOWHERE) {
            shares[place[i] * COUNTS_GROUPS + x->group[i]] += x->nodes[i].ticks;
        }
    }
    uint32_t n = found->first;
    cr_assert_arr_eq(t->node_depth + n, depth, used);
    cr_assert_arr_eq(t->node_kind + n, kind, used);
    cr_assert_arr_eq(t->node_build + n, build, used * sizeof *build);
    cr_assert_arr_eq(t->node_address + n, address, used * sizeof *address);
    cr_assert_arr_eq(t->node_ticks + n, ticks, used * sizeof *ticks);
    cr_assert_arr_eq(spread + (size_t)n * COUNTS_GROUPS, shares, (size_t)used * COUNTS_GROUPS * sizeof *shares);
}

Test(tree_sum, is_what_sorting_all_nodes_gives)
{
    static struct naive clocks[2];
    struct arena *a = arena_new(0);
    for (state = 1; state < 1 + rounds(100);) {
        uint64_t seed = state;
        bool alone = seed % 2 == 0;
        uint32_t map[2][BUILDS] = {{2, 0, 3, 1}, {2, 5, 4, 0}}, tree = 0;
        struct counts c[UPLOADS], t;
        struct counts_shares shares;
        arena_reset(a);
        struct rollup_sum *s = rollup_sum_new(a, ROLLUP_NODES);
        clocks[0].used = clocks[1].used = 0;
        for (uint32_t i = 0; alone && i < BUILDS; i++) {
            map[0][i] = map[0][i] == 2 ? 2 : COUNTS_NOWHERE;
            map[1][i] = map[1][i] == 2 ? 2 : COUNTS_NOWHERE;
        }
        for (uint32_t i = 0; i < UPLOADS; i++) {
            draw_counts(&c[i]);
            const uint32_t *m = map[i % 2];
            for (uint32_t k = 0; k < c[i].tree_count; k++) {
                naive_add(&clocks[c[i].trees[k].rate - 99], &c[i], &c[i].trees[k], m, alone, i * 3);
            }
            add(s, a, &c[i], m, alone, i * 3);
        }
        finish(s, &t, &shares);
        check_tree(&clocks[0], &t, shares.nodes, &tree, 99, seed);
        check_tree(&clocks[1], &t, shares.nodes, &tree, 100, seed);
        cr_assert(tree == t.tree_count && !t.saturated);
        for (uint32_t i = 0; i < UPLOADS; i++) {
            counts_done(&c[i]);
        }
        state = seed + 1;
    }
    arena_free(a);
}

/* A sum of sums with shares is the sum of all. */
Test(tree_sum, sums_with_shares_add_up)
{
    struct arena *a = arena_new(0);
    for (state = 1000; state < 1000 + rounds(40);) {
        uint64_t seed = state;
        struct rollup_sum *all = rollup_sum_new(a, ROLLUP_NODES), *both = rollup_sum_new(a, ROLLUP_NODES);
        struct rollup_sum *half[2] = {rollup_sum_new(a, ROLLUP_NODES), rollup_sum_new(a, ROLLUP_NODES)};
        struct counts t, x, y;
        struct counts_shares part, left, right;
        for (uint32_t i = 0; i < UPLOADS; i++) {
            struct counts c;
            draw_counts(&c);
            add(all, a, &c, NULL, false, i);
            add(half[i % 2], a, &c, NULL, false, i);
            counts_done(&c);
        }
        for (int i = 0; i < 2; i++) {
            finish(half[i], &t, &part);
            cr_assert_eq(rollup_sum_add(both, &t, &part, NULL), PROFD_OK);
        }
        finish(all, &x, &left);
        finish(both, &y, &right);
        cr_assert(x.tree_count == y.tree_count && x.node_count == y.node_count, "seed %u", (unsigned)seed);
        cr_assert_arr_eq(x.node_address, y.node_address, x.node_count * 8);
        cr_assert_arr_eq(x.node_ticks, y.node_ticks, x.node_count * 8);
        cr_assert_arr_eq(left.nodes, right.nodes, x.node_count * COUNTS_GROUPS * sizeof *left.nodes);
        state = seed + 1;
        arena_reset(a);
    }
    arena_free(a);
}

#ifndef __SANITIZE_ADDRESS__ /* it takes half of the suite's time there; smaller sums go the same ways */
/* More nodes than are held, of several clocks: folded on the way in bounded memory, no tick lost, of no group either.
 */
Test(tree_sum, many_stacks_are_folded_on_the_way)
{
    struct arena *a = arena_new((size_t)320 << 20);
    struct rollup_sum *s = rollup_sum_new(a, ROLLUP_NODES);
    struct counts t;
    struct counts_shares shares;
    uint64_t expected[COUNTS_GROUPS] = {0}, found[COUNTS_GROUPS] = {0};
    state = 5;
    for (uint32_t i = 0; i < 40; i++) {
        struct counts c;
        cr_assert_eq(counts_init_sizes(&c, &(struct counts_sizes){.trees = 1, .nodes = 60000}, NULL), PROFD_OK);
        c.trees[0] =
            (struct counts_tree){.rate = 99 + i % 5, .dimension = "seconds", .abbreviation = 's', .used = 60000};
        for (uint32_t k = 0; k < 60000; k++) {
            c.node_address[k] = (uint64_t)i * 60000 + k;
            c.node_kind[k] = COUNTS_NODE_PC;
            c.node_ticks[k] = 1 + below(5);
            expected[i % COUNTS_GROUPS] += c.node_ticks[k];
        }
        add(s, a, &c, NULL, false, i % COUNTS_GROUPS);
        counts_done(&c);
    }
    finish(s, &t, &shares);
    cr_assert_eq(t.node_count, LIMIT_STACK_NODES);
    for (size_t i = 0; i < (size_t)t.node_count * COUNTS_GROUPS; i++) {
        found[i % COUNTS_GROUPS] += shares.nodes[i];
    }
    cr_assert_arr_eq(found, expected, sizeof found);
    arena_free(a);
}
#endif

Test(tree_sum, uploads_that_grow_add_their_stacks_up)
{
    struct arena *a = arena_new(0), *scratch = arena_new(0);
    for (state = 3000; state < 3000 + rounds(60);) {
        uint64_t seed = state;
        struct counts c[2], sum, t;
        struct rollup_sum *s = rollup_sum_new(a, ROLLUP_PLAIN);
        for (int i = 0; i < 2; i++) {
            draw_counts(&c[i]);
            add(s, a, &c[i], NULL, false, 0);
        }
        cr_assert_eq(rollup_grow(scratch, &c[0], &c[1], &sum, NULL), PROFD_OK);
        finish(s, &t, NULL);
        cr_assert(sum.tree_count == t.tree_count && sum.node_count == t.node_count, "seed %u", (unsigned)seed);
        cr_assert_arr_eq(sum.node_depth, t.node_depth, sum.node_count);
        cr_assert_arr_eq(sum.node_kind, t.node_kind, sum.node_count);
        cr_assert_arr_eq(sum.node_build, t.node_build, sum.node_count * sizeof *sum.node_build);
        cr_assert_arr_eq(sum.node_address, t.node_address, sum.node_count * sizeof *sum.node_address);
        cr_assert_arr_eq(sum.node_ticks, t.node_ticks, sum.node_count * sizeof *sum.node_ticks);
        counts_done(&c[0]);
        counts_done(&c[1]);
        state = seed + 1;
        arena_reset(a);
    }
    arena_free(a);
    arena_free(scratch);
}
