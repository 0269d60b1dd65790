#include "core/rollup_merge.h"

#include <string.h>

#include "core/rollup_trees.h"
#include "core/sum.h"
#include "proto/collector.h"

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
