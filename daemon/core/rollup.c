#include "core/rollup.h"

#include <string.h>

#include "core/runs.h"
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

/* Arcs sorted by key, equal ones added up, behind nothing in out, which has capacity for all. Rows of counts that are
 * not sorted arrived with the upload commit, in their order. */
static void sort_arcs(struct runs *runs, const struct counts *c, uint64_t commit, struct counts *out)
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
    uint32_t n = 0;
    for (uint32_t k = 0; k < c->arc_count; k++) {
        const uint32_t i = items[k].value;
        const struct counts_order order =
            c->sorted ? (struct counts_order){c->commit[i], c->rank[i]} : (struct counts_order){commit, i};
        if (n == 0 || out->from[n - 1] != c->from[i] || out->to[n - 1] != c->to[i] ||
            out->from_build[n - 1] != c->from_build[i] || out->to_build[n - 1] != c->to_build[i]) {
            out->from_build[n] = c->from_build[i];
            out->to_build[n] = c->to_build[i];
            out->from[n] = c->from[i];
            out->to[n] = c->to[i];
            out->commit[n] = order.commit;
            out->rank[n] = order.rank;
            out->calls[n++] = 0;
        }
        struct counts_order first = {out->commit[n - 1], out->rank[n - 1]};
        counts_order_lower(&first, order);
        out->commit[n - 1] = first.commit;
        out->rank[n - 1] = first.rank;
        sum_add(&out->calls[n - 1], c->calls[i], &out->saturated);
    }
    out->arc_count = n;
}

static struct runs_run *take_run(struct runs *runs, uint32_t histograms, uint64_t bins, uint32_t arcs)
{
    if (bins > UINT32_MAX) {
        arena_fail(runs->arena);
    }
    return runs_take(runs, (const uint32_t[COUNTS_KINDS]){histograms, (uint32_t)bins, arcs, 0, 0});
}

/* One upload, without repeated geometries and without its stacks, sorted. O(n) for each byte in which the keys differ.
 */
static struct runs_run *sort_upload(struct runs *runs, const struct counts *c, uint64_t commit)
{
    struct counts_histogram heads[64];
    uint32_t order[128];
    uint64_t bins = 0;
    for (uint32_t i = 0; i < c->histogram_count; i++) {
        bins += c->histograms[i].used;
        heads[i] = (struct counts_histogram){.geometry = c->histograms[i].geometry, .order = {commit, i}};
        order[i] = i;
    }
    struct runs_run *run = take_run(runs, c->histogram_count, bins, c->arc_count);
    struct counts *r = &run->r;
    sort_arcs(runs, c, commit, r);
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

/* A finished profile. O(n). */
static struct runs_run *run_of_profile(struct runs *runs, const struct profile *p)
{
    uint64_t bins = 0;
    for (uint32_t i = 0; i < p->histogram_count; i++) {
        bins += p->histograms[i].used;
    }
    struct runs_run *run = take_run(runs, p->histogram_count, bins, p->arc_count);
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
static void push_histograms(const struct map *m, struct runs *runs, struct runs_stack *stack, const struct counts *r)
{
    for (uint32_t i = 0; i < r->histogram_count; i++) {
        const struct counts_histogram *h = &r->histograms[i];
        uint32_t to = m->map[h->build];
        for (uint32_t k = 0; k < m->builds && to == COUNTS_NOWHERE && collector_is_dimension(h->dimension); k++) {
            to = m->map[k];
        }
        if (to == COUNTS_NOWHERE) {
            continue;
        }
        struct runs_run *run = take_run(runs, 1, h->used, 0);
        run->r.histograms[0] = *h;
        run->r.histograms[0].build = to;
        run->r.histograms[0].first = 0;
        run->r.histogram_count = 1;
        run->r.bin_count = h->used;
        run->r.saturated = r->saturated;
        memcpy(run->r.bin_index, r->bin_index + h->first, h->used * sizeof *r->bin_index);
        memcpy(run->r.bin_ticks, r->bin_ticks + h->first, h->used * sizeof *r->bin_ticks);
        runs_push(runs, stack, run, true);
    }
}

/* The arcs that stay, sorted by their new numbers. */
static void push_arcs(const struct map *m, struct runs *runs, struct runs_stack *stack, const struct counts *r)
{
    struct runs_run *mapped = take_run(runs, 0, 0, r->arc_count), *sorted = take_run(runs, 0, 0, r->arc_count);
    struct counts *out = &mapped->r;
    for (uint32_t i = 0; i < r->arc_count; i++) {
        const uint32_t from = map_build(m, r->from_build[i]), to = map_build(m, r->to_build[i]), n = out->arc_count;
        if (m->alone && from == COUNTS_NOWHERE && to == COUNTS_NOWHERE) {
            continue;
        }
        out->from_build[n] = from;
        out->to_build[n] = to;
        out->from[n] = m->alone && from == COUNTS_NOWHERE ? 0 : r->from[i];
        out->to[n] = m->alone && to == COUNTS_NOWHERE ? 0 : r->to[i];
        out->calls[n] = r->calls[i];
        out->commit[n] = r->commit[i];
        out->rank[n] = r->rank[i];
        out->arc_count++;
    }
    sorted->r.saturated = r->saturated;
    sort_arcs(runs, out, 0, &sorted->r);
    runs_give(runs, mapped);
    runs_push(runs, stack, sorted, true);
}

#define ROLLUP_SMALL 2048u /* rows; a larger upload is cheaper to sort and merge than to add up by key */

/* Uploads are gathered by group, without spread: small ones are added up as any profile is, and become a run at the
 * end; large ones are sorted. Rollups are runs already. */
struct rollup_sum {
    struct runs plain, spread;
    struct runs_stack groups[COUNTS_GROUPS], sums;
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
    s->plain = (struct runs){.arena = a};
    s->spread = (struct runs){.arena = a, .spread = spread};
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

enum profd_status rollup_sum_add_upload(struct rollup_sum *s, const struct counts *c, uint64_t commit, uint32_t group,
                                        struct profd_error *e)
{
    struct arena *a = s->plain.arena;
    ARENA_BOUNDARY(a, profd_no_memory(e));
    uint64_t builds = counts_builds(c);
    uint32_t g = s->spread.spread ? group : 0;
    if (g >= COUNTS_GROUPS) {
        return profd_error_set(e, PROFD_REFUSED, "an upload of group %u: there are %u", group, COUNTS_GROUPS);
    }
    if (builds > LIMIT_BUILDS) {
        return profd_error_set(e, PROFD_REFUSED, "an upload of build %llu: at most %u", (unsigned long long)builds,
                               LIMIT_BUILDS);
    }
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
        runs_push(&s->plain, &s->groups[g], &run, false);
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
        runs_push(&s->plain, &s->groups[g], &run, false);
    }
    if ((uint64_t)c->arc_count + c->bin_count > ROLLUP_SMALL && !repeats(c)) {
        runs_push(&s->plain, &s->groups[g], sort_upload(&s->plain, c, commit), true);
        return PROFD_OK;
    }
    if (s->small[g] == NULL) {
        s->small[g] = profile_sum_new(a);
    }
    /* A profile names its builds; here their positions are their names. */
    for (; s->builds[g] < builds; s->builds[g]++) {
        profile_sum_build(s->small[g], arena_format(a, "%u", s->builds[g]));
    }
    struct counts rows = *c;
    rows.tree_count = rows.node_count = 0;
    profile_sum_add(s->small[g], &rows, s->identity, commit, false);
    return PROFD_OK;
}

enum profd_status rollup_sum_add(struct rollup_sum *s, const struct counts *r, const struct counts_shares *spread,
                                 struct profd_error *e)
{
    ARENA_BOUNDARY(s->plain.arena, profd_no_memory(e));
    struct runs_run run = {.r = *r};
    if (s->spread.spread) {
        run.s = *spread;
    }
    runs_push(&s->spread, &s->sums, &run, false);
    return PROFD_OK;
}

void rollup_sum_add_profile(struct rollup_sum *s, const struct profile *p)
{
    runs_push(&s->spread, &s->sums, run_of_profile(&s->spread, p), true);
}

void rollup_sum_add_mapped(struct rollup_sum *s, const struct counts *r, const uint32_t *map, uint32_t builds,
                           bool alone)
{
    const struct map m = {map, builds, alone};
    struct runs_run rows = {.r = *r};
    bool ascends = !alone; /* the order by new numbers is that by old ones, and nothing is left out */
    rows.r.tree_count = rows.r.node_count = 0;
    for (uint32_t i = 0; i < builds && ascends; i++) {
        ascends = map[i] != COUNTS_NOWHERE && (i == 0 || map[i] > map[i - 1]);
    }
    if (!ascends) {
        push_histograms(&m, &s->spread, &s->sums, &rows.r);
        push_arcs(&m, &s->spread, &s->sums, &rows.r);
        return;
    }
    struct runs_run *run = runs_copy(&s->spread, &rows, COUNTS_GROUPS);
    for (uint32_t i = 0; i < run->r.histogram_count; i++) {
        run->r.histograms[i].build = map[run->r.histograms[i].build];
    }
    for (uint32_t i = 0; i < run->r.arc_count; i++) {
        run->r.from_build[i] = map_build(&m, run->r.from_build[i]);
        run->r.to_build[i] = map_build(&m, run->r.to_build[i]);
    }
    runs_push(&s->spread, &s->sums, run, true);
}

enum profd_status rollup_sum_finish(struct rollup_sum *s, struct counts *out, struct counts_shares *spread,
                                    struct profd_error *e)
{
    uint64_t ticks, calls;
    ARENA_BOUNDARY(s->plain.arena, profd_no_memory(e));
    for (uint32_t g = 0; g < COUNTS_GROUPS; g++) { /* what a group brought joins the sum, as the group's share */
        if (s->small[g]) {
            struct profile *p;
            TRY(profile_sum_finish(s->small[g], &p, e));
            runs_push(&s->plain, &s->groups[g], run_of_profile(&s->plain, p), true);
        }
        if (s->groups[g].depth > 0) {
            struct runs_run *own = runs_close(&s->plain, &s->groups[g]);
            struct runs_run *shared = s->spread.spread ? runs_copy(&s->spread, own, g) : own;
            runs_push(&s->spread, &s->sums, shared, shared != own);
            runs_give(&s->plain, own);
        }
    }
    struct runs_run *run = runs_limit(&s->spread, runs_close(&s->spread, &s->sums));
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
    if (clocks > LIMIT_STACK_TREES) {
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

void rollup_make_profile(const struct counts *r, struct arena *a, struct profile *p)
{
    bool stopped = false;
    p->ticks = p->calls = 0;
    p->saturated = false;
    p->histograms = ARENA_ARRAY(a, r->histogram_count, struct profile_histogram);
    p->histogram_count = r->histogram_count;
    for (uint32_t i = 0; i < r->histogram_count; i++) {
        const struct counts_histogram *from = &r->histograms[i];
        struct profile_histogram *h = &p->histograms[i];
        *h = (struct profile_histogram){.geometry = from->geometry,
                                        .used = from->used,
                                        .index = r->bin_index + from->first,
                                        .ticks = r->bin_ticks + from->first,
                                        .order = from->order};
        for (uint32_t k = 0; k < h->used && !collector_is_dimension(h->dimension); k++) {
            stopped |= h->ticks[k] == SUM_MAX;
            sum_add(&p->ticks, h->ticks[k], &p->saturated);
        }
    }
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
