#include "core/rollup_map.h"

#include <string.h>

#include "core/sort.h"
#include "core/sum.h"
#include "proto/collector.h"

static uint32_t map_build(const struct rollup_map *m, uint32_t build)
{
    return build == COUNTS_NOWHERE ? COUNTS_NOWHERE : m->map[build];
}

/* The target of a histogram; COUNTS_NOWHERE if it is left out. The collector's counters describe whole processes: they
 * stay with the first remaining build. */
static uint32_t map_histogram(const struct rollup_map *m, const struct rollup_histogram *h)
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

static bool push_renumbered(const struct rollup_map *m, struct rollup_runs *runs, struct rollup_stack *stack,
                            const struct rollup *r)
{
    const struct rollup_run same = {.r = *r};
    struct rollup_run *run = rollup_run_copy(runs, &same);
    if (run == NULL) {
        return false;
    }
    for (uint32_t i = 0; i < run->r.histogram_count; i++) {
        run->r.histograms[i].build = m->map[run->r.histograms[i].build];
    }
    for (uint32_t i = 0; i < run->r.arc_count; i++) {
        run->r.from_build[i] = map_build(m, run->r.from_build[i]);
        run->r.to_build[i] = map_build(m, run->r.to_build[i]);
    }
    return rollup_stack_push(stack, runs, run, true);
}

/* Each histogram as a run of its own: merging puts them in order, and together where two builds became one. */
static bool push_histograms(const struct rollup_map *m, struct rollup_runs *runs, struct rollup_stack *stack,
                            const struct rollup *r)
{
    for (uint32_t i = 0; i < r->histogram_count; i++) {
        const struct rollup_histogram *h = &r->histograms[i];
        uint32_t to = map_histogram(m, h);
        if (to == COUNTS_NOWHERE) {
            continue;
        }
        struct rollup_run *run = rollup_run_take(runs, 1, h->used, 0);
        if (run == NULL) {
            return false;
        }
        run->r.histograms[0] = *h;
        run->r.histograms[0].build = to;
        run->r.histograms[0].first = 0;
        run->r.histogram_count = 1;
        run->r.bin_count = h->used;
        run->r.saturated = r->saturated;
        memcpy(run->r.bin_index, r->bin_index + h->first, h->used * sizeof *r->bin_index);
        memcpy(run->r.bin_ticks, r->bin_ticks + h->first, h->used * sizeof *r->bin_ticks);
        if (!rollup_stack_push(stack, runs, run, true)) {
            return false;
        }
    }
    return true;
}

/* The arcs that stay, in their old order. */
static uint32_t map_arcs(const struct rollup_map *m, const struct rollup *r, struct rollup *out)
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

static uint64_t arc_key(const struct rollup *r, uint32_t i, int key)
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

static bool same_arc(const struct rollup *a, uint32_t i, const struct rollup *b, uint32_t j)
{
    return a->from[i] == b->from[j] && a->to[i] == b->to[j] && a->from_build[i] == b->from_build[j] &&
           a->to_build[i] == b->to_build[j];
}

/* Row i of r behind the others of out, or into the last of them if that is the same arc. */
static void append_arc(const struct rollup *r, uint32_t i, struct rollup *out)
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

static bool push_arcs(const struct rollup_map *m, struct rollup_runs *runs, struct rollup_stack *stack,
                      const struct rollup *r)
{
    struct rollup_run *mapped = rollup_run_take(runs, 0, 0, r->arc_count);
    struct rollup_run *sorted = mapped != NULL ? rollup_run_take(runs, 0, 0, r->arc_count) : NULL;
    if (sorted == NULL || !rollup_runs_reserve(runs, r->arc_count)) {
        return false;
    }
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
    return rollup_stack_push(stack, runs, sorted, true);
}

bool rollup_map_push(const struct rollup_map *m, struct rollup_runs *runs, struct rollup_stack *stack,
                     const struct rollup *r)
{
    if (map_ascends(m)) {
        return push_renumbered(m, runs, stack, r);
    }
    return push_histograms(m, runs, stack, r) && push_arcs(m, runs, stack, r);
}
