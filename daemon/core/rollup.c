#include "core/rollup.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "core/arena.h"
#include "core/profile.h"
#include "proto/sum.h"
#include "core/tree_sum.h"
#include "proto/collector.h"
#include "proto/counts.h"
#include "proto/counts_tree.h"
#include "proto/limits.h"
#include "proto/sort.h"

#define ROLLUP_NONE UINT32_MAX /* the run has no such row */

struct rollup_plan {
    struct arena *arena;
    uint32_t *left, *right; /* row k of the sum has row left[k] of the one run and right[k] of the other */
    size_t capacity;
};

/* Ensures capacity for that many rows, without keeping any; there are at most 2^32−2. */
void rollup_plan_reserve(struct rollup_plan *p, uint64_t rows);

static inline void rollup_plan_put(struct rollup_plan *p, uint32_t k, uint32_t i, uint32_t j)
{
    p->left[k] = i;
    p->right[k] = j;
}

/* Columns of the sum, rows 0 to n−1: of equal rows the left one. */
void rollup_plan_words(const struct rollup_plan *p, const uint32_t *a, const uint32_t *b, uint32_t *out, uint32_t n);
void rollup_plan_addresses(const struct rollup_plan *p, const uint64_t *a, const uint64_t *b, uint64_t *out,
                           uint32_t n);
/* Counts of the rows first to end−1, added up. *saturated becomes true when one stops at 2^63−1. */
void rollup_plan_sums(const struct rollup_plan *p, const uint64_t *a, const uint64_t *b, uint64_t *out, uint32_t first,
                      uint32_t end, bool *saturated);
/* Shares of the groups, added up. The row's number says whether one was limited. */
void rollup_plan_groups(const struct rollup_plan *p, const uint64_t *a, const uint64_t *b, uint64_t *out, uint32_t n);

/* Adds the shares of one row to those of another. */
void rollup_shares_add(const uint64_t *restrict from, uint64_t *restrict to);
/* Adds the shares of row j to row plan[j], for n rows. */
void rollup_groups_add(const uint32_t *plan, uint32_t n, const uint64_t *from, uint64_t *to);

#define ROLLUP_NODES_MOST (4 * LIMIT_STACK_NODES) /* of a run, so that the memory of a sum is bounded */

struct rollup_rows {
    uint32_t histograms, bins, arcs, trees, nodes;
};

/* A rollup with or without (NULL) its spread. Its arrays are taken from the arena and used again when it is given back.
 */
struct rollup_run {
    struct counts r;
    struct counts_shares s;
    struct rollup_rows capacity; /* how many rows the arrays hold */
    struct rollup_run *next;     /* of those given back */
};

struct rollup_runs {
    struct arena *arena;
    bool spread;   /* runs have one */
    uint32_t most; /* arcs and bins of a run; one with more than twice as many is cut. 0: without limit */
    struct rollup_run *spare;
    struct rollup_plan plan;
    struct sort_item *items; /* for sorting an upload: twice item_capacity of them */
    size_t item_capacity;
};

/* Ensures capacity for sorting n rows. */
void rollup_runs_reserve(struct rollup_runs *runs, uint32_t n);

/* An empty run with capacity for that many rows. */
struct rollup_run *rollup_run_take(struct rollup_runs *runs, const struct rollup_rows *rows);
void rollup_run_give(struct rollup_runs *runs, struct rollup_run *run);
/* A run of its own with the content of another. */
struct rollup_run *rollup_run_copy(struct rollup_runs *runs, const struct rollup_run *from);

/* The sum of two runs, which stay as they are; folded to LIMIT_STACK_NODES if it has ROLLUP_NODES_MOST. O(rows of
 * both). */
struct rollup_run *rollup_run_merge(struct rollup_runs *runs, const struct rollup_run *a, const struct rollup_run *b);

/* Cuts a run, which may be given back for another, as rollup_sum_limit says, if it has more than `times` the arcs and
 * bins, or histograms, that it may have. O(rows). */
struct rollup_run *rollup_run_cut(struct rollup_runs *runs, struct rollup_run *run, uint32_t times);

/* Runs that wait to be merged, each more than twice as long as the one above it, so that 34 would do. */
struct rollup_stack {
    struct rollup_run *runs[64];
    uint32_t depth;
};

/* Puts a run on the stack, after those on top that are not more than twice as long were merged with it: runs of the
 * same keys are added up at once, runs of different keys pairwise by size. own: it may be given back; else it is
 * copied. */
void rollup_stack_push(struct rollup_stack *s, struct rollup_runs *runs, struct rollup_run *run, bool own);
/* What is on the stack becomes one run, an empty one if there is nothing. */
struct rollup_run *rollup_stack_close(struct rollup_stack *s, struct rollup_runs *runs);

/* Where runs come from. Private to core/rollup*. NULL when memory is exhausted. */

/* True if two histograms of an upload have one geometry: such an upload cannot be sorted, only added up. */
bool rollup_run_repeats(const struct counts *c);
/* One upload, without repeated geometries, sorted; without spread. O(n) for each byte in which the keys differ. */
struct rollup_run *rollup_run_sort(struct rollup_runs *runs, const struct counts *c, uint64_t commit);
/* A finished profile; without spread. O(n). */
struct rollup_run *rollup_run_profile(struct rollup_runs *runs, const struct profile *p);
/* A copy with spread, all of it the group's. O(n). */
struct rollup_run *rollup_run_share(struct rollup_runs *runs, const struct rollup_run *from, uint32_t group);

struct rollup_map {
    const uint32_t *map;
    uint32_t builds;
    bool alone; /* builds without a number are left out, as rollup_sum_add_mapped says */
};

/* Pushes what the map makes of a rollup, without spread. */
void rollup_map_push(const struct rollup_map *m, struct rollup_runs *runs, struct rollup_stack *stack,
                     const struct counts *r);

/* A rollup and the shares of its nodes, or NULL. */
struct rollup_trees {
    const struct counts *r;
    const uint64_t *groups;
};
/* Makes the trees of out the sum of both, of which the first LIMIT_STACK_TREES stay; its arrays, groups and the plan
 * have capacity for the nodes of both. Sets out->saturated, but never to false. O(nodes). */
void rollup_trees_merge(struct rollup_plan *p, const struct rollup_trees *a, const struct rollup_trees *b,
                        struct counts *out, uint64_t *groups);

/* Plans in right, for each node of b, where it is in a. False: a lacks one. O(nodes). */
bool rollup_trees_plan_within(struct rollup_plan *p, const struct counts *a, const struct counts *b);
/* Adds the counts of b to a as planned. */
void rollup_trees_add(const struct rollup_plan *p, const struct counts *b, struct counts *a);

/* Copies trees and nodes. out has capacity. */
void rollup_trees_copy(const struct counts *from, struct counts *out);

/* Folds leaves until no more than most nodes are left, as rollup.h says, with their shares (or NULL). Scratch comes
 * from the arena, which has a boundary. O(1) if there are no more, else O(nodes·log nodes). */
void rollup_trees_fold(struct arena *a, struct counts *r, uint64_t *groups, uint32_t most);

void rollup_plan_reserve(struct rollup_plan *p, uint64_t rows)
{
    if (rows >= ROLLUP_NONE) {
        arena_fail(p->arena);
    }
    if (rows > p->capacity) {
        p->capacity = (size_t)rows + (size_t)rows / 4 + 64;
        p->left = ARENA_ARRAY(p->arena, p->capacity, uint32_t);
        p->right = ARENA_ARRAY(p->arena, p->capacity, uint32_t);
    }
}

void rollup_plan_words(const struct rollup_plan *p, const uint32_t *a, const uint32_t *b, uint32_t *out, uint32_t n)
{
    for (uint32_t k = 0; k < n; k++) {
        out[k] = p->left[k] != ROLLUP_NONE ? a[p->left[k]] : b[p->right[k]];
    }
}

void rollup_plan_addresses(const struct rollup_plan *p, const uint64_t *a, const uint64_t *b, uint64_t *out, uint32_t n)
{
    for (uint32_t k = 0; k < n; k++) {
        out[k] = p->left[k] != ROLLUP_NONE ? a[p->left[k]] : b[p->right[k]];
    }
}

void rollup_plan_sums(const struct rollup_plan *p, const uint64_t *a, const uint64_t *b, uint64_t *out, uint32_t first,
                      uint32_t end, bool *saturated)
{
    for (uint32_t k = first; k < end; k++) {
        uint32_t i = p->left[k], j = p->right[k];
        uint64_t sum = i != ROLLUP_NONE ? a[i] : 0;
        sum_add(&sum, j != ROLLUP_NONE ? b[j] : 0, saturated);
        out[k] = sum;
    }
}

/* Shares are at most 2^63−1, so that no sum of two wraps. */
void rollup_shares_add(const uint64_t *restrict from, uint64_t *restrict to)
{
    uint64_t all = 0;
    for (uint32_t g = 0; g < COUNTS_GROUPS; g++) {
        to[g] += from[g];
        all |= to[g];
    }
    for (uint32_t g = 0; all > SUM_MAX && g < COUNTS_GROUPS; g++) {
        to[g] = to[g] < SUM_MAX ? to[g] : SUM_MAX;
    }
}

void rollup_plan_groups(const struct rollup_plan *p, const uint64_t *a, const uint64_t *b, uint64_t *out, uint32_t n)
{
    for (uint32_t k = 0; k < n; k++, out += COUNTS_GROUPS) {
        uint32_t i = p->left[k], j = p->right[k];
        memmove(out, i != ROLLUP_NONE ? a + (size_t)i * COUNTS_GROUPS : b + (size_t)j * COUNTS_GROUPS,
                COUNTS_GROUPS * sizeof *out);
        if (i != ROLLUP_NONE && j != ROLLUP_NONE) {
            rollup_shares_add(b + (size_t)j * COUNTS_GROUPS, out);
        }
    }
}

void rollup_groups_add(const uint32_t *plan, uint32_t n, const uint64_t *from, uint64_t *to)
{
    for (uint32_t j = 0; j < n; j++) {
        rollup_shares_add(from + (size_t)j * COUNTS_GROUPS, to + (size_t)plan[j] * COUNTS_GROUPS);
    }
}

static struct tree_list list_of(const struct counts *r)
{
    return (struct tree_list){.trees = r->trees, .nodes = COUNTS_NODES(r), .count = r->tree_count};
}

void rollup_trees_merge(struct rollup_plan *p, const struct rollup_trees *a, const struct rollup_trees *b,
                        struct counts *out, uint64_t *groups)
{
    const struct tree_list x = list_of(a->r), y = list_of(b->r);
    const struct counts_nodes nodes = COUNTS_NODES(out);
    const struct tree_sources from = {p->left, p->right};
    tree_merge(&x, &y, out->trees, &nodes, &out->tree_count, &out->node_count, &from, &out->saturated);
    if (out->tree_count > LIMIT_STACK_TREES) {
        out->tree_count = LIMIT_STACK_TREES;
        out->node_count = out->trees[LIMIT_STACK_TREES].first;
    }
    if (groups != NULL) {
        rollup_plan_groups(p, a->groups, b->groups, groups, out->node_count);
    }
}

static bool plan_tree_within(uint32_t *plan, const struct counts_nodes *a, const struct counts_tree *x,
                             const struct counts_nodes *b, const struct counts_tree *y)
{
    uint32_t i = x->first;
    for (uint32_t j = y->first; j < y->first + y->used; j++, i++) {
        int order = -1;
        while (i < x->first + x->used && (order = counts_compare_nodes(a, i, b, j)) < 0) {
            i++;
        }
        if (order != 0) {
            return false;
        }
        plan[j] = i;
    }
    return true;
}

bool rollup_trees_plan_within(struct rollup_plan *p, const struct counts *a, const struct counts *b)
{
    const struct counts_nodes x = COUNTS_NODES(a), y = COUNTS_NODES(b);
    uint32_t i = 0;
    for (uint32_t k = 0; k < b->tree_count; k++, i++) {
        int order = -1;
        while (i < a->tree_count && (order = counts_compare_clocks(&a->trees[i], &b->trees[k])) < 0) {
            i++;
        }
        if (order != 0 || !plan_tree_within(p->right, &x, &a->trees[i], &y, &b->trees[k])) {
            return false;
        }
    }
    return true;
}

void rollup_trees_add(const struct rollup_plan *p, const struct counts *b, struct counts *a)
{
    for (uint32_t j = 0; j < b->node_count; j++) {
        sum_add(&a->node_ticks[p->right[j]], b->node_ticks[j], &a->saturated);
    }
}

void rollup_trees_copy(const struct counts *from, struct counts *out)
{
    const uint32_t n = from->node_count;
    out->tree_count = from->tree_count;
    out->node_count = n;
    if (n == 0) {
        return;
    }
    memcpy(out->trees, from->trees, from->tree_count * sizeof *out->trees);
    memcpy(out->node_depth, from->node_depth, n * sizeof *out->node_depth);
    memcpy(out->node_kind, from->node_kind, n * sizeof *out->node_kind);
    memcpy(out->node_build, from->node_build, n * sizeof *out->node_build);
    memcpy(out->node_address, from->node_address, n * sizeof *out->node_address);
    memcpy(out->node_ticks, from->node_ticks, n * sizeof *out->node_ticks);
}

void rollup_trees_fold(struct arena *a, struct counts *r, uint64_t *groups, uint32_t most)
{
    const struct counts_nodes nodes = COUNTS_NODES(r);
    const uint32_t n = r->node_count;
    if (n <= most) {
        return;
    }
    uint32_t *place = ARENA_ARRAY(a, n, uint32_t);
    if (counts_tree_fold(r->trees, r->tree_count, &nodes, &r->node_count, most, place, NULL)) {
        arena_fail(a);
    }
    if (groups == NULL) {
        return;
    }
    const size_t left = (size_t)r->node_count * COUNTS_GROUPS;
    uint64_t *sums = ARENA_ARRAY(a, left, uint64_t);
    for (uint32_t i = 0; i < n; i++) {
        rollup_shares_add(groups + (size_t)i * COUNTS_GROUPS, sums + (size_t)place[i] * COUNTS_GROUPS);
    }
    memcpy(groups, sums, left * sizeof *sums);
}

static void run_take_nodes(struct arena *a, struct rollup_run *run)
{
    struct counts *r = &run->r;
    r->trees = ARENA_ARRAY(a, run->capacity.trees, struct counts_tree);
    r->node_depth = ARENA_ARRAY(a, run->capacity.nodes, uint8_t);
    r->node_kind = ARENA_ARRAY(a, run->capacity.nodes, uint8_t);
    r->node_build = ARENA_ARRAY(a, run->capacity.nodes, uint32_t);
    r->node_address = ARENA_ARRAY(a, run->capacity.nodes, uint64_t);
    r->node_ticks = ARENA_ARRAY(a, run->capacity.nodes, uint64_t);
}

static void run_take_arrays(struct rollup_runs *runs, struct rollup_run *run)
{
    struct arena *a = runs->arena;
    struct counts *r = &run->r;
    const struct rollup_rows *n = &run->capacity;
    r->histograms = ARENA_ARRAY(a, n->histograms, struct counts_histogram);
    r->bin_index = ARENA_ARRAY(a, n->bins, uint32_t);
    r->bin_ticks = ARENA_ARRAY(a, n->bins, uint64_t);
    r->from_build = ARENA_ARRAY(a, n->arcs, uint32_t);
    r->to_build = ARENA_ARRAY(a, n->arcs, uint32_t);
    r->rank = ARENA_ARRAY(a, n->arcs, uint32_t);
    r->from = ARENA_ARRAY(a, n->arcs, uint64_t);
    r->to = ARENA_ARRAY(a, n->arcs, uint64_t);
    r->calls = ARENA_ARRAY(a, n->arcs, uint64_t);
    r->commit = ARENA_ARRAY(a, n->arcs, uint64_t);
    if (runs->spread) {
        run->s.bins = ARENA_ARRAY(a, (size_t)n->bins * COUNTS_GROUPS, uint64_t);
        run->s.arcs = ARENA_ARRAY(a, (size_t)n->arcs * COUNTS_GROUPS, uint64_t);
        run->s.nodes = ARENA_ARRAY(a, (size_t)n->nodes * COUNTS_GROUPS, uint64_t);
    }
    run_take_nodes(a, run);
}

/* Capacity with an eighth in reserve, so that a sum that grows a little can reuse its arrays. */
static uint32_t run_capacity(uint32_t rows)
{
    return rows > UINT32_MAX - rows / 8 - 8 ? rows : rows + rows / 8 + 8;
}

static bool run_holds(const struct rollup_run *run, const struct rollup_rows *rows)
{
    const struct rollup_rows *n = &run->capacity;
    return n->histograms >= rows->histograms && n->bins >= rows->bins && n->arcs >= rows->arcs &&
           n->trees >= rows->trees && n->nodes >= rows->nodes;
}

struct rollup_run *rollup_run_take(struct rollup_runs *runs, const struct rollup_rows *rows)
{
    for (struct rollup_run **at = &runs->spare; *at != NULL; at = &(*at)->next) {
        struct rollup_run *run = *at;
        if (!run_holds(run, rows)) {
            continue;
        }
        *at = run->next;
        run->r.histogram_count = run->r.bin_count = run->r.arc_count = run->r.tree_count = run->r.node_count = 0;
        run->r.saturated = false;
        return run;
    }
    struct rollup_run *run = ARENA_NEW(runs->arena, struct rollup_run);
    run->capacity =
        (struct rollup_rows){run_capacity(rows->histograms), run_capacity(rows->bins), run_capacity(rows->arcs),
                             rows->trees, rows->nodes > 0 ? run_capacity(rows->nodes) : 0};
    run->r.sorted = true;
    run_take_arrays(runs, run);
    return run;
}

void rollup_run_give(struct rollup_runs *runs, struct rollup_run *run)
{
    run->next = runs->spare;
    runs->spare = run;
}

struct rollup_run *rollup_run_copy(struct rollup_runs *runs, const struct rollup_run *from)
{
    struct rollup_run empty = {0};
    return rollup_run_merge(runs, &empty, from);
}

void rollup_runs_reserve(struct rollup_runs *runs, uint32_t n)
{
    if (n > runs->item_capacity) {
        runs->item_capacity = (size_t)n + n / 4;
        runs->items = ARENA_ARRAY(runs->arena, 2 * runs->item_capacity, struct sort_item);
    }
}

static int compare_arcs(const struct counts *a, uint32_t i, const struct counts *b, uint32_t j)
{
    if (a->from[i] != b->from[j] || a->from_build[i] != b->from_build[j]) {
        if (a->from_build[i] != b->from_build[j]) {
            return a->from_build[i] < b->from_build[j] ? -1 : 1;
        }
        return a->from[i] < b->from[j] ? -1 : 1;
    }
    if (a->to_build[i] != b->to_build[j]) {
        return a->to_build[i] < b->to_build[j] ? -1 : 1;
    }
    return a->to[i] < b->to[j] ? -1 : a->to[i] > b->to[j];
}

static uint32_t plan_arcs(struct rollup_runs *runs, const struct counts *a, const struct counts *b)
{
    uint32_t n = 0, i = 0, j = 0;
    while (i < a->arc_count && j < b->arc_count) {
        int order = compare_arcs(a, i, b, j);
        rollup_plan_put(&runs->plan, n++, order <= 0 ? i : ROLLUP_NONE, order >= 0 ? j : ROLLUP_NONE);
        i += order <= 0;
        j += order >= 0;
    }
    for (; i < a->arc_count; i++) {
        rollup_plan_put(&runs->plan, n++, i, ROLLUP_NONE);
    }
    for (; j < b->arc_count; j++) {
        rollup_plan_put(&runs->plan, n++, ROLLUP_NONE, j);
    }
    return n;
}

static uint32_t plan_histograms(struct rollup_runs *runs, const struct counts *a, const struct counts *b)
{
    uint32_t n = 0, i = 0, j = 0;
    while (i < a->histogram_count || j < b->histogram_count) {
        int order = i == a->histogram_count ? 1
                    : j == b->histogram_count
                        ? -1
                        : counts_compare_geometry(&a->histograms[i].geometry, &b->histograms[j].geometry);
        rollup_plan_put(&runs->plan, n++, order <= 0 ? i : ROLLUP_NONE, order >= 0 ? j : ROLLUP_NONE);
        i += order <= 0;
        j += order >= 0;
    }
    return n;
}

static void order_lower(struct counts_order *order, struct counts_order other)
{
    if (other.commit < order->commit || (other.commit == order->commit && other.rank < order->rank)) {
        *order = other;
    }
}

/* The bins of one histogram of the sum, which a, b or both (else NULL) have. Returns the number of rows planned so far.
 */
static uint32_t plan_bins(struct rollup_runs *runs, const struct counts *a, const struct counts_histogram *x,
                          const struct counts *b, const struct counts_histogram *y, uint32_t n)
{
    uint32_t i = x != NULL ? x->first : 0, i_end = x != NULL ? i + x->used : 0;
    uint32_t j = y != NULL ? y->first : 0, j_end = y != NULL ? j + y->used : 0;
    while (i < i_end && j < j_end) {
        uint32_t p = a->bin_index[i], q = b->bin_index[j];
        rollup_plan_put(&runs->plan, n++, p <= q ? i : ROLLUP_NONE, q <= p ? j : ROLLUP_NONE);
        i += p <= q;
        j += q <= p;
    }
    for (; i < i_end; i++) {
        rollup_plan_put(&runs->plan, n++, i, ROLLUP_NONE);
    }
    for (; j < j_end; j++) {
        rollup_plan_put(&runs->plan, n++, ROLLUP_NONE, j);
    }
    return n;
}

static void merge_arcs(const struct rollup_runs *runs, const struct rollup_run *a, const struct rollup_run *b,
                       struct rollup_run *out)
{
    uint32_t n = out->r.arc_count;
    rollup_plan_words(&runs->plan, a->r.from_build, b->r.from_build, out->r.from_build, n);
    rollup_plan_words(&runs->plan, a->r.to_build, b->r.to_build, out->r.to_build, n);
    rollup_plan_addresses(&runs->plan, a->r.from, b->r.from, out->r.from, n);
    rollup_plan_addresses(&runs->plan, a->r.to, b->r.to, out->r.to, n);
    rollup_plan_sums(&runs->plan, a->r.calls, b->r.calls, out->r.calls, 0, n, &out->r.saturated);
    for (uint32_t k = 0; k < out->r.arc_count; k++) {
        uint32_t i = runs->plan.left[k], j = runs->plan.right[k];
        struct counts_order order = i != ROLLUP_NONE ? (struct counts_order){a->r.commit[i], a->r.rank[i]}
                                                     : (struct counts_order){b->r.commit[j], b->r.rank[j]};
        if (j != ROLLUP_NONE) {
            order_lower(&order, (struct counts_order){b->r.commit[j], b->r.rank[j]});
        }
        out->r.commit[k] = order.commit;
        out->r.rank[k] = order.rank;
    }
    if (runs->spread) {
        rollup_plan_groups(&runs->plan, a->s.arcs, b->s.arcs, out->s.arcs, n);
    }
}

/* Ticks, and the collector's counters, which may be limited to 2^63−1 without making a sum of ticks wrong. */
static void merge_ticks(const struct rollup_runs *runs, const struct counts *a, const struct counts *b,
                        struct counts *out)
{
    uint32_t done = 0;
    for (uint32_t i = 0; i < out->histogram_count; i++) {
        const struct counts_histogram *h = &out->histograms[i];
        bool full = false;
        if (!collector_is_dimension(h->dimension)) {
            continue;
        }
        rollup_plan_sums(&runs->plan, a->bin_ticks, b->bin_ticks, out->bin_ticks, done, h->first, &out->saturated);
        rollup_plan_sums(&runs->plan, a->bin_ticks, b->bin_ticks, out->bin_ticks, h->first, h->first + h->used, &full);
        done = h->first + h->used;
    }
    rollup_plan_sums(&runs->plan, a->bin_ticks, b->bin_ticks, out->bin_ticks, done, out->bin_count, &out->saturated);
}

/* The n bins that are planned. */
static void merge_bins(const struct rollup_runs *runs, const struct rollup_run *a, const struct rollup_run *b,
                       struct rollup_run *out, uint32_t n)
{
    out->r.bin_count = n;
    rollup_plan_words(&runs->plan, a->r.bin_index, b->r.bin_index, out->r.bin_index, n);
    merge_ticks(runs, &a->r, &b->r, &out->r);
    if (runs->spread) {
        rollup_plan_groups(&runs->plan, a->s.bins, b->s.bins, out->s.bins, n);
    }
}

/* Histograms of out are planned in left and right of the heads; their bins take the plan over one by one, behind the
 * heads. */
static void merge_histograms(struct rollup_runs *runs, const struct rollup_run *a, const struct rollup_run *b,
                             struct rollup_run *out, uint32_t heads)
{
    for (uint32_t k = 0; k < heads; k++) { /* kept apart first, because the plan of the bins needs the space */
        uint32_t i = runs->plan.left[k], j = runs->plan.right[k];
        struct counts_histogram *h = &out->r.histograms[k];
        *h = i != ROLLUP_NONE ? a->r.histograms[i] : b->r.histograms[j];
        if (j != ROLLUP_NONE) {
            order_lower(&h->order, b->r.histograms[j].order);
        }
    }
    uint32_t n = 0, i = 0, j = 0;
    for (uint32_t k = 0; k < heads; k++) {
        struct counts_histogram *h = &out->r.histograms[k];
        const struct counts_histogram *x = i < a->r.histogram_count ? &a->r.histograms[i] : NULL;
        const struct counts_histogram *y = j < b->r.histogram_count ? &b->r.histograms[j] : NULL;
        x = x != NULL && counts_compare_geometry(&x->geometry, &h->geometry) == 0 ? x : NULL;
        y = y != NULL && counts_compare_geometry(&y->geometry, &h->geometry) == 0 ? y : NULL;
        i += x != NULL;
        j += y != NULL;
        h->first = n;
        n = plan_bins(runs, &a->r, x, &b->r, y, n);
        h->used = n - h->first;
    }
    out->r.histogram_count = heads;
    merge_bins(runs, a, b, out, n);
}

static uint64_t most(uint64_t a, uint64_t b)
{
    return a > b ? a : b;
}

struct rollup_run *rollup_run_merge(struct rollup_runs *runs, const struct rollup_run *a, const struct rollup_run *b)
{
    uint64_t heads = (uint64_t)a->r.histogram_count + b->r.histogram_count;
    uint64_t bins = (uint64_t)a->r.bin_count + b->r.bin_count, arcs = (uint64_t)a->r.arc_count + b->r.arc_count;
    uint64_t nodes = (uint64_t)a->r.node_count + b->r.node_count;
    rollup_plan_reserve(&runs->plan, most(most(heads, nodes), most(bins, arcs)));
    const struct rollup_rows rows = {.histograms = (uint32_t)heads,
                                     .bins = (uint32_t)bins,
                                     .arcs = plan_arcs(runs, &a->r, &b->r),
                                     .trees = a->r.tree_count + b->r.tree_count,
                                     .nodes = (uint32_t)nodes};
    struct rollup_run *out = rollup_run_take(runs, &rows);
    out->r.saturated = a->r.saturated || b->r.saturated;
    out->r.arc_count = rows.arcs;
    merge_arcs(runs, a, b, out);
    merge_histograms(runs, a, b, out, plan_histograms(runs, &a->r, &b->r));
    uint64_t *shares = runs->spread ? out->s.nodes : NULL;
    rollup_trees_merge(&runs->plan, &(struct rollup_trees){&a->r, a->s.nodes},
                       &(struct rollup_trees){&b->r, b->s.nodes}, &out->r, shares);
    if (out->r.node_count >= ROLLUP_NODES_MOST) {
        rollup_trees_fold(runs->arena, &out->r, shares, LIMIT_STACK_NODES);
    }
    return out;
}

/* Plans, for each arc of b, where it is in a. False: a lacks one. */
static bool plan_arcs_within(struct rollup_runs *runs, const struct counts *a, const struct counts *b)
{
    uint32_t i = 0;
    for (uint32_t j = 0; j < b->arc_count; j++, i++) {
        int order = -1;
        while (i < a->arc_count && (order = compare_arcs(a, i, b, j)) < 0) {
            i++;
        }
        if (order != 0) {
            return false;
        }
        runs->plan.left[j] = i;
    }
    return true;
}

/* The same of bins: row j of b is planned at first + j. *i: the histogram of a that was found last. */
static bool plan_histogram_within(uint32_t *plan, const struct counts *a, uint32_t *i, const struct counts *b,
                                  const struct counts_histogram *y)
{
    int order = -1;
    while (*i < a->histogram_count &&
           (order = counts_compare_geometry(&a->histograms[*i].geometry, &y->geometry)) < 0) {
        (*i)++;
    }
    if (order != 0) {
        return false;
    }
    const struct counts_histogram *x = &a->histograms[*i];
    uint32_t at = x->first;
    for (uint32_t j = y->first; j < y->first + y->used; j++, at++) {
        while (at < x->first + x->used && a->bin_index[at] < b->bin_index[j]) {
            at++;
        }
        if (at == x->first + x->used || a->bin_index[at] != b->bin_index[j]) {
            return false;
        }
        plan[j] = at;
    }
    return true;
}

static bool plan_bins_within(struct rollup_runs *runs, const struct counts *a, const struct counts *b)
{
    uint32_t i = 0;
    for (uint32_t k = 0; k < b->histogram_count; k++) {
        if (!plan_histogram_within(runs->plan.right, a, &i, b, &b->histograms[k])) {
            return false;
        }
    }
    return true;
}

static void add_arcs(const uint32_t *plan, const struct counts *from, struct counts *to)
{
    for (uint32_t j = 0; j < from->arc_count; j++) {
        const uint32_t i = plan[j];
        struct counts_order order = {to->commit[i], to->rank[i]};
        order_lower(&order, (struct counts_order){from->commit[j], from->rank[j]});
        to->commit[i] = order.commit;
        to->rank[i] = order.rank;
        sum_add(&to->calls[i], from->calls[j], &to->saturated);
    }
}

/* As merge_ticks: counters of the collector may be limited. */
static void add_bins(const uint32_t *plan, const struct counts *from, struct counts *to)
{
    uint32_t i = 0;
    for (uint32_t k = 0; k < from->histogram_count; k++) {
        const struct counts_histogram *h = &from->histograms[k];
        bool full = false, *saturated = collector_is_dimension(h->dimension) ? &full : &to->saturated;
        while (counts_compare_geometry(&to->histograms[i].geometry, &h->geometry) != 0) {
            i++;
        }
        order_lower(&to->histograms[i].order, h->order);
        for (uint32_t j = h->first; j < h->first + h->used; j++) {
            sum_add(&to->bin_ticks[plan[j]], from->bin_ticks[j], saturated);
        }
    }
}

/* Adds b to a where a has all of b's keys; false, with a as it was, where it does not. The plan has capacity for arcs
 * and bins together; nodes are planned again behind them. */
static bool run_add_within(struct rollup_runs *runs, struct rollup_run *a, const struct rollup_run *b)
{
    if (b->r.arc_count > a->r.arc_count || b->r.bin_count > a->r.bin_count || b->r.node_count > a->r.node_count) {
        return false;
    }
    rollup_plan_reserve(&runs->plan, most(most(b->r.arc_count, b->r.bin_count), b->r.node_count));
    if (!rollup_trees_plan_within(&runs->plan, &a->r, &b->r) || !plan_arcs_within(runs, &a->r, &b->r) ||
        !plan_bins_within(runs, &a->r, &b->r)) {
        return false;
    }
    a->r.saturated |= b->r.saturated;
    add_arcs(runs->plan.left, &b->r, &a->r);
    add_bins(runs->plan.right, &b->r, &a->r);
    if (runs->spread) {
        rollup_groups_add(runs->plan.left, b->r.arc_count, b->s.arcs, a->s.arcs);
        rollup_groups_add(runs->plan.right, b->r.bin_count, b->s.bins, a->s.bins);
    }
    if (b->r.node_count > 0) {
        rollup_trees_plan_within(&runs->plan, &a->r, &b->r);
        rollup_trees_add(&runs->plan, &b->r, &a->r);
        if (runs->spread) {
            rollup_groups_add(runs->plan.right, b->r.node_count, b->s.nodes, a->s.nodes);
        }
    }
    return true;
}

/* Finds all but the `keep` largest of n numbers, of equal ones the last. O(n) for each byte in which they differ. */
static bool *find_least(struct rollup_runs *runs, const uint64_t *numbers, uint32_t n, uint32_t keep)
{
    bool *least = ARENA_ARRAY(runs->arena, n, bool);
    rollup_runs_reserve(runs, n);
    for (uint32_t i = 0; i < n; i++) {
        runs->items[i] = (struct sort_item){~numbers[i], i};
    }
    sort_radix(runs->items, runs->items + n, n);
    for (uint32_t i = keep; i < n; i++) {
        least[runs->items[i].value] = true;
    }
    return least;
}

/* Plans those of the rows first to end-1 that stay as rows n and later, and adds the others to one row. Returns the
 * row behind those that stay. */
static uint32_t plan_cut(struct rollup_runs *runs, const bool *least, const uint64_t *numbers, const uint64_t *shares,
                         uint32_t first, uint32_t end, uint32_t n, uint64_t *number, uint64_t *share)
{
    bool ignored = false; /* the total says it */
    for (uint32_t i = first; i < end; i++) {
        if (!least[i]) {
            rollup_plan_put(&runs->plan, n++, i, ROLLUP_NONE);
            continue;
        }
        sum_add(number, numbers[i], &ignored);
        if (runs->spread) {
            rollup_shares_add(shares + (size_t)i * COUNTS_GROUPS, share);
        }
    }
    return n;
}

/* The sum of two runs, of which the first is given back. */
static struct rollup_run *merge_into(struct rollup_runs *runs, struct rollup_run *a, const struct rollup_run *b)
{
    struct rollup_run *sum = rollup_run_merge(runs, a, b);
    rollup_run_give(runs, a);
    return sum;
}

/* Leaves that many arcs and bins, and the collector's counters. Adds what becomes of the others to rest. */
static struct rollup_run *cut_rows(struct rollup_runs *runs, struct rollup_run *run, uint32_t arcs, uint32_t bins,
                                   struct rollup_runs *rest)
{
    static const struct rollup_run none = {0};
    struct counts *r = &run->r;
    struct rollup_run *one = rollup_run_take(rest, &(struct rollup_rows){1, 1, 1, 0, 0});
    struct rollup_run *sum = rollup_run_copy(rest, &none);
    bool *least = find_least(runs, r->calls, r->arc_count, arcs);
    one->r.arc_count = r->arc_count > arcs;
    one->r.from_build[0] = one->r.to_build[0] = COUNTS_NOWHERE;
    one->r.from[0] = one->r.to[0] = ROLLUP_REST;
    one->r.commit[0] = SUM_MAX;
    r->arc_count = plan_cut(runs, least, r->calls, run->s.arcs, 0, r->arc_count, 0, one->r.calls, one->s.arcs);
    merge_arcs(runs, run, &none, run);
    sum = merge_into(rest, sum, one);
    one->r.arc_count = 0;
    one->r.histogram_count = one->r.bin_count = 1;
    least = find_least(runs, r->bin_ticks, r->bin_count, bins);
    uint32_t n = 0;
    for (uint32_t i = 0; i < r->histogram_count; i++) {
        struct counts_histogram *h = &r->histograms[i], *whole = &one->r.histograms[0];
        memset(least + h->first, false, collector_is_dimension(h->dimension) ? h->used : 0);
        memset(one->s.bins, 0, runs->spread ? COUNTS_GROUPS * sizeof *one->s.bins : 0);
        one->r.bin_ticks[0] = 0;
        *whole = *h;
        whole->low = whole->first = 0;
        whole->high = ROLLUP_REST;
        whole->bins = whole->used = 1;
        h->used = plan_cut(runs, least, r->bin_ticks, run->s.bins, h->first, h->first + h->used, n, one->r.bin_ticks,
                           one->s.bins) -
                  n;
        h->first = n;
        n += h->used;
        sum = one->r.bin_ticks[0] > 0 ? merge_into(rest, sum, one) : sum;
    }
    merge_bins(runs, run, &none, run, n);
    return sum;
}

struct rollup_run *rollup_run_cut(struct rollup_runs *runs, struct rollup_run *run, uint32_t times)
{
    const uint32_t arcs = run->r.arc_count, bins = run->r.bin_count, half = runs->most / 2;
    if (runs->most > 0 && (uint64_t)arcs + bins > (uint64_t)times * runs->most) {
        struct rollup_runs rest = {.arena = runs->arena, .spread = runs->spread, .plan.arena = runs->arena};
        rollup_plan_reserve(&runs->plan, most(arcs, bins));
        const struct rollup_run *sum = cut_rows(runs, run, runs->most - (bins < half ? bins : half),
                                                runs->most - (arcs < half ? arcs : half), &rest);
        run = merge_into(runs, run, sum);
    }
    if (runs->most > 0 && run->r.histogram_count > times * LIMIT_HISTOGRAMS) {
        run->r.histogram_count = LIMIT_HISTOGRAMS;
        run->r.bin_count = run->r.histograms[LIMIT_HISTOGRAMS].first;
    }
    return run;
}

static uint64_t run_rows(const struct rollup_run *run)
{
    return (uint64_t)run->r.arc_count + run->r.bin_count + run->r.histogram_count + run->r.node_count;
}

void rollup_stack_push(struct rollup_stack *s, struct rollup_runs *runs, struct rollup_run *run, bool own)
{
    while (s->depth > 0 && run_rows(s->runs[s->depth - 1]) <= 2 * run_rows(run)) {
        struct rollup_run *below = s->runs[--s->depth];
        struct rollup_run *sum = run_add_within(runs, below, run) ? below : merge_into(runs, below, run);
        if (own) {
            rollup_run_give(runs, run);
        }
        run = rollup_run_cut(runs, sum, 2);
        own = true;
    }
    if (!own) {
        run = rollup_run_copy(runs, run);
    }
    s->runs[s->depth++] = run;
}

struct rollup_run *rollup_stack_close(struct rollup_stack *s, struct rollup_runs *runs)
{
    struct rollup_run *run = s->depth > 0 ? s->runs[--s->depth] : rollup_run_take(runs, &(struct rollup_rows){0});
    while (s->depth > 0) {
        struct rollup_run *sum = merge_into(runs, s->runs[--s->depth], run);
        rollup_run_give(runs, run);
        run = sum;
    }
    return run;
}

static int compare_heads(const void *context, uint32_t x, uint32_t y)
{
    const struct counts_histogram *heads = context;
    return counts_compare_geometry(&heads[x].geometry, &heads[y].geometry);
}

bool rollup_run_repeats(const struct counts *c)
{
    if (c->histogram_count > 64) { /* rare, and adding up is always right */
        return true;
    }
    for (uint32_t i = 0; i < c->histogram_count; i++) {
        for (uint32_t k = 0; k < i; k++) {
            if (counts_compare_geometry(&c->histograms[i].geometry, &c->histograms[k].geometry) == 0) {
                return true;
            }
        }
    }
    return false;
}

static void sort_histograms(const struct counts *c, uint64_t commit, struct counts *r)
{
    struct counts_histogram heads[64];
    uint32_t order[128];
    for (uint32_t i = 0; i < c->histogram_count; i++) {
        heads[i] = (struct counts_histogram){.geometry = c->histograms[i].geometry, .order = {commit, i}};
        order[i] = i;
    }
    sort_merge(order, order + 64, c->histogram_count, compare_heads, heads);
    for (uint32_t i = 0; i < c->histogram_count; i++) {
        const struct counts_histogram *from = &c->histograms[order[i]];
        struct counts_histogram *h = &r->histograms[i];
        *h = heads[order[i]];
        h->first = r->bin_count;
        h->used = from->used;
        bool full = false, is_collector = collector_is_dimension(h->dimension);
        for (uint32_t k = from->first; k < from->first + from->used; k++) {
            r->bin_index[r->bin_count] = c->bin_index[k];
            r->bin_ticks[r->bin_count] = 0;
            sum_add(&r->bin_ticks[r->bin_count++], c->bin_ticks[k], is_collector ? &full : &r->saturated);
        }
    }
    r->histogram_count = c->histogram_count;
}

/* Positions by key, equal keys in order of arrival. items holds twice as many. */
static void sort_arcs(const struct counts *c, struct sort_item *items)
{
    uint32_t n = c->arc_count;
    for (uint32_t i = 0; i < n; i++) {
        items[i] = (struct sort_item){c->to[i], i};
    }
    sort_radix(items, items + n, n);
    for (uint32_t i = 0; i < n; i++) {
        items[i].key = c->to_build[items[i].value];
    }
    sort_radix(items, items + n, n);
    for (uint32_t i = 0; i < n; i++) {
        items[i].key = c->from[items[i].value];
    }
    sort_radix(items, items + n, n);
    for (uint32_t i = 0; i < n; i++) {
        items[i].key = c->from_build[items[i].value];
    }
    sort_radix(items, items + n, n);
}

static void fill_arcs(const struct counts *c, const struct sort_item *items, uint64_t commit, struct counts *r)
{
    uint32_t n = 0;
    for (uint32_t k = 0; k < c->arc_count; k++) {
        uint32_t i = items[k].value;
        if (n == 0 || r->from[n - 1] != c->from[i] || r->to[n - 1] != c->to[i] ||
            r->from_build[n - 1] != c->from_build[i] || r->to_build[n - 1] != c->to_build[i]) {
            r->from_build[n] = c->from_build[i];
            r->to_build[n] = c->to_build[i];
            r->from[n] = c->from[i];
            r->to[n] = c->to[i];
            r->commit[n] = commit;
            r->rank[n] = i;
            r->calls[n++] = 0;
        }
        sum_add(&r->calls[n - 1], c->calls[i], &r->saturated);
    }
    r->arc_count = n;
}

static struct rollup_run *take_run(struct rollup_runs *runs, uint32_t histograms, uint64_t bins, uint32_t arcs)
{
    if (bins > UINT32_MAX) {
        arena_fail(runs->arena);
    }
    return rollup_run_take(runs, &(struct rollup_rows){.histograms = histograms, .bins = (uint32_t)bins, .arcs = arcs});
}

struct rollup_run *rollup_run_sort(struct rollup_runs *runs, const struct counts *c, uint64_t commit)
{
    uint64_t bins = 0;
    for (uint32_t i = 0; i < c->histogram_count; i++) {
        bins += c->histograms[i].used;
    }
    struct rollup_run *run = take_run(runs, c->histogram_count, bins, c->arc_count);
    rollup_runs_reserve(runs, c->arc_count);
    sort_arcs(c, runs->items);
    fill_arcs(c, runs->items, commit, &run->r);
    sort_histograms(c, commit, &run->r);
    return run;
}

struct rollup_run *rollup_run_profile(struct rollup_runs *runs, const struct profile *p)
{
    uint64_t bins = 0;
    for (uint32_t i = 0; i < p->histogram_count; i++) {
        bins += p->histograms[i].used;
    }
    struct rollup_run *run = take_run(runs, p->histogram_count, bins, p->arc_count);
    struct counts *r = &run->r;
    r->saturated = p->saturated;
    for (uint32_t i = 0; i < p->histogram_count; i++) {
        const struct profile_histogram *from = &p->histograms[i];
        struct counts_histogram *h = &r->histograms[i];
        *h = (struct counts_histogram){
            .geometry = from->geometry, .order = from->order, .first = r->bin_count, .used = from->used};
        for (uint32_t k = 0; k < from->used; k++, r->bin_count++) {
            r->bin_index[r->bin_count] = from->index[k];
            r->bin_ticks[r->bin_count] = from->ticks[k];
        }
    }
    r->histogram_count = p->histogram_count;
    for (uint32_t i = 0; i < p->arc_count; i++) {
        const struct profile_arc *arc = &p->arcs[i];
        r->from_build[i] = arc->from_build;
        r->to_build[i] = arc->to_build;
        r->from[i] = arc->from;
        r->to[i] = arc->to;
        r->calls[i] = arc->calls;
        r->commit[i] = arc->order.commit;
        r->rank[i] = arc->order.rank;
    }
    r->arc_count = p->arc_count;
    return run;
}

static void fill_shares(const uint64_t *numbers, uint32_t n, uint32_t group, uint64_t *out)
{
    memset(out, 0, (size_t)n * COUNTS_GROUPS * sizeof *out);
    for (uint32_t i = 0; i < n; i++) {
        out[(size_t)i * COUNTS_GROUPS + group] = numbers[i];
    }
}

struct rollup_run *rollup_run_share(struct rollup_runs *runs, const struct rollup_run *from, uint32_t group)
{
    const struct counts *f = &from->r;
    struct rollup_run *run = rollup_run_take(
        runs, &(struct rollup_rows){f->histogram_count, f->bin_count, f->arc_count, f->tree_count, f->node_count});
    struct counts *r = &run->r;
    memcpy(r->histograms, f->histograms, f->histogram_count * sizeof *f->histograms);
    memcpy(r->bin_index, f->bin_index, f->bin_count * sizeof *f->bin_index);
    memcpy(r->bin_ticks, f->bin_ticks, f->bin_count * sizeof *f->bin_ticks);
    memcpy(r->from_build, f->from_build, f->arc_count * sizeof *f->from_build);
    memcpy(r->to_build, f->to_build, f->arc_count * sizeof *f->to_build);
    memcpy(r->from, f->from, f->arc_count * sizeof *f->from);
    memcpy(r->to, f->to, f->arc_count * sizeof *f->to);
    memcpy(r->calls, f->calls, f->arc_count * sizeof *f->calls);
    memcpy(r->commit, f->commit, f->arc_count * sizeof *f->commit);
    memcpy(r->rank, f->rank, f->arc_count * sizeof *f->rank);
    r->histogram_count = f->histogram_count;
    r->bin_count = f->bin_count;
    r->arc_count = f->arc_count;
    r->saturated = f->saturated;
    fill_shares(f->bin_ticks, f->bin_count, group, run->s.bins);
    fill_shares(f->calls, f->arc_count, group, run->s.arcs);
    rollup_trees_copy(f, r);
    fill_shares(f->node_ticks, f->node_count, group, run->s.nodes);
    return run;
}

static uint32_t map_build(const struct rollup_map *m, uint32_t build)
{
    return build == COUNTS_NOWHERE ? COUNTS_NOWHERE : m->map[build];
}

/* The target of a histogram; COUNTS_NOWHERE if it is left out. The collector's counters describe whole processes: they
 * stay with the first remaining build. */
static uint32_t map_histogram(const struct rollup_map *m, const struct counts_histogram *h)
{
    uint32_t to = m->map[h->build];
    if (to == COUNTS_NOWHERE && collector_is_dimension(h->dimension)) {
        for (uint32_t i = 0; i < m->builds && to == COUNTS_NOWHERE; i++) {
            to = m->map[i];
        }
    }
    return to;
}

/* Order by new numbers is order by old ones, and nothing is left out. */
static bool map_ascends(const struct rollup_map *m)
{
    for (uint32_t i = 0; i < m->builds; i++) {
        if (m->map[i] == COUNTS_NOWHERE || (i > 0 && m->map[i] <= m->map[i - 1])) {
            return false;
        }
    }
    return !m->alone;
}

/* Each histogram as a run of its own: merging puts them in order, and together where two builds became one. */
static void push_histograms(const struct rollup_map *m, struct rollup_runs *runs, struct rollup_stack *stack,
                            const struct counts *r)
{
    for (uint32_t i = 0; i < r->histogram_count; i++) {
        const struct counts_histogram *h = &r->histograms[i];
        uint32_t to = map_histogram(m, h);
        if (to == COUNTS_NOWHERE) {
            continue;
        }
        struct rollup_run *run = rollup_run_take(runs, &(struct rollup_rows){.histograms = 1, .bins = h->used});
        run->r.histograms[0] = *h;
        run->r.histograms[0].build = to;
        run->r.histograms[0].first = 0;
        run->r.histogram_count = 1;
        run->r.bin_count = h->used;
        run->r.saturated = r->saturated;
        memcpy(run->r.bin_index, r->bin_index + h->first, h->used * sizeof *r->bin_index);
        memcpy(run->r.bin_ticks, r->bin_ticks + h->first, h->used * sizeof *r->bin_ticks);
        rollup_stack_push(stack, runs, run, true);
    }
}

/* The arcs that stay, in their old order. */
static uint32_t map_arcs(const struct rollup_map *m, const struct counts *r, struct counts *out)
{
    uint32_t n = 0;
    for (uint32_t i = 0; i < r->arc_count; i++) {
        uint32_t from = map_build(m, r->from_build[i]), to = map_build(m, r->to_build[i]);
        if (m->alone && from == COUNTS_NOWHERE && to == COUNTS_NOWHERE) {
            continue;
        }
        out->from_build[n] = from;
        out->to_build[n] = to;
        out->from[n] = m->alone && from == COUNTS_NOWHERE ? 0 : r->from[i];
        out->to[n] = m->alone && to == COUNTS_NOWHERE ? 0 : r->to[i];
        out->calls[n] = r->calls[i];
        out->commit[n] = r->commit[i];
        out->rank[n++] = r->rank[i];
    }
    return n;
}

static uint64_t arc_key(const struct counts *r, uint32_t i, int key)
{
    switch (key) {
    case 0:
        return r->to[i];
    case 1:
        return r->to_build[i];
    case 2:
        return r->from[i];
    default:
        return r->from_build[i];
    }
}

static bool same_arc(const struct counts *a, uint32_t i, const struct counts *b, uint32_t j)
{
    return a->from[i] == b->from[j] && a->to[i] == b->to[j] && a->from_build[i] == b->from_build[j] &&
           a->to_build[i] == b->to_build[j];
}

/* Row i of r behind the others of out, or into the last of them if that is the same arc. */
static void append_arc(const struct counts *r, uint32_t i, struct counts *out)
{
    uint32_t n = out->arc_count;
    if (n > 0 && same_arc(out, n - 1, r, i)) {
        sum_add(&out->calls[n - 1], r->calls[i], &out->saturated);
        if (r->commit[i] < out->commit[n - 1] ||
            (r->commit[i] == out->commit[n - 1] && r->rank[i] < out->rank[n - 1])) {
            out->commit[n - 1] = r->commit[i];
            out->rank[n - 1] = r->rank[i];
        }
        return;
    }
    out->from_build[n] = r->from_build[i];
    out->to_build[n] = r->to_build[i];
    out->from[n] = r->from[i];
    out->to[n] = r->to[i];
    out->calls[n] = r->calls[i];
    out->commit[n] = r->commit[i];
    out->rank[n] = r->rank[i];
    out->arc_count++;
}

static void push_arcs(const struct rollup_map *m, struct rollup_runs *runs, struct rollup_stack *stack,
                      const struct counts *r)
{
    const struct rollup_rows rows = {.arcs = r->arc_count};
    struct rollup_run *mapped = rollup_run_take(runs, &rows), *sorted = rollup_run_take(runs, &rows);
    rollup_runs_reserve(runs, r->arc_count);
    uint32_t n = map_arcs(m, r, &mapped->r);
    struct sort_item *items = runs->items;
    for (uint32_t i = 0; i < n; i++) {
        items[i].value = i;
    }
    for (int key = 0; key < 4; key++) {
        for (uint32_t i = 0; i < n; i++) {
            items[i].key = arc_key(&mapped->r, items[i].value, key);
        }
        sort_radix(items, items + n, n);
    }
    sorted->r.saturated = r->saturated;
    for (uint32_t i = 0; i < n; i++) {
        append_arc(&mapped->r, items[i].value, &sorted->r);
    }
    rollup_run_give(runs, mapped);
    rollup_stack_push(stack, runs, sorted, true);
}

void rollup_map_push(const struct rollup_map *m, struct rollup_runs *runs, struct rollup_stack *stack,
                     const struct counts *r)
{
    struct counts rows = *r;
    rows.tree_count = rows.node_count = 0;
    if (map_ascends(m)) {
        const struct rollup_run same = {.r = rows};
        struct rollup_run *run = rollup_run_copy(runs, &same);
        for (uint32_t i = 0; i < run->r.histogram_count; i++) {
            run->r.histograms[i].build = m->map[run->r.histograms[i].build];
        }
        for (uint32_t i = 0; i < run->r.arc_count; i++) {
            run->r.from_build[i] = map_build(m, run->r.from_build[i]);
            run->r.to_build[i] = map_build(m, run->r.to_build[i]);
        }
        rollup_stack_push(stack, runs, run, true);
    } else {
        push_histograms(m, runs, stack, &rows);
        push_arcs(m, runs, stack, &rows);
    }
}

static void *take_from_arena(void *context, size_t size)
{
    ARENA_BOUNDARY(context, NULL); /* the decoder has a decompressor open */
    return arena_take(context, size);
}

enum profd_status rollup_decode(struct arena *a, const uint8_t *in, size_t n, uint32_t builds, bool arcs_only,
                                struct counts *out, struct profd_error *e)
{
    const struct counts_memory memory = {take_from_arena, a};
    struct counts decoded;
    enum profd_status status =
        counts_decode_parts(in, n, builds, arcs_only ? COUNTS_ARCS : COUNTS_ALL, &memory, &decoded, e);
    if (!status && !decoded.sorted) {
        status = profd_error_set(e, PROFD_MALFORMED, "its rows are not sorted");
    }
    if (status) {
        return status == PROFD_NO_MEMORY ? status : profd_error_wrap(e, PROFD_DAMAGED, "a sum");
    }
    *out = decoded;
    return PROFD_OK;
}

enum profd_status rollup_decode_spread(struct arena *a, const struct counts *r, const uint8_t *in, size_t n,
                                       struct counts_shares *out, struct profd_error *e)
{
    const struct counts_memory memory = {take_from_arena, a};
    enum profd_status status = counts_decode_shares(r, in, n, &memory, out, e);
    return !status || status == PROFD_NO_MEMORY ? status : profd_error_wrap(e, PROFD_DAMAGED, "a sum");
}

#define ROLLUP_SMALL 2048u /* rows; a larger upload is cheaper to sort and merge than to add up by key */

/* Uploads are gathered by group, without spread: small ones are added up as any profile is, and become a run at the
 * end; large ones are sorted. Rollups are runs already. */
struct rollup_sum {
    struct rollup_runs plain, spread;
    struct rollup_stack groups[COUNTS_GROUPS], sums;
    struct profile_sum *small[COUNTS_GROUPS];
    uint32_t builds[COUNTS_GROUPS];  /* introduced in each */
    uint32_t identity[LIMIT_BUILDS]; /* builds keep their positions */
};

static struct rollup_sum *sum_new(struct arena *a, bool spread)
{
    struct rollup_sum *s = ARENA_NEW(a, struct rollup_sum);
    if (!s) {
        return NULL;
    }
    s->plain = (struct rollup_runs){.arena = a, .plan.arena = a};
    s->spread = (struct rollup_runs){.arena = a, .plan.arena = a, .spread = spread};
    for (uint32_t i = 0; i < LIMIT_BUILDS; i++) {
        s->identity[i] = i;
    }
    return s;
}

struct rollup_sum *rollup_sum_new(struct arena *a)
{
    return sum_new(a, true);
}

struct rollup_sum *rollup_sum_new_plain(struct arena *a)
{
    return sum_new(a, false);
}

void rollup_sum_limit(struct rollup_sum *s)
{
    s->plain.most = s->spread.most = LIMIT_SUM_ROWS;
}

/* One more than the highest build index in the counts. */
static uint64_t counts_builds(const struct counts *c)
{
    uint64_t most = 0;
    for (uint32_t i = 0; i < c->histogram_count; i++) {
        most = c->histograms[i].build >= most ? (uint64_t)c->histograms[i].build + 1 : most;
    }
    for (uint32_t i = 0; i < c->node_count; i++) {
        most = c->node_build[i] != COUNTS_NOWHERE && c->node_build[i] >= most ? (uint64_t)c->node_build[i] + 1 : most;
    }
    for (uint32_t i = 0; i < c->arc_count; i++) {
        most = c->from_build[i] != COUNTS_NOWHERE && c->from_build[i] >= most ? (uint64_t)c->from_build[i] + 1 : most;
        most = c->to_build[i] != COUNTS_NOWHERE && c->to_build[i] >= most ? (uint64_t)c->to_build[i] + 1 : most;
    }
    return most;
}

static void sum_add_small(struct rollup_sum *s, const struct counts *c, uint32_t builds, uint64_t commit,
                          uint32_t group)
{
    if (s->small[group] == NULL) {
        s->small[group] = profile_sum_new(s->plain.arena);
    }
    /* A profile names its builds; here their positions are their names. */
    while (s->builds[group] < builds) {
        profile_sum_build(s->small[group], arena_format(s->plain.arena, "%u", s->builds[group]));
        s->builds[group]++;
    }
    struct counts rows = *c; /* its trees are sorted already */
    rows.tree_count = rows.node_count = 0;
    profile_sum_add(s->small[group], &rows, s->identity, commit, false);
}

/* Sorted counts are a run as they are, but for the number of the upload. */
static void sum_add_sorted(struct rollup_sum *s, const struct counts *c, uint64_t commit, uint32_t group)
{
    struct rollup_run run = {.r = *c};
    run.r.commit = ARENA_ARRAY(s->plain.arena, c->arc_count, uint64_t);
    run.r.histograms = ARENA_ARRAY(s->plain.arena, c->histogram_count, struct counts_histogram);
    for (uint32_t i = 0; i < c->arc_count; i++) {
        run.r.commit[i] = commit;
    }
    for (uint32_t i = 0; i < c->histogram_count; i++) {
        run.r.histograms[i] = c->histograms[i];
        run.r.histograms[i].order.commit = commit;
    }
    rollup_stack_push(&s->groups[group], &s->plain, &run, false);
}

enum profd_status rollup_sum_add_upload(struct rollup_sum *s, const struct counts *c, uint64_t commit, uint32_t group,
                                        struct profd_error *e)
{
    ARENA_BOUNDARY(s->plain.arena, profd_no_memory(e));
    uint64_t builds = counts_builds(c);
    uint32_t g = s->spread.spread ? group : 0;
    if (g >= COUNTS_GROUPS) {
        return profd_error_set(e, PROFD_REFUSED, "an upload of group %u: there are %u", group, COUNTS_GROUPS);
    }
    if (builds > LIMIT_BUILDS) {
        return profd_error_set(e, PROFD_REFUSED, "an upload of build %llu: at most %u", (unsigned long long)builds,
                               LIMIT_BUILDS);
    }
    if (c->sorted) {
        sum_add_sorted(s, c, commit, g);
        return PROFD_OK;
    }
    if (c->tree_count > 0) {
        /* The trees of an upload are a run as they are. */
        struct rollup_run run = {.r = {.trees = c->trees, .node_kind = c->node_kind, .node_ticks = c->node_ticks}};
        run.r.tree_count = c->tree_count;
        run.r.node_count = c->node_count;
        run.r.node_depth = c->node_depth;
        run.r.node_build = c->node_build;
        run.r.node_address = c->node_address;
        rollup_stack_push(&s->groups[g], &s->plain, &run, false);
    }
    if ((uint64_t)c->arc_count + c->bin_count <= ROLLUP_SMALL || rollup_run_repeats(c)) {
        sum_add_small(s, c, (uint32_t)builds, commit, g);
    } else {
        rollup_stack_push(&s->groups[g], &s->plain, rollup_run_sort(&s->plain, c, commit), true);
    }
    return PROFD_OK;
}

enum profd_status rollup_sum_add(struct rollup_sum *s, const struct counts *r, const struct counts_shares *spread,
                                 struct profd_error *e)
{
    ARENA_BOUNDARY(s->plain.arena, profd_no_memory(e));
    struct rollup_run run = {.r = *r};
    if (s->spread.spread) {
        run.s = *spread;
    }
    rollup_stack_push(&s->sums, &s->spread, &run, false);
    return PROFD_OK;
}

void rollup_sum_add_profile(struct rollup_sum *s, const struct profile *p)
{
    rollup_stack_push(&s->sums, &s->spread, rollup_run_profile(&s->spread, p), true);
}

void rollup_sum_add_mapped(struct rollup_sum *s, const struct counts *r, const uint32_t *map, uint32_t builds,
                           bool alone)
{
    const struct rollup_map m = {map, builds, alone};
    rollup_map_push(&m, &s->spread, &s->sums, r);
}

/* What a group brought joins the sum, as the group's share. */
static enum profd_status sum_close_group(struct rollup_sum *s, uint32_t group, struct profd_error *e)
{
    if (s->small[group]) {
        /* The small uploads of a group join its large ones. */
        struct profile *p;
        TRY(profile_sum_finish(s->small[group], &p, e));
        rollup_stack_push(&s->groups[group], &s->plain, rollup_run_profile(&s->plain, p), true);
    }
    if (s->groups[group].depth == 0) {
        return PROFD_OK;
    }
    struct rollup_run *run = rollup_stack_close(&s->groups[group], &s->plain);
    struct rollup_run *shared = s->spread.spread ? rollup_run_share(&s->spread, run, group) : run;
    rollup_stack_push(&s->sums, &s->spread, shared, shared != run);
    rollup_run_give(&s->plain, run);
    return PROFD_OK;
}

enum profd_status rollup_sum_finish(struct rollup_sum *s, struct counts *out, struct counts_shares *spread,
                                    struct profd_error *e)
{
    uint64_t ticks, calls;
    ARENA_BOUNDARY(s->plain.arena, profd_no_memory(e));
    for (uint32_t g = 0; g < COUNTS_GROUPS; g++) {
        TRY(sum_close_group(s, g, e));
    }
    struct rollup_run *run = rollup_run_cut(&s->spread, rollup_stack_close(&s->sums, &s->spread), 1);
    rollup_trees_fold(s->spread.arena, &run->r, run->s.nodes, LIMIT_STACK_NODES);
    counts_totals(&run->r, &ticks, &calls);
    run->r.saturated |= ticks == SUM_MAX || calls == SUM_MAX;
    *out = run->r;
    if (spread != NULL) {
        *spread = run->s;
    }
    return PROFD_OK;
}

static int compare_histogram_orders(const void *context, uint32_t x, uint32_t y)
{
    const struct counts_histogram *h = context;
    const struct counts_order a = h[x].order, b = h[y].order;
    return a.commit != b.commit ? (a.commit < b.commit ? -1 : 1) : a.rank < b.rank ? -1 : a.rank > b.rank;
}

void rollup_rank(struct counts *r, struct arena *a)
{
    const uint32_t n = r->arc_count, heads = r->histogram_count;
    struct sort_item *items = ARENA_ARRAY(a, 2 * (size_t)n, struct sort_item);
    uint32_t *order = ARENA_ARRAY(a, 2 * (size_t)heads, uint32_t);
    for (uint32_t i = 0; i < n; i++) {
        items[i] = (struct sort_item){r->rank[i], i};
    }
    sort_radix(items, items + n, n);
    for (uint32_t i = 0; i < n; i++) {
        items[i].key = r->commit[items[i].value];
    }
    sort_radix(items, items + n, n);
    for (uint32_t i = 0; i < n; i++) {
        r->commit[items[i].value] = 0;
        r->rank[items[i].value] = i;
    }
    for (uint32_t i = 0; i < heads; i++) {
        order[i] = i;
    }
    sort_merge(order, order + heads, heads, compare_histogram_orders, r->histograms);
    for (uint32_t i = 0; i < heads; i++) {
        r->histograms[order[i]].order = (struct counts_order){0, i};
    }
}

/* How many clocks the trees of both have. */
static uint32_t count_clocks(const struct counts *a, const struct counts *b)
{
    uint32_t n = 0;
    for (uint32_t i = 0, k = 0; i < a->tree_count || k < b->tree_count; n++) {
        const int order = i == a->tree_count   ? 1
                          : k == b->tree_count ? -1
                                               : counts_compare_clocks(&a->trees[i], &b->trees[k]);
        i += order <= 0;
        k += order >= 0;
    }
    return n;
}

enum profd_status rollup_grow(struct arena *scratch, const struct counts *old, const struct counts *more,
                              struct counts *out, struct profd_error *e)
{
    ARENA_BOUNDARY(scratch, profd_no_memory(e));
    struct counts sum;
    if (count_clocks(old, more) > LIMIT_STACK_TREES) {
        return profd_error_set(e, PROFD_TOO_LARGE, "stacks of more than %u clocks", LIMIT_STACK_TREES);
    }
    arena_reset(scratch);
    struct rollup_sum *s = rollup_sum_new_plain(scratch);
    TRY(rollup_sum_add_upload(s, old, 0, 0, e));
    TRY(rollup_sum_add_upload(s, more, 1, 0, e));
    TRY(rollup_sum_finish(s, &sum, NULL, e));
    TRY(counts_judge_sizes(sum.histogram_count, sum.bin_count, sum.arc_count, e));
    rollup_rank(&sum, scratch);
    *out = sum;
    return PROFD_OK;
}

/* A sum as the profile that reports are made from. */

static void make_histograms(const struct counts *r, struct arena *a, struct profile *p, bool *stopped)
{
    p->histograms = ARENA_ARRAY(a, r->histogram_count, struct profile_histogram);
    for (uint32_t i = 0; i < r->histogram_count; i++) {
        const struct counts_histogram *from = &r->histograms[i];
        struct profile_histogram *h = &p->histograms[i];
        *h = (struct profile_histogram){.geometry = from->geometry,
                                        .used = from->used,
                                        .index = r->bin_index + from->first,
                                        .ticks = r->bin_ticks + from->first,
                                        .order = from->order};
        for (uint32_t k = 0; k < h->used && !collector_is_dimension(h->dimension); k++) {
            *stopped |= h->ticks[k] == SUM_MAX;
            sum_add(&p->ticks, h->ticks[k], &p->saturated);
        }
    }
    p->histogram_count = r->histogram_count;
}

void rollup_make_profile(const struct counts *r, struct arena *a, struct profile *p)
{
    bool stopped = false;
    p->ticks = p->calls = 0;
    p->saturated = false;
    make_histograms(r, a, p, &stopped);
    p->arcs = ARENA_ARRAY(a, r->arc_count, struct profile_arc);
    for (uint32_t i = 0; i < r->arc_count; i++) {
        p->arcs[i] = (struct profile_arc){r->from_build[i], r->to_build[i], r->from[i],
                                          r->to[i],         r->calls[i],    {r->commit[i], r->rank[i]}};
        stopped |= r->calls[i] == SUM_MAX;
        sum_add(&p->calls, r->calls[i], &p->saturated);
    }
    p->arc_count = r->arc_count;
    /* What saturated may have been left out since (another build, the histograms). */
    p->saturated |= r->saturated && stopped;
}
