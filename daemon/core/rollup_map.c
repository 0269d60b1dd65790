#include "core/rollup_map.h"

#include <string.h>

#include "core/rollup_trees.h"
#include "proto/sort.h"
#include "core/sum.h"
#include "proto/collector.h"

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
