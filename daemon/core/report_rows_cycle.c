#include "core/report_rows.h"
#include "core/sort.h"
#include "core/sum.h"

/* Arcs over a cycle's border, by the function outside. */
struct cycle_work {
    const struct report_graph *g;
    const struct report_function *functions;
    struct sort_item *arcs, *arcs_scratch; /* key: position of the function outside; value: arc */
    uint32_t *items, *scratch;
    struct report_arc *unordered; /* rows of one list before they are put in order */
};

static int cycle_compare_members(const void *context, uint32_t x, uint32_t y)
{
    const struct cycle_work *w = context;
    const struct report_function *a = &w->functions[x], *b = &w->functions[y];
    double time_a = a->self + a->children, time_b = b->self + b->children;
    if (time_a < time_b || time_a > time_b)
        return time_a < time_b ? 1 : -1;
    bool saturated = false;
    uint64_t calls_a = a->calls, calls_b = b->calls;
    sum_add(&calls_a, a->self_calls, &saturated);
    sum_add(&calls_b, b->self_calls, &saturated);
    return calls_a < calls_b ? 1 : calls_a > calls_b ? -1 : 0;
}

static int cycle_compare_rows(const void *context, uint32_t x, uint32_t y)
{
    const struct cycle_work *w = context;
    const struct report_arc *a = &w->unordered[x], *b = &w->unordered[y];
    double time_a = a->self + a->children, time_b = b->self + b->children;
    if (time_a < time_b || time_a > time_b)
        return time_a < time_b ? -1 : 1;
    return a->calls < b->calls ? -1 : a->calls > b->calls;
}

static int cycle_compare_rows_down(const void *context, uint32_t x, uint32_t y)
{
    return cycle_compare_rows(context, y, x);
}

static bool cycle_members(struct cycle_work *w, struct arena *a, uint32_t component, struct report_cycle *cycle)
{
    const struct scc *s = w->g->scc;
    uint32_t n = scc_size(s, component);
    struct report_arc *rows = ARENA_ARRAY(a, n, struct report_arc);
    if (rows == NULL)
        return false;
    for (uint32_t i = 0; i < n; i++)
        w->items[i] = w->g->position[s->member[s->first[component] + i]];
    sort_merge(w->items, w->scratch, n, cycle_compare_members, w);
    for (uint32_t i = 0; i < n; i++) {
        const struct report_function *f = &w->functions[w->items[i]];
        rows[i] = (struct report_arc){.other = w->items[i], .calls = f->calls_inside, .self = f->self,
                                      .children = f->children, .inside = true};
    }
    cycle->members = rows;
    cycle->member_count = n;
    return true;
}

/* Arcs with calls over the border in one direction. */
static uint32_t cycle_border(struct cycle_work *w, uint32_t component, bool callers)
{
    const struct callgraph *graph = w->g->graph;
    const struct scc *s = w->g->scc;
    uint32_t n = 0;
    for (uint32_t m = s->first[component]; m < s->first[component + 1]; m++) {
        uint32_t v = s->member[m], end = callers ? graph->in_first[v + 1] : graph->out_first[v + 1];
        for (uint32_t i = callers ? graph->in_first[v] : graph->out_first[v]; i < end; i++) {
            uint32_t arc = callers ? graph->in_arc[i] : i, other = callers ? graph->from[arc] : graph->to[arc];
            if (graph->calls[arc] > 0 && s->component[other] != component)
                w->arcs[n++] = (struct sort_item){w->g->position[other], arc};
        }
    }
    sort_radix(w->arcs, w->arcs_scratch, n);
    return n;
}

/* One row for each function outside, its arcs to or from the members summed. */
static bool cycle_rows(struct cycle_work *w, struct arena *a, uint32_t component, bool callers,
                       const struct report_arc **out, uint32_t *count)
{
    const struct report_graph *g = w->g;
    uint32_t arcs = cycle_border(w, component, callers), n = 0;
    bool saturated = false;
    for (uint32_t i = 0; i < arcs; i++) {
        uint32_t arc = w->arcs[i].value;
        if (n == 0 || w->unordered[n - 1].other != w->arcs[i].key)
            w->unordered[n++] = (struct report_arc){.other = (uint32_t)w->arcs[i].key,
                .of_calls = g->flow->component_outside[g->scc->component[g->graph->to[arc]]]};
        struct report_arc *row = &w->unordered[n - 1];
        sum_add(&row->calls, g->graph->calls[arc], &saturated);
        row->self += g->flow->arc_self[arc];
        row->children += g->flow->arc_children[arc];
    }
    struct report_arc *rows = ARENA_ARRAY(a, n, struct report_arc);
    if (rows == NULL)
        return false;
    for (uint32_t i = 0; i < n; i++)
        w->items[i] = i;
    sort_merge(w->items, w->scratch, n, callers ? cycle_compare_rows : cycle_compare_rows_down, w);
    for (uint32_t i = 0; i < n; i++)
        rows[i] = w->unordered[w->items[i]];
    *out = rows;
    *count = n;
    return true;
}

bool report_rows_cycles(struct arena *a, const struct report_graph *g, const struct report_function *functions,
                        struct report_cycle *cycles)
{
    if (g->cycle_count == 0)
        return true;
    uint32_t arcs = g->graph->arc_count, most = arcs > g->node_count ? arcs : g->node_count;
    struct cycle_work w = {.g = g, .functions = functions,
                           .arcs = ARENA_ARRAY(a, arcs, struct sort_item),
                           .arcs_scratch = ARENA_ARRAY(a, arcs, struct sort_item),
                           .items = ARENA_ARRAY(a, most, uint32_t), .scratch = ARENA_ARRAY(a, most, uint32_t),
                           .unordered = ARENA_ARRAY(a, arcs, struct report_arc)};
    bool done = w.arcs != NULL && w.arcs_scratch != NULL && w.items != NULL && w.scratch != NULL && w.unordered != NULL;
    for (uint32_t i = 0; done && i < g->cycle_count; i++) {
        uint32_t component = g->cycle_component[i];
        done = cycle_members(&w, a, component, &cycles[i]) &&
               cycle_rows(&w, a, component, true, &cycles[i].callers, &cycles[i].caller_count) &&
               cycle_rows(&w, a, component, false, &cycles[i].callees, &cycles[i].callee_count);
    }
    return done;
}
