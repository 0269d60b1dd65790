/* Laws of trees of stacks: sorted nodes say the same stacks, merging is sorting both, folding is the slow definition.
 */
#include <criterion/criterion.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "proto/counts_tree.h"
#include "proto/limits.h"
#include "tests/rounds.h"

static uint64_t state;

static uint64_t draw(void)
{
    state ^= state << 13;
    state ^= state >> 7;
    state ^= state << 17;
    return state;
}

static uint32_t below(uint32_t n)
{
    return (uint32_t)((draw() >> 20) % n);
}

#define NODES 400

/* One tree with space for its nodes. */
struct tree {
    uint8_t node_depth[NODES + 1], node_kind[NODES + 1];
    uint32_t node_build[NODES + 1];
    uint64_t node_address[NODES + 1], node_ticks[NODES + 1];
    uint32_t used;
};

static struct counts_frame draw_frame(unsigned depth)
{
    uint32_t builds[] = {0, 1, 7, COUNTS_NOWHERE};
    struct counts_frame f = {.build = builds[below(4)], .kind = below(3) == 0};
    f.address = f.build != COUNTS_NOWHERE     ? below(3)
                : depth == 0 && below(2) == 0 ? COUNTS_FRAME_INCOMPLETE
                                              : COUNTS_FRAME_OUTSIDE;
    if (f.build == COUNTS_NOWHERE && f.address == COUNTS_FRAME_INCOMPLETE) {
        f.kind = COUNTS_NODE_RETURN;
    }
    return f;
}

static uint32_t draw_nodes(struct counts_node *in, bool deep)
{
    uint32_t n = below(NODES);
    unsigned depth[NODES];
    for (uint32_t i = 0; i < n; i++) {
        uint32_t parent = i == 0 || below(8) == 0 ? COUNTS_NOWHERE : deep ? i - 1 - below(i < 3 ? i : 3) : below(i);
        while (parent != COUNTS_NOWHERE && in[parent].frame.kind == COUNTS_NODE_PC) {
            parent = in[parent].parent;
        }
        depth[i] = parent == COUNTS_NOWHERE ? 0 : depth[parent] + 1;
        in[i] = (struct counts_node){.parent = parent,
                                     .frame = draw_frame(depth[i]),
                                     .ticks = below(3) == 0    ? 0
                                              : below(40) == 0 ? (uint64_t)INT64_MAX
                                                               : 1 + below(9)};
    }
    return n;
}

/* Compares a path of in, cut at the limit, with one of the tree. */
static bool same_path(const struct counts_node *in, uint32_t at, const struct tree *t, uint32_t to)
{
    struct counts_frame path[NODES];
    uint32_t n = 0;
    for (uint32_t i = at; i != COUNTS_NOWHERE; i = in[i].parent) {
        path[n++] = in[i].frame;
    }
    uint32_t skipped = n > LIMIT_STACK_DEPTH ? n - LIMIT_STACK_DEPTH : 0;
    const struct counts_nodes nodes = COUNTS_NODES((struct tree *)(uintptr_t)t);
    unsigned depth = t->node_depth[to] + 1u;
    for (uint32_t i = to + 1; i-- > 0 && depth > 0;) {
        if (t->node_depth[i] == depth - 1) {
            struct counts_frame f = counts_node_frame(&nodes, i);
            if (n - skipped != t->node_depth[to] + 1u || counts_compare_frames(&f, &path[n - depth]) != 0) {
                return false;
            }
            depth--;
        }
    }
    return depth == 0;
}

static uint64_t add(uint64_t a, uint64_t b)
{
    return a > (uint64_t)INT64_MAX - b ? (uint64_t)INT64_MAX : a + b;
}

static void assert_valid(const struct tree *t)
{
    struct counts_tree clock = {.rate = 99, .dimension = "seconds", .abbreviation = 's', .used = t->used};
    struct counts_nodes nodes = COUNTS_NODES((struct tree *)(uintptr_t)t);
    struct profd_error e = {""};
    cr_assert_eq(counts_judge_trees(&clock, t->used > 0, &nodes, t->used, 8, &e), PROFD_OK, "%s", e.sentence);
}

static void sort_tree(const struct counts_node *in, uint32_t n, struct tree *t, uint32_t *place)
{
    struct counts_nodes out = COUNTS_NODES(t);
    cr_assert_eq(counts_tree_sort(in, n, &out, &t->used, place, NULL), PROFD_OK);
    assert_valid(t);
}

Test(counts_tree, sorted_nodes_say_the_same_stacks)
{
    static struct counts_node in[NODES];
    static struct tree t;
    uint32_t place[NODES];
    uint64_t sums[NODES];
    for (state = 1; state < 1 + rounds(300);) {
        uint64_t seed = state;
        uint32_t n = draw_nodes(in, seed % 3 == 0);
        sort_tree(in, n, &t, place);
        memset(sums, 0, sizeof sums);
        for (uint32_t i = 0; i < n; i++) {
            if (place[i] == COUNTS_NOWHERE) {
                cr_assert_eq(in[i].ticks, 0, "seed %u, node %u", (unsigned)seed, i);
                continue;
            }
            cr_assert_lt(place[i], t.used);
            cr_assert(same_path(in, i, &t, place[i]), "seed %u, node %u", (unsigned)seed, i);
            sums[place[i]] = add(sums[place[i]], in[i].ticks);
        }
        cr_assert_arr_eq(sums, t.node_ticks, t.used * sizeof sums[0], "seed %u", (unsigned)seed);
        state = seed + 1;
    }
}

/* One pass over two trees, as counts_tree.h says, gives what sorting the nodes of both gives. */
Test(counts_tree, merging_is_sorting_both)
{
    static struct counts_node in[2 * NODES];
    static struct tree a, b;
    static uint32_t place[2 * NODES];
    for (state = 1000; state < 1000 + rounds(200);) {
        uint64_t seed = state;
        uint32_t n = draw_nodes(in, seed % 3 == 0) / 2, m = draw_nodes(in + n, seed % 3 == 1) / 2;
        struct counts_nodes left = COUNTS_NODES(&a), right = COUNTS_NODES(&b);
        sort_tree(in, n, &a, NULL);
        sort_tree(in + n, m, &b, NULL);
        for (uint32_t i = n; i < n + m; i++) {
            in[i].parent += in[i].parent == COUNTS_NOWHERE ? 0 : n;
        }
        struct tree both;
        sort_tree(in, n + m, &both, place);
        uint32_t i = 0, k = 0, at = 0;
        for (; i < a.used || k < b.used; at++) {
            int order = i == a.used ? 1 : k == b.used ? -1 : counts_compare_nodes(&left, i, &right, k);
            const struct tree *t = order <= 0 ? &a : &b;
            uint32_t from = order <= 0 ? i : k;
            cr_assert(at < both.used && both.node_depth[at] == t->node_depth[from] &&
                          both.node_kind[at] == t->node_kind[from] && both.node_build[at] == t->node_build[from] &&
                          both.node_address[at] == t->node_address[from],
                      "seed %u, node %u", (unsigned)seed, at);
            uint64_t ticks = add(order <= 0 ? a.node_ticks[i] : 0, order >= 0 ? b.node_ticks[k] : 0);
            cr_assert_eq(both.node_ticks[at], ticks, "seed %u, node %u", (unsigned)seed, at);
            i += order <= 0;
            k += order >= 0;
        }
        cr_assert_eq(at, both.used, "seed %u", (unsigned)seed);
        state = seed + 1;
    }
}

static void remove_node(struct tree *t, uint32_t at)
{
    size_t n = t->used - at - 1;
    memmove(&t->node_depth[at], &t->node_depth[at + 1], n);
    memmove(&t->node_kind[at], &t->node_kind[at + 1], n);
    memmove(&t->node_build[at], &t->node_build[at + 1], n * 4);
    memmove(&t->node_address[at], &t->node_address[at + 1], n * 8);
    memmove(&t->node_ticks[at], &t->node_ticks[at + 1], n * 8);
    t->used--;
}

static bool is_incomplete(const struct tree *t, uint32_t i)
{
    return t->node_depth[i] == 0 && t->node_build[i] == COUNTS_NOWHERE && t->node_address[i] == COUNTS_FRAME_INCOMPLETE;
}

/* Removes the leaf with the fewest ticks, the last of equals. False if there is none. */
static bool fold_once(struct tree *t)
{
    uint32_t least = COUNTS_NOWHERE, to = COUNTS_NOWHERE;
    for (uint32_t i = 0; i < t->used; i++) {
        bool leaf = i + 1 == t->used || t->node_depth[i + 1] <= t->node_depth[i];
        if (leaf && !is_incomplete(t, i) && (least == COUNTS_NOWHERE || t->node_ticks[i] <= t->node_ticks[least])) {
            least = i;
        }
    }
    if (least == COUNTS_NOWHERE) {
        return false;
    }
    uint64_t ticks = t->node_ticks[least];
    if (t->node_depth[least] > 0) {
        for (to = least; t->node_depth[to] >= t->node_depth[least]; to--) {
        }
        t->node_ticks[to] = add(t->node_ticks[to], ticks);
        remove_node(t, least);
        return true;
    }
    remove_node(t, least);
    for (uint32_t i = 0; i < t->used; i++) {
        to = is_incomplete(t, i) ? i : to;
    }
    if (to == COUNTS_NOWHERE) {
        to = t->used++;
        t->node_depth[to] = 0;
        t->node_kind[to] = COUNTS_NODE_RETURN;
        t->node_build[to] = COUNTS_NOWHERE;
        t->node_address[to] = COUNTS_FRAME_INCOMPLETE;
        t->node_ticks[to] = 0;
    }
    t->node_ticks[to] = add(t->node_ticks[to], ticks);
    return true;
}

Test(counts_tree, folding_removes_the_rarest_leaves)
{
    static struct counts_node in[NODES];
    static struct tree t, slow, was;
    uint32_t place[NODES];
    uint64_t sums[NODES], left[NODES];
    for (state = 2000; state < 2000 + rounds(300);) {
        uint64_t seed = state;
        uint32_t n = draw_nodes(in, seed % 3 == 0);
        sort_tree(in, n, &t, NULL);
        slow = was = t;
        struct counts_tree clock = {.used = t.used};
        struct counts_nodes nodes = COUNTS_NODES(&t);
        uint32_t most = 1 + below(t.used + 2);
        while (slow.used > most && fold_once(&slow)) {
        }
        cr_assert_eq(counts_tree_fold(&clock, 1, &nodes, &t.used, most, place, NULL), PROFD_OK);
        assert_valid(&t);
        cr_assert(t.used == slow.used && clock.used == t.used && t.used <= most, "seed %u", (unsigned)seed);
        cr_assert(memcmp(t.node_depth, slow.node_depth, t.used) == 0 &&
                      memcmp(t.node_kind, slow.node_kind, t.used) == 0 &&
                      memcmp(t.node_build, slow.node_build, t.used * 4) == 0 &&
                      memcmp(t.node_address, slow.node_address, t.used * 8) == 0 &&
                      memcmp(t.node_ticks, slow.node_ticks, t.used * 8) == 0,
                  "seed %u", (unsigned)seed);
        memset(sums, 0, sizeof sums);
        memcpy(left, t.node_ticks, sizeof left);
        for (uint32_t i = 0; i < was.used; i++) {
            sums[place[i]] = add(sums[place[i]], was.node_ticks[i]);
        }
        cr_assert_arr_eq(sums, left, t.used * sizeof sums[0], "seed %u", (unsigned)seed);
        state = seed + 1;
    }
}

/* The least leaf of all trees goes first; each tree keeps its own incomplete node. */
Test(counts_tree, trees_are_folded_together)
{
    uint8_t depth[4] = {0, 1, 0, 0}, kind[4] = {0, 1, 1, 1};
    uint32_t build[4] = {0}, place[4], n = 4;
    uint64_t address[4] = {10, 11, 10, 12}, ticks[4] = {0, 5, 2, 3};
    struct counts_tree trees[2] = {{.used = 2}, {.first = 2, .used = 2}};
    struct counts_nodes nodes = {depth, kind, build, address, ticks};
    cr_assert_eq(counts_tree_fold(trees, 2, &nodes, &n, 3, place, NULL), PROFD_OK);
    cr_assert_eq(n, 3);
    cr_assert(trees[0].used == 2 && trees[1].first == 2 && trees[1].used == 1);
    cr_assert(build[2] == COUNTS_NOWHERE && address[2] == COUNTS_FRAME_INCOMPLETE && ticks[2] == 5 && kind[2] == 0);
    cr_assert(place[0] == 0 && place[1] == 1 && place[2] == 2 && place[3] == 2);
    cr_assert_eq(counts_tree_fold(trees, 2, &nodes, &n, 2, place, NULL), PROFD_OK);
    cr_assert(n == 2 && ticks[0] == 5 && address[0] == 10 && kind[0] == COUNTS_NODE_RETURN && trees[1].first == 1);
}

static void finish(struct counts_stacks *s, struct counts *c)
{
    struct counts_sizes sizes = {0};
    struct profd_error e = {""};
    cr_assert_eq(counts_stacks_finish(s, &sizes, &e), PROFD_OK, "%s", e.sentence);
    cr_assert_eq(counts_init_sizes(c, &sizes, NULL), PROFD_OK);
    counts_stacks_copy(s, c);
    struct counts_nodes nodes = COUNTS_NODES(c);
    cr_assert_eq(counts_judge_trees(c->trees, c->tree_count, &nodes, c->node_count, 8, &e), PROFD_OK, "%s", e.sentence);
}

Test(counts_tree, stacks_added_one_by_one_are_a_tree)
{
    struct counts_frame frames[300];
    struct counts c;
    struct counts_stacks *s = counts_stacks_new();
    for (uint32_t i = 0; i < 300; i++) {
        frames[i] = (struct counts_frame){.address = i, .kind = i == 299};
    }
    cr_assert_eq(counts_stacks_add(s, 99, "seconds", 's', frames, 300, 2, NULL), PROFD_OK);
    cr_assert_eq(counts_stacks_add(s, 99, "seconds", 's', frames, 3, 4, NULL), PROFD_OK);
    cr_assert_eq(counts_stacks_add(s, 19, "seconds", 's', frames + 299, 1, 5, NULL), PROFD_OK);
    cr_assert_eq(counts_stacks_add(s, 19, "seconds", 's', frames, 0, 6, NULL), PROFD_OK);
    cr_assert_eq(counts_stacks_add(s, 19, "seconds", 's', frames, 4, 0, NULL), PROFD_OK);
    cr_assert_eq(counts_stacks_add(s, 19, "seconds", 's', frames + 298, 3, 1, NULL), PROFD_MALFORMED);
    finish(s, &c);
    cr_assert(c.tree_count == 2 && c.trees[0].rate == 19 && c.trees[1].rate == 99 && c.trees[0].used == 1);
    cr_assert_eq(c.trees[1].used, 3 + LIMIT_STACK_DEPTH);
    cr_assert(c.node_ticks[3] == 4 && c.node_address[3] == 2);
    cr_assert(c.node_build[4] == COUNTS_NOWHERE && c.node_address[4] == COUNTS_FRAME_INCOMPLETE);
    cr_assert(c.node_address[c.node_count - 1] == 299 && c.node_ticks[c.node_count - 1] == 2);
    counts_done(&c);
    counts_stacks_free(s);
}

/* More different stacks than are held: the tree is folded on the way, and no tick is lost. */
Test(counts_tree, many_stacks_are_folded_on_the_way)
{
    struct counts c;
    struct counts_stacks *s = counts_stacks_new();
    uint64_t sum = 0;
    state = 77;
    for (uint32_t i = 0; i < rounds(100000); i++) {
        struct counts_frame f[3] = {{.address = below(100)}, {.address = draw()}, {.address = 9, .kind = 1}};
        uint64_t ticks = i < 10 ? 1000 : 1;
        cr_assert_eq(counts_stacks_add(s, 99, "seconds", 's', f, 3, ticks, NULL), PROFD_OK);
        sum += ticks;
    }
    finish(s, &c);
    cr_assert_leq(c.node_count, LIMIT_STACK_NODES);
    uint32_t often = 0;
    for (uint32_t i = 0; i < c.node_count; i++) {
        sum -= c.node_ticks[i];
        often += c.node_kind[i] == COUNTS_NODE_PC && c.node_ticks[i] == 1000;
    }
    cr_assert(sum == 0 && often == 10);
    counts_done(&c);
    counts_stacks_free(s);
}
