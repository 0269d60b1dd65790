#include "core/rollup.h"

#include "core/rollup_map.h"
#include "core/rollup_merge.h"
#include "core/rollup_trees.h"
#include "core/sum.h"
#include "proto/counts_tree.h"
#include "proto/sort.h"
#include "proto/limits.h"

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
