#include "core/runs.h"

#include <string.h>

#include "proto/collector.h"
#include "proto/counts_tree.h"
#include "proto/limits.h"
#include "proto/sort.h"
#include "proto/sum.h"

#define REST UINT64_MAX                         /* ROLLUP_REST of core/rollup.h */
#define RUNS_NODES_MOST (2 * LIMIT_STACK_NODES) /* of a run, so that the memory of a sum is bounded */

static uint32_t rows_of(const struct counts *c, unsigned kind)
{
    const uint32_t of[COUNTS_KINDS] = {c->histogram_count, c->bin_count, c->arc_count, c->tree_count, c->node_count};
    return of[kind];
}

static void set_rows(struct counts *c, unsigned kind, uint32_t n)
{
    uint32_t *const of[COUNTS_KINDS] = {&c->histogram_count, &c->bin_count, &c->arc_count, &c->tree_count,
                                        &c->node_count};
    *of[kind] = n;
}

/* What is added up; NULL of histograms and trees. */
static uint64_t *numbers_of(const struct counts *c, unsigned kind)
{
    uint64_t *const of[COUNTS_KINDS] = {NULL, c->bin_ticks, c->calls, NULL, c->node_ticks};
    return of[kind];
}

static uint64_t **shares_at(struct counts_shares *s, unsigned kind)
{
    return kind == COUNTS_BIN_ROWS ? &s->bins : kind == COUNTS_ARC_ROWS ? &s->arcs : &s->nodes;
}

/* NULL: the run has none. */
static uint64_t *shares_of(const struct counts_shares *s, unsigned kind)
{
    uint64_t *const of[COUNTS_KINDS] = {NULL, s->bins, s->arcs, NULL, s->nodes};
    return of[kind];
}

static uint64_t capacity_of(const struct runs_run *run)
{
    uint64_t rows = 0;
    for (unsigned kind = 0; kind < COUNTS_KINDS; kind++) {
        rows += run->capacity[kind];
    }
    return rows;
}

struct runs_run *runs_take(struct runs *runs, const uint32_t rows[COUNTS_KINDS])
{
    struct runs_run **best = NULL; /* the smallest that holds them: a larger one may be needed for a larger sum */
    for (struct runs_run **at = &runs->spare; *at != NULL; at = &(*at)->next) {
        bool holds = best == NULL || capacity_of(*at) < capacity_of(*best);
        for (unsigned kind = 0; kind < COUNTS_KINDS; kind++) {
            holds = holds && (*at)->capacity[kind] >= rows[kind];
        }
        best = holds ? at : best;
    }
    if (best != NULL) {
        struct runs_run *spare = *best;
        *best = spare->next;
        for (unsigned kind = 0; kind < COUNTS_KINDS; kind++) {
            set_rows(&spare->r, kind, 0);
        }
        spare->r.saturated = false;
        return spare;
    }
    struct runs_run *run = ARENA_NEW(runs->arena, struct runs_run);
    for (unsigned kind = 0; kind < COUNTS_KINDS; kind++) {
        /* An eighth in reserve, so that a sum that grows a little can use the arrays again. */
        const uint64_t more = rows[kind] + (uint64_t)rows[kind] / 8 + 8;
        run->capacity[kind] = more > UINT32_MAX ? rows[kind] : (uint32_t)more;
    }
    run->r.sorted = true;
    for (const struct counts_column *c = counts_columns; c < counts_columns + COUNTS_COLUMNS; c++) {
        counts_column_set(&run->r, c, arena_take_array(runs->arena, run->capacity[c->kind], c->size));
    }
    for (unsigned kind = 0; kind < COUNTS_KINDS; kind++) {
        if (runs->shared[kind]) {
            *shares_at(&run->s, kind) = ARENA_ARRAY(runs->arena, (size_t)run->capacity[kind] * COUNTS_GROUPS, uint64_t);
        }
    }
    return run;
}

void runs_give(struct runs *runs, struct runs_run *run)
{
    run->next = runs->spare;
    runs->spare = run;
}

struct runs_run *runs_copy(struct runs *runs, const struct runs_run *from, uint32_t group)
{
    uint32_t rows[COUNTS_KINDS];
    for (unsigned kind = 0; kind < COUNTS_KINDS; kind++) {
        rows[kind] = rows_of(&from->r, kind);
    }
    struct runs_run *run = runs_take(runs, rows);
    for (const struct counts_column *c = counts_columns; c < counts_columns + COUNTS_COLUMNS; c++) {
        if (rows[c->kind] > 0) {
            memcpy(counts_column_of(&run->r, c), counts_column_of(&from->r, c), rows[c->kind] * c->size);
        }
    }
    for (unsigned kind = 0; kind < COUNTS_KINDS; kind++) {
        uint64_t *shares = shares_of(&run->s, kind);
        const uint64_t *numbers = numbers_of(&from->r, kind), *known = shares_of(&from->s, kind);
        set_rows(&run->r, kind, rows[kind]);
        if (shares == NULL || rows[kind] == 0) {
            continue;
        }
        const size_t bytes = (size_t)rows[kind] * COUNTS_GROUPS * sizeof *shares;
        if (group == COUNTS_GROUPS && known != NULL) {
            memcpy(shares, known, bytes);
            continue;
        }
        memset(shares, 0, bytes);
        for (uint32_t i = 0; i < rows[kind] && group < COUNTS_GROUPS; i++) {
            shares[(size_t)i * COUNTS_GROUPS + group] = numbers[i];
        }
    }
    run->r.saturated = from->r.saturated;
    return run;
}

/* ---- which rows become one ---- */

/* Ensures capacity, without keeping what is planned; there are at most 2^32−2 rows. */
static void plan_reserve(struct runs *runs, unsigned kind, uint64_t rows)
{
    struct runs_plan *p = &runs->plan[kind];
    if (rows >= RUNS_NONE) {
        arena_fail(runs->arena);
    }
    if (rows > p->capacity) {
        const uint64_t more = rows + rows / 4 + 64;
        p->capacity = more > UINT32_MAX ? UINT32_MAX : (uint32_t)more;
        p->left = ARENA_ARRAY(runs->arena, p->capacity, uint32_t);
        p->right = ARENA_ARRAY(runs->arena, p->capacity, uint32_t);
        const bool heads = kind == COUNTS_HISTOGRAM_ROWS || kind == COUNTS_TREE_ROWS;
        p->first = heads ? ARENA_ARRAY(runs->arena, p->capacity, uint32_t) : NULL;
    }
    p->n = 0;
    p->fresh = false;
}

static void plan_put(struct runs_plan *p, uint32_t left, uint32_t right)
{
    p->left[p->n] = left;
    p->right[p->n++] = right;
    p->fresh |= left == RUNS_NONE;
}

typedef int compare_rows(const struct counts *a, uint32_t i, const struct counts *b, uint32_t j);

static inline int compare_arcs(const struct counts *a, uint32_t i, const struct counts *b, uint32_t j)
{
    const int order = compare_pairs(a->from_build[i], b->from_build[j], a->from[i], b->from[j]);
    return order != 0 ? order : compare_pairs(a->to_build[i], b->to_build[j], a->to[i], b->to[j]);
}

static inline int compare_bins(const struct counts *a, uint32_t i, const struct counts *b, uint32_t j)
{
    return compare_u64(a->bin_index[i], b->bin_index[j]);
}

static inline int compare_nodes(const struct counts *a, uint32_t i, const struct counts *b, uint32_t j)
{
    const struct counts_nodes x = COUNTS_NODES(a), y = COUNTS_NODES(b);
    return counts_compare_nodes(&x, i, &y, j);
}

/* Plans the rows i to i_end−1 of a and j to j_end−1 of b. Always inline: the comparison is most of the work. */
__attribute__((always_inline)) static inline void plan_rows(struct runs_plan *p, const struct counts *a, uint32_t i,
                                                            uint32_t i_end, const struct counts *b, uint32_t j,
                                                            uint32_t j_end, compare_rows *compare)
{
    uint32_t *const left = p->left, *const right = p->right; /* else they are read again for every row */
    uint32_t k = p->n, fresh = 0;
    while (i < i_end && j < j_end) {
        const int order = compare(a, i, b, j);
        left[k] = order <= 0 ? i : RUNS_NONE;
        right[k++] = order >= 0 ? j : RUNS_NONE;
        i += order <= 0;
        j += order >= 0;
        fresh |= order > 0;
    }
    for (; i < i_end; i++) {
        left[k] = i;
        right[k++] = RUNS_NONE;
    }
    for (; j < j_end; j++) {
        left[k] = RUNS_NONE;
        right[k++] = j;
        fresh = 1;
    }
    p->n = k;
    p->fresh |= fresh != 0;
}

/* Histograms and their bins. */
static void plan_histograms(struct runs *runs, const struct counts *a, const struct counts *b)
{
    static const struct counts_histogram none = {0};
    struct runs_plan *heads = &runs->plan[COUNTS_HISTOGRAM_ROWS], *bins = &runs->plan[COUNTS_BIN_ROWS];
    for (uint32_t i = 0, j = 0; i < a->histogram_count || j < b->histogram_count;) {
        const int order = i == a->histogram_count ? 1
                          : j == b->histogram_count
                              ? -1
                              : counts_compare_geometry(&a->histograms[i].geometry, &b->histograms[j].geometry);
        const struct counts_histogram *x = order <= 0 ? &a->histograms[i] : &none,
                                      *y = order >= 0 ? &b->histograms[j] : &none;
        heads->first[heads->n] = bins->n;
        plan_put(heads, order <= 0 ? i++ : RUNS_NONE, order >= 0 ? j++ : RUNS_NONE);
        plan_rows(bins, a, x->first, x->first + x->used, b, y->first, y->first + y->used, compare_bins);
    }
}

/* Trees and their nodes. Of more than LIMIT_STACK_TREES the first ones stay. */
static void plan_trees(struct runs *runs, const struct counts *a, const struct counts *b)
{
    static const struct counts_tree none = {0};
    struct runs_plan *heads = &runs->plan[COUNTS_TREE_ROWS], *nodes = &runs->plan[COUNTS_NODE_ROWS];
    for (uint32_t i = 0, j = 0; (i < a->tree_count || j < b->tree_count) && heads->n < LIMIT_STACK_TREES;) {
        const int order = i == a->tree_count   ? 1
                          : j == b->tree_count ? -1
                                               : counts_compare_clocks(&a->trees[i], &b->trees[j]);
        const struct counts_tree *x = order <= 0 ? &a->trees[i] : &none, *y = order >= 0 ? &b->trees[j] : &none;
        heads->first[heads->n] = nodes->n;
        plan_put(heads, order <= 0 ? i++ : RUNS_NONE, order >= 0 ? j++ : RUNS_NONE);
        plan_rows(nodes, a, x->first, x->first + x->used, b, y->first, y->first + y->used, compare_nodes);
    }
}

/* ---- what they become ---- */

/* Shares are at most 2^63−1, so that no sum of two wraps. */
static void add_shares(const uint64_t *restrict from, uint64_t *restrict to)
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

/* A column of the sum: of equal rows the left one. It may be the left run's own. */
#define WRITE_COLUMN(type)                                                                                             \
    for (uint32_t k = 0; k < n; k++) {                                                                                 \
        const uint32_t i = left[k];                                                                                    \
        ((type *)out)[k] = i != RUNS_NONE ? ((const type *)a)[i] : ((const type *)b)[right[k]];                        \
    }                                                                                                                  \
    return;
static void write_column(const struct runs_plan *p, const void *a, const void *b, void *out, size_t size)
{
    const uint32_t *const left = p->left, *const right = p->right, n = p->n;
    switch (size) {
    case 1:
        WRITE_COLUMN(uint8_t)
    case 4:
        WRITE_COLUMN(uint32_t)
    case 8:
        WRITE_COLUMN(uint64_t)
    case sizeof(struct counts_histogram):
        WRITE_COLUMN(struct counts_histogram)
    default:
        WRITE_COLUMN(struct counts_tree)
    }
}

/* Adds the right run's numbers to those of rows that both have, from row first to row end − 1. */
static void add_numbers(const struct runs_plan *p, const uint64_t *b, uint64_t *out, uint32_t first, uint32_t end,
                        bool *saturated)
{
    for (uint32_t k = first; k < end; k++) {
        if (p->left[k] != RUNS_NONE && p->right[k] != RUNS_NONE) {
            sum_add(&out[k], b[p->right[k]], saturated);
        }
    }
}

/* Writes the planned rows of a kind to out, which may be a. within: it is, and row k of the plan is row k of a.
 * Histograms and trees go before what is in them. */
static void write_rows(const struct runs *runs, const struct runs_run *a, const struct runs_run *b,
                       struct runs_run *out, unsigned kind, bool within)
{
    const struct runs_plan *p = &runs->plan[kind];
    struct counts *r = &out->r;
    set_rows(r, kind, p->n);
    for (const struct counts_column *c = counts_columns; c < counts_columns + COUNTS_COLUMNS; c++) {
        if (c->kind == kind && !within) {
            write_column(p, counts_column_of(&a->r, c), counts_column_of(&b->r, c), counts_column_of(r, c), c->size);
        }
    }
    for (uint32_t k = 0; k < p->n && p->first != NULL; k++) {
        const uint32_t first = p->first[k], used = (k + 1 < p->n ? p->first[k + 1] : p[1].n) - first;
        if (kind == COUNTS_TREE_ROWS) {
            r->trees[k].first = first;
            r->trees[k].used = used;
            continue;
        }
        r->histograms[k].first = first;
        r->histograms[k].used = used;
        if (p->left[k] != RUNS_NONE && p->right[k] != RUNS_NONE) {
            counts_order_lower(&r->histograms[k].order, b->r.histograms[p->right[k]].order);
        }
    }
    for (uint32_t k = 0; k < p->n && kind == COUNTS_ARC_ROWS; k++) {
        if (p->left[k] != RUNS_NONE && p->right[k] != RUNS_NONE) {
            struct counts_order order = {r->commit[k], r->rank[k]};
            counts_order_lower(&order, (struct counts_order){b->r.commit[p->right[k]], b->r.rank[p->right[k]]});
            r->commit[k] = order.commit;
            r->rank[k] = order.rank;
        }
    }
    if (kind == COUNTS_ARC_ROWS || kind == COUNTS_NODE_ROWS) {
        add_numbers(p, numbers_of(&b->r, kind), numbers_of(r, kind), 0, p->n, &r->saturated);
    }
    for (uint32_t i = 0; i < r->histogram_count && kind == COUNTS_BIN_ROWS; i++) {
        const struct counts_histogram *h = &r->histograms[i];
        bool full = false; /* the collector's counters may stop without making a sum of ticks wrong */
        add_numbers(p, b->r.bin_ticks, r->bin_ticks, h->first, h->first + h->used,
                    collector_is_dimension(h->dimension) ? &full : &r->saturated);
    }
    uint64_t *shares = shares_of(&out->s, kind);
    for (uint32_t k = 0; k < p->n && shares != NULL; k++, shares += COUNTS_GROUPS) {
        const size_t i = p->left[k], j = p->right[k];
        const uint64_t *from =
            i != RUNS_NONE ? shares_of(&a->s, kind) + i * COUNTS_GROUPS : shares_of(&b->s, kind) + j * COUNTS_GROUPS;
        if (!within) {
            memmove(shares, from, COUNTS_GROUPS * sizeof *shares);
        }
        if (i != RUNS_NONE && j != RUNS_NONE) {
            add_shares(shares_of(&b->s, kind) + j * COUNTS_GROUPS, shares);
        }
    }
}

/* Folds leaves until no more than most nodes are left (core/rollup.h). O(1) if there are no more, else O(n log n). */
static void fold_nodes(struct runs *runs, struct runs_run *run, uint32_t most)
{
    struct counts *r = &run->r;
    const struct counts_nodes nodes = COUNTS_NODES(r);
    const uint32_t n = r->node_count;
    if (n <= most) {
        return;
    }
    struct arena *scratch = arena_new_child(runs->arena, 0);
    uint32_t *place = ARENA_ARRAY(scratch, n, uint32_t);
    if (counts_tree_fold(r->trees, r->tree_count, &nodes, &r->node_count, most, place, NULL)) {
        arena_fail(runs->arena);
    }
    const size_t left = (size_t)r->node_count * COUNTS_GROUPS;
    uint64_t *sums = run->s.nodes ? ARENA_ARRAY(scratch, left, uint64_t) : NULL;
    for (uint32_t i = 0; i < n && sums != NULL; i++) {
        add_shares(run->s.nodes + (size_t)i * COUNTS_GROUPS, sums + (size_t)place[i] * COUNTS_GROUPS);
    }
    if (sums != NULL) {
        memcpy(run->s.nodes, sums, left * sizeof *sums);
    }
    arena_free(scratch);
}

/* The sum of two runs: a itself if it has all keys of b, else another one, and a is given back. O(rows of both). */
static struct runs_run *merge(struct runs *runs, struct runs_run *a, const struct runs_run *b)
{
    uint32_t rows[COUNTS_KINDS];
    bool within = true;
    for (unsigned kind = 0; kind < COUNTS_KINDS; kind++) {
        plan_reserve(runs, kind, (uint64_t)rows_of(&a->r, kind) + rows_of(&b->r, kind));
    }
    plan_histograms(runs, &a->r, &b->r);
    plan_trees(runs, &a->r, &b->r);
    plan_rows(&runs->plan[COUNTS_ARC_ROWS], &a->r, 0, a->r.arc_count, &b->r, 0, b->r.arc_count, compare_arcs);
    for (unsigned kind = 0; kind < COUNTS_KINDS; kind++) {
        rows[kind] = runs->plan[kind].n;
        within = within && !runs->plan[kind].fresh && rows[kind] == rows_of(&a->r, kind);
    }
    struct runs_run *out = within ? a : runs_take(runs, rows);
    out->r.saturated = a->r.saturated || b->r.saturated;
    for (unsigned kind = 0; kind < COUNTS_KINDS; kind++) {
        write_rows(runs, a, b, out, kind, within);
    }
    if (!within) {
        runs_give(runs, a);
    }
    if (out->r.node_count >= RUNS_NODES_MOST) {
        fold_nodes(runs, out, LIMIT_STACK_NODES);
    }
    return out;
}

/* ---- the limit of arcs and bins ---- */

/* Finds all but the `keep` largest of n numbers, of equal ones the last. O(n) for each byte in which they differ. */
static bool *find_least(struct arena *a, const uint64_t *numbers, uint32_t n, uint32_t keep)
{
    bool *least = ARENA_ARRAY(a, n, bool);
    struct sort_item *items = ARENA_ARRAY(a, 2 * (size_t)n, struct sort_item);
    for (uint32_t i = 0; i < n; i++) {
        items[i] = (struct sort_item){~numbers[i], i};
    }
    sort_radix(items, items + n, n);
    for (uint32_t i = keep; i < n; i++) {
        least[items[i].value] = true;
    }
    return least;
}

/* Plans those of the rows first to end−1 that stay, and adds the others to the one row of `one`. */
static void plan_cut(struct runs *runs, const struct runs_run *run, unsigned kind, const bool *least, uint32_t first,
                     uint32_t end, struct runs_run *one)
{
    for (uint32_t i = first; i < end; i++) {
        if (!least[i]) {
            plan_put(&runs->plan[kind], i, RUNS_NONE);
            continue;
        }
        sum_saturate(numbers_of(&one->r, kind), numbers_of(&run->r, kind)[i]); /* the total says if it stops */
        if (runs->shared[kind]) {
            add_shares(shares_of(&run->s, kind) + (size_t)i * COUNTS_GROUPS, shares_of(&one->s, kind));
        }
    }
}

/* Leaves that many arcs and bins, and the collector's counters. Returns what becomes of the others. */
static struct runs_run *cut_rows(struct runs *runs, struct runs_run *run, uint32_t arcs, uint32_t bins,
                                 struct runs *rest)
{
    static const struct runs_run none = {0};
    struct counts *r = &run->r;
    struct runs_run *one = runs_take(rest, (const uint32_t[COUNTS_KINDS]){1, 1, 1, 0, 0});
    struct runs_run *sum = runs_copy(rest, &none, COUNTS_GROUPS);
    const bool *least = find_least(rest->arena, r->calls, r->arc_count, arcs);
    plan_reserve(runs, COUNTS_ARC_ROWS, r->arc_count);
    plan_reserve(runs, COUNTS_BIN_ROWS, r->bin_count);
    one->r.arc_count = r->arc_count > arcs;
    one->r.from_build[0] = one->r.to_build[0] = COUNTS_NOWHERE;
    one->r.from[0] = one->r.to[0] = REST;
    one->r.commit[0] = SUM_MAX;
    plan_cut(runs, run, COUNTS_ARC_ROWS, least, 0, r->arc_count, one);
    write_rows(runs, run, &none, run, COUNTS_ARC_ROWS, false);
    sum = merge(rest, sum, one);
    one->r.arc_count = 0;
    one->r.histogram_count = one->r.bin_count = 1;
    bool *few = find_least(rest->arena, r->bin_ticks, r->bin_count, bins);
    for (uint32_t i = 0; i < r->histogram_count; i++) {
        struct counts_histogram *h = &r->histograms[i], *whole = &one->r.histograms[0];
        const uint32_t first = runs->plan[COUNTS_BIN_ROWS].n;
        memset(few + h->first, false, collector_is_dimension(h->dimension) ? h->used : 0);
        if (one->s.bins != NULL) {
            memset(one->s.bins, 0, COUNTS_GROUPS * sizeof *one->s.bins);
        }
        one->r.bin_ticks[0] = 0;
        *whole = *h;
        whole->low = whole->first = 0;
        whole->high = REST;
        whole->bins = whole->used = 1;
        plan_cut(runs, run, COUNTS_BIN_ROWS, few, h->first, h->first + h->used, one);
        h->first = first;
        h->used = runs->plan[COUNTS_BIN_ROWS].n - first;
        sum = one->r.bin_ticks[0] > 0 ? merge(rest, sum, one) : sum;
    }
    write_rows(runs, run, &none, run, COUNTS_BIN_ROWS, false);
    return sum;
}

/* Cuts a run, which may be given back for another, as rollup_sum_limit says, if it has more than `times` the arcs and
 * bins, or histograms, that it may have. O(rows). */
static struct runs_run *cut(struct runs *runs, struct runs_run *run, uint32_t times)
{
    const uint32_t arcs = run->r.arc_count, bins = run->r.bin_count, half = runs->most / 2;
    if (runs->most > 0 && (uint64_t)arcs + bins > (uint64_t)times * runs->most) {
        struct runs rest = {.arena = arena_new_child(runs->arena, 0)};
        memcpy(rest.shared, runs->shared, sizeof rest.shared);
        const struct runs_run *sum = cut_rows(runs, run, runs->most - (bins < half ? bins : half),
                                              runs->most - (arcs < half ? arcs : half), &rest);
        run = merge(runs, run, sum);
        arena_free(rest.arena);
    }
    if (runs->most > 0 && run->r.histogram_count > times * LIMIT_HISTOGRAMS) {
        run->r.histogram_count = LIMIT_HISTOGRAMS;
        run->r.bin_count = run->r.histograms[LIMIT_HISTOGRAMS].first;
    }
    return run;
}

static uint64_t length(const struct runs_run *run)
{
    return (uint64_t)run->r.arc_count + run->r.bin_count + run->r.histogram_count + run->r.node_count;
}

void runs_push(struct runs *runs, struct runs_stack *s, struct runs_run *run, bool own)
{
    while (s->depth > 0 && length(s->runs[s->depth - 1]) <= 2 * length(run)) {
        struct runs_run *sum = merge(runs, s->runs[--s->depth], run);
        if (own) {
            runs_give(runs, run);
        }
        run = cut(runs, sum, 2);
        own = true;
    }
    s->runs[s->depth++] = own ? run : runs_copy(runs, run, COUNTS_GROUPS);
}

struct runs_run *runs_close(struct runs *runs, struct runs_stack *s)
{
    struct runs_run *run = s->depth > 0 ? s->runs[--s->depth] : runs_take(runs, (const uint32_t[COUNTS_KINDS]){0});
    while (s->depth > 0) {
        struct runs_run *sum = merge(runs, s->runs[--s->depth], run);
        runs_give(runs, run);
        run = sum;
    }
    return run;
}

struct runs_run *runs_limit(struct runs *runs, struct runs_run *run)
{
    run = cut(runs, run, 1);
    fold_nodes(runs, run, LIMIT_STACK_NODES);
    return run;
}
