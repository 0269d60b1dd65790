#include "core/rollup.h"

#include <string.h>

#include "core/runs.h"
#include "core/upload_sum.h"
#include "proto/collector.h"
#include "proto/counts_tree.h"
#include "proto/limits.h"
#include "proto/sort.h"
#include "proto/sum.h"

static void *take_from_arena(void *context, size_t size)
{
    ARENA_BOUNDARY(context, NULL); /* the decoder has a decompressor open */
    return arena_take(context, size);
}

enum profd_status rollup_decode_upload(struct arena *a, const uint8_t *in, size_t n, uint32_t builds,
                                       struct counts *out, struct profd_error *e)
{
    const struct counts_memory memory = {take_from_arena, a};
    return counts_decode_parts(in, n, builds, COUNTS_ALL, &memory, out, e);
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

static int compare_heads(const void *context, uint32_t x, uint32_t y)
{
    const struct counts_histogram *heads = context;
    return counts_compare_geometry(&heads[x].geometry, &heads[y].geometry);
}

/* True if two histograms of an upload have one geometry: such an upload cannot be sorted, only added up. */
static bool repeats(const struct counts *c)
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

/* The keys of an arc, the least important first. */
static uint64_t arc_key(const void *context, uint32_t i, int key)
{
    const struct counts *r = context;
    return key == 0 ? r->to[i] : key == 1 ? r->to_build[i] : key == 2 ? r->from[i] : r->from_build[i];
}

/* Arcs sorted by key, equal ones added up with their shares, into an empty run that has capacity for all. Rows of
 * counts that are not sorted arrived with the upload commit, in their order. */
static void sort_arcs(struct runs *runs, const struct counts *c, const uint64_t *shares, uint64_t commit,
                      struct runs_run *out)
{
    if (runs->scratch == NULL) {
        runs->scratch = arena_new_child(runs->arena, 0);
    }
    arena_reset(runs->scratch);
    struct sort_item *items = ARENA_ARRAY(runs->scratch, 2 * (size_t)c->arc_count, struct sort_item);
    for (uint32_t i = 0; i < c->arc_count; i++) {
        items[i].value = i;
    }
    sort_keys(items, items + c->arc_count, c->arc_count, 4, arc_key, c);
    if (out->s.arcs) {
        memset(out->s.arcs, 0, (size_t)c->arc_count * COUNTS_GROUPS * sizeof *out->s.arcs);
    }
    for (uint32_t k = 0; k < c->arc_count; k++) {
        const uint32_t i = items[k].value;
        const struct counts_order order =
            c->sorted ? (struct counts_order){c->commit[i], c->rank[i]} : (struct counts_order){commit, i};
        runs_add_arc(&out->r,
                     &(struct runs_arc){c->from_build[i], c->to_build[i], c->from[i], c->to[i], c->calls[i], order});
        for (size_t g = 0; out->s.arcs && shares && g < COUNTS_GROUPS; g++) {
            sum_saturate(&out->s.arcs[(out->r.arc_count - 1) * (size_t)COUNTS_GROUPS + g],
                         shares[(size_t)i * COUNTS_GROUPS + g]);
        }
    }
}

/* One upload, without repeated geometries and without its stacks, sorted. O(n) for each byte in which the keys differ.
 */
static struct runs_run *sort_upload(struct runs *runs, const struct counts *c, uint64_t commit)
{
    struct counts_histogram heads[64];
    uint32_t order[128];
    uint32_t bins = 0;
    for (uint32_t i = 0; i < c->histogram_count; i++) {
        bins += c->histograms[i].used;
        heads[i] = (struct counts_histogram){.geometry = c->histograms[i].geometry, .order = {commit, i}};
        order[i] = i;
    }
    struct runs_run *run = runs_take(runs, (const uint32_t[COUNTS_KINDS]){c->histogram_count, bins, c->arc_count});
    struct counts *r = &run->r;
    sort_arcs(runs, c, NULL, commit, run);
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
    return run;
}

/* Builds under other numbers: map[i] is that of build i. alone: builds without a number are left out. */
struct map {
    const uint32_t *map;
    uint32_t builds;
    bool alone;
};

static uint32_t map_build(const struct map *m, uint32_t build)
{
    return build == COUNTS_NOWHERE ? COUNTS_NOWHERE : m->map[build];
}

/* Each histogram as a run of its own: merging puts them in order, and together where two builds became one. The
 * collector's counters describe whole processes: they stay with the first remaining build. */
static void push_histograms(const struct map *m, struct runs *runs, struct runs_stack *stack, const struct runs_run *of)
{
    const struct counts *r = &of->r;
    for (uint32_t i = 0; i < r->histogram_count; i++) {
        struct counts_histogram h = r->histograms[i];
        uint32_t to = m->map[h.build];
        for (uint32_t k = 0; k < m->builds && to == COUNTS_NOWHERE && collector_is_dimension(h.dimension); k++) {
            to = m->map[k];
        }
        if (to == COUNTS_NOWHERE) {
            continue;
        }
        const struct runs_run one = {.r = {.histogram_count = 1,
                                           .histograms = &h,
                                           .bin_count = h.used,
                                           .bin_index = r->bin_index + h.first,
                                           .bin_ticks = r->bin_ticks + h.first,
                                           .saturated = r->saturated},
                                     .s.bins = of->s.bins ? of->s.bins + (size_t)h.first * COUNTS_GROUPS : NULL};
        h.build = to;
        h.first = 0;
        runs_push(runs, stack, runs_copy(runs, &one, COUNTS_GROUPS), true);
    }
}

/* The arcs that stay, sorted by their new numbers. */
static void push_arcs(const struct map *m, struct runs *runs, struct runs_stack *stack, const struct runs_run *of)
{
    struct runs_run arcs = {.r = of->r, .s.arcs = of->s.arcs};
    arcs.r.histogram_count = arcs.r.bin_count = arcs.r.tree_count = arcs.r.node_count = 0;
    struct runs_run *mapped = runs_copy(runs, &arcs, COUNTS_GROUPS);
    struct runs_run *sorted = runs_take(runs, (const uint32_t[COUNTS_KINDS]){0, 0, of->r.arc_count, 0, 0});
    struct counts *c = &mapped->r;
    uint32_t n = 0;
    for (uint32_t i = 0; i < c->arc_count; i++) {
        const uint32_t from = map_build(m, c->from_build[i]), to = map_build(m, c->to_build[i]);
        if (m->alone && from == COUNTS_NOWHERE && to == COUNTS_NOWHERE) {
            continue;
        }
        c->from_build[n] = from;
        c->to_build[n] = to;
        c->from[n] = m->alone && from == COUNTS_NOWHERE ? 0 : c->from[i];
        c->to[n] = m->alone && to == COUNTS_NOWHERE ? 0 : c->to[i];
        c->calls[n] = c->calls[i];
        c->commit[n] = c->commit[i];
        c->rank[n] = c->rank[i];
        if (mapped->s.arcs) {
            memmove(&mapped->s.arcs[n * (size_t)COUNTS_GROUPS], &mapped->s.arcs[i * (size_t)COUNTS_GROUPS],
                    COUNTS_GROUPS * sizeof *mapped->s.arcs);
        }
        n++;
    }
    c->arc_count = n;
    sorted->r.saturated = of->r.saturated;
    sort_arcs(runs, c, mapped->s.arcs, 0, sorted);
    runs_give(runs, mapped);
    runs_push(runs, stack, sorted, true);
}

static bool is_outside(const struct counts_frame *f)
{
    return f->build == COUNTS_NOWHERE && f->address == COUNTS_FRAME_OUTSIDE && f->kind == COUNTS_NODE_RETURN;
}

/* The nodes of a tree under their new numbers, each after its parent. source: of each of them, the stored node. Returns
 * how many there are: a frame outside joins the one above it, if builds are left out. */
static uint32_t map_nodes(const struct map *m, const struct counts *r, const struct counts_tree *t,
                          struct counts_node *nodes, uint32_t *source)
{
    const struct counts_nodes from = COUNTS_NODES(r);
    uint32_t path[LIMIT_STACK_DEPTH + 1] = {COUNTS_NOWHERE}, n = 0;
    for (uint32_t i = t->first; i < t->first + t->used; i++) {
        struct counts_frame f = counts_node_frame(&from, i);
        uint32_t *at = &path[from.depth[i] + 1];
        if (f.build != COUNTS_NOWHERE) {
            f.build = m->map[f.build];
            f.address = f.build == COUNTS_NOWHERE ? COUNTS_FRAME_OUTSIDE : f.address;
        }
        if (m->alone && is_outside(&f) && at[-1] != COUNTS_NOWHERE && is_outside(&nodes[at[-1]].frame)) {
            *at = at[-1];
            continue;
        }
        const bool counts = !m->alone || (f.kind == COUNTS_NODE_PC && f.build != COUNTS_NOWHERE);
        nodes[n] = (struct counts_node){at[-1], f, counts ? from.ticks[i] : 0};
        source[n] = i;
        *at = n++;
    }
    return n;
}

/* The trees that stay, with their nodes in the order of their new numbers. */
static enum profd_status push_trees(const struct map *m, struct runs *runs, struct runs_stack *stack,
                                    const struct runs_run *of, struct profd_error *e)
{
    struct arena *scratch = arena_new_child(runs->arena, 0);
    const uint32_t most = of->r.node_count;
    struct counts_node *nodes = ARENA_ARRAY(scratch, most, struct counts_node);
    uint32_t *source = ARENA_ARRAY(scratch, most, uint32_t), *place = ARENA_ARRAY(scratch, most, uint32_t);
    struct runs_run *run = runs_take(runs, (const uint32_t[COUNTS_KINDS]){0, 0, 0, of->r.tree_count, most});
    struct counts *r = &run->r;
    for (const struct counts_tree *t = of->r.trees; t < of->r.trees + of->r.tree_count; t++) {
        const uint32_t n = map_nodes(m, &of->r, t, nodes, source), first = r->node_count;
        const struct counts_nodes out = {r->node_depth + first, r->node_kind + first, r->node_build + first,
                                         r->node_address + first, r->node_ticks + first};
        uint32_t used = 0;
        TRY(counts_tree_sort(nodes, n, &out, &used, place, e));
        if (used == 0) {
            continue;
        }
        r->trees[r->tree_count] = *t;
        r->trees[r->tree_count].first = first;
        r->trees[r->tree_count++].used = used;
        r->node_count += used;
        if (!run->s.nodes) {
            continue;
        }
        uint64_t *shares = run->s.nodes + (size_t)first * COUNTS_GROUPS;
        memset(shares, 0, (size_t)used * COUNTS_GROUPS * sizeof *shares);
        for (uint32_t i = 0; i < n && of->s.nodes; i++) {
            for (size_t g = 0; g < COUNTS_GROUPS && nodes[i].ticks > 0; g++) {
                sum_add(&shares[place[i] * (size_t)COUNTS_GROUPS + g],
                        of->s.nodes[source[i] * (size_t)COUNTS_GROUPS + g], &r->saturated);
            }
        }
    }
    arena_free(scratch);
    runs_push(runs, stack, run, true);
    return PROFD_OK;
}

#define ROLLUP_SMALL 2048u /* rows; a larger upload is cheaper to sort and merge than to add up by key */

/* Uploads are gathered by group, without shares. They are added up by key, and become a run at the end. Only in a sum
 * with a limit large ones are sorted and merged, so that the limit can be kept on the way. Rollups are runs already. */
struct rollup_sum {
    struct runs plain, shared;
    struct runs_stack groups[COUNTS_GROUPS], sums;
    struct upload_sum *uploads[COUNTS_GROUPS];
};

struct rollup_sum *rollup_sum_new(struct arena *a, enum rollup_shares shares)
{
    struct rollup_sum *s = ARENA_NEW(a, struct rollup_sum);
    if (s) {
        s->plain.arena = s->shared.arena = a;
        s->shared.shared[COUNTS_NODE_ROWS] = shares != ROLLUP_PLAIN;
        s->shared.shared[COUNTS_BIN_ROWS] = s->shared.shared[COUNTS_ARC_ROWS] = shares == ROLLUP_ALL;
    }
    return s;
}

void rollup_sum_limit(struct rollup_sum *s)
{
    s->plain.most = s->shared.most = LIMIT_SUM_ROWS;
}

enum profd_status rollup_sum_add_upload(struct rollup_sum *s, const struct counts *c, uint64_t commit, uint32_t group,
                                        struct profd_error *e)
{
    struct arena *a = s->plain.arena;
    ARENA_BOUNDARY(a, profd_no_memory(e));
    const uint32_t stacks = s->shared.shared[COUNTS_NODE_ROWS] ? group : 0,
                   rows = s->shared.shared[COUNTS_ARC_ROWS] ? group : 0;
    FAIL_IF(stacks >= COUNTS_GROUPS, e, PROFD_REFUSED, "an upload of group %u: there are %u", group, COUNTS_GROUPS);
    if (c->sorted) { /* a run as it is, but for the number of the upload */
        struct runs_run run = {.r = *c};
        run.r.commit = ARENA_ARRAY(a, c->arc_count, uint64_t);
        run.r.histograms = ARENA_ARRAY(a, c->histogram_count, struct counts_histogram);
        for (uint32_t i = 0; i < c->arc_count; i++) {
            run.r.commit[i] = commit;
        }
        for (uint32_t i = 0; i < c->histogram_count; i++) {
            run.r.histograms[i] = c->histograms[i];
            run.r.histograms[i].order.commit = commit;
        }
        runs_push(&s->plain, &s->groups[stacks], &run, false);
        return PROFD_OK;
    }
    if (c->tree_count > 0) {
        /* The trees of an upload are a run as they are. */
        struct runs_run run = {.r = {.trees = c->trees, .node_kind = c->node_kind, .node_ticks = c->node_ticks}};
        run.r.tree_count = c->tree_count;
        run.r.node_count = c->node_count;
        run.r.node_depth = c->node_depth;
        run.r.node_build = c->node_build;
        run.r.node_address = c->node_address;
        runs_push(&s->plain, &s->groups[stacks], &run, false);
    }
    if (s->plain.most > 0 && (uint64_t)c->arc_count + c->bin_count > ROLLUP_SMALL && !repeats(c)) {
        runs_push(&s->plain, &s->groups[rows], sort_upload(&s->plain, c, commit), true);
        return PROFD_OK;
    }
    if (s->uploads[rows] == NULL) {
        s->uploads[rows] = upload_sum_new(a);
    }
    upload_sum_add(s->uploads[rows], c, commit);
    return PROFD_OK;
}

enum profd_status rollup_sum_add(struct rollup_sum *s, const struct counts *r, const struct counts_shares *shares,
                                 struct profd_error *e)
{
    ARENA_BOUNDARY(s->plain.arena, profd_no_memory(e));
    const bool *shared = s->shared.shared;
    struct runs_run run = {.r = *r};
    if (shares) {
        run.s = *shares;
    }
    if ((shared[COUNTS_NODE_ROWS] && !run.s.nodes) || (shared[COUNTS_ARC_ROWS] && (!run.s.bins || !run.s.arcs))) {
        runs_push(&s->shared, &s->sums, runs_copy(&s->shared, &run, COUNTS_GROUPS), true);
    } else {
        runs_push(&s->shared, &s->sums, &run, false);
    }
    return PROFD_OK;
}

enum profd_status rollup_sum_add_mapped(struct rollup_sum *s, const struct counts *r,
                                        const struct counts_shares *shares, const uint32_t *map, uint32_t builds,
                                        bool alone, struct profd_error *e)
{
    ARENA_BOUNDARY(s->plain.arena, profd_no_memory(e));
    const struct map m = {map, builds, alone};
    struct runs_run rows = {.r = *r};
    bool ascends = !alone; /* the order by new numbers is that by old ones, and nothing is left out */
    if (shares) {
        rows.s = *shares;
    }
    for (uint32_t i = 0; i < builds && ascends; i++) {
        ascends = map[i] != COUNTS_NOWHERE && (i == 0 || map[i] > map[i - 1]);
    }
    if (!ascends) {
        push_histograms(&m, &s->shared, &s->sums, &rows);
        push_arcs(&m, &s->shared, &s->sums, &rows);
        return push_trees(&m, &s->shared, &s->sums, &rows, e);
    }
    struct runs_run *run = runs_copy(&s->shared, &rows, COUNTS_GROUPS);
    for (uint32_t i = 0; i < run->r.histogram_count; i++) {
        run->r.histograms[i].build = map[run->r.histograms[i].build];
    }
    for (uint32_t i = 0; i < run->r.arc_count; i++) {
        run->r.from_build[i] = map_build(&m, run->r.from_build[i]);
        run->r.to_build[i] = map_build(&m, run->r.to_build[i]);
    }
    for (uint32_t i = 0; i < run->r.node_count; i++) {
        run->r.node_build[i] = map_build(&m, run->r.node_build[i]);
    }
    runs_push(&s->shared, &s->sums, run, true);
    return PROFD_OK;
}

/* Adds what the uploads of a group brought to the sum. A run without rows that need shares becomes a part of the sum as
 * it is. Its space for nodes has no shares, and so it must not be used again. */
static void push_group(struct rollup_sum *s, struct runs_run *own, uint32_t group)
{
    const bool *shared = s->shared.shared;
    if (shared[COUNTS_ARC_ROWS] || (shared[COUNTS_NODE_ROWS] && own->r.node_count > 0)) {
        own = runs_copy(&s->shared, own, group);
    } else if (shared[COUNTS_NODE_ROWS]) {
        own->capacity[COUNTS_NODE_ROWS] = 0;
    }
    runs_push(&s->shared, &s->sums, own, true);
}

enum profd_status rollup_sum_finish(struct rollup_sum *s, struct counts *out, struct counts_shares *shares,
                                    struct profd_error *e)
{
    uint64_t ticks, calls;
    ARENA_BOUNDARY(s->plain.arena, profd_no_memory(e));
    for (uint32_t g = 0; g < COUNTS_GROUPS; g++) { /* what a group brought joins the sum, as the group's share */
        if (s->uploads[g]) {
            runs_push(&s->plain, &s->groups[g], upload_sum_finish(s->uploads[g], &s->plain), true);
        }
        if (s->groups[g].depth > 0) {
            push_group(s, runs_close(&s->plain, &s->groups[g]), g);
        }
    }
    struct runs_run *run = runs_limit(&s->shared, runs_close(&s->shared, &s->sums));
    counts_totals(&run->r, &ticks, &calls);
    run->r.saturated |= ticks == SUM_MAX || calls == SUM_MAX;
    *out = run->r;
    if (shares != NULL) {
        *shares = run->s;
    }
    return PROFD_OK;
}

static int compare_histogram_orders(const void *context, uint32_t x, uint32_t y)
{
    const struct counts_histogram *h = context;
    return compare_pairs(h[x].order.commit, h[y].order.commit, h[x].order.rank, h[y].order.rank);
}

static uint64_t order_key(const void *context, uint32_t i, int key)
{
    const struct counts *r = context;
    return key == 0 ? r->rank[i] : r->commit[i];
}

void rollup_rank(struct counts *r, struct arena *a)
{
    const uint32_t n = r->arc_count, heads = r->histogram_count;
    struct sort_item *items = ARENA_ARRAY(a, 2 * (size_t)n, struct sort_item);
    uint32_t *order = ARENA_ARRAY(a, 2 * (size_t)heads, uint32_t);
    for (uint32_t i = 0; i < n; i++) {
        items[i].value = i;
    }
    sort_keys(items, items + n, n, 2, order_key, r);
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

enum profd_status rollup_grow(struct arena *scratch, const struct counts *old, const struct counts *more,
                              struct counts *out, struct profd_error *e)
{
    ARENA_BOUNDARY(scratch, profd_no_memory(e));
    struct counts sum;
    uint32_t clocks = 0; /* of the trees of both */
    for (uint32_t i = 0, k = 0; i < old->tree_count || k < more->tree_count; clocks++) {
        const int order = i == old->tree_count    ? 1
                          : k == more->tree_count ? -1
                                                  : counts_compare_clocks(&old->trees[i], &more->trees[k]);
        i += order <= 0;
        k += order >= 0;
    }
    FAIL_IF(clocks > LIMIT_STACK_TREES, e, PROFD_TOO_LARGE, "stacks of more than %u clocks", LIMIT_STACK_TREES);
    arena_reset(scratch);
    struct rollup_sum *s = rollup_sum_new(scratch, ROLLUP_PLAIN);
    TRY(rollup_sum_add_upload(s, old, 0, 0, e));
    TRY(rollup_sum_add_upload(s, more, 1, 0, e));
    TRY(rollup_sum_finish(s, &sum, NULL, e));
    TRY(counts_judge_sizes(sum.histogram_count, sum.bin_count, sum.arc_count, e));
    rollup_rank(&sum, scratch);
    *out = sum;
    return PROFD_OK;
}
