#include "core/report_rows.h"

#include "core/sort.h"

/* Room for the arcs of one entry while they are put in order. */
struct rows_work {
    const struct report_graph *g;
    struct report_arc *rows;  /* all rows of all functions */
    size_t used;
    uint32_t *items, *scratch;
};

/* Self arcs are least, arcs inside a cycle come below all others. */
static int rows_class(const struct report_graph *g, uint32_t arc)
{
    if (g->graph->from[arc] == g->graph->to[arc])
        return 0;
    return g->scc->component[g->graph->from[arc]] == g->scc->component[g->graph->to[arc]] ? 1 : 2;
}

static int rows_compare_arcs(const void *context, uint32_t x, uint32_t y)
{
    const struct report_graph *g = context;
    int class_x = rows_class(g, x), class_y = rows_class(g, y);
    if (class_x != class_y)
        return class_x - class_y;
    double time_x = g->flow->arc_self[x] + g->flow->arc_children[x], time_y = g->flow->arc_self[y] + g->flow->arc_children[y];
    if (time_x < time_y || time_x > time_y) /* both 0 inside a cycle */
        return time_x < time_y ? -1 : 1;
    return g->graph->calls[x] < g->graph->calls[y] ? -1 : g->graph->calls[x] > g->graph->calls[y];
}

static int rows_compare_arcs_down(const void *context, uint32_t x, uint32_t y)
{
    return rows_compare_arcs(context, y, x);
}

static struct report_arc rows_make(const struct report_graph *g, uint32_t arc, uint32_t other)
{
    struct report_arc row = {.other = g->position[other], .calls = g->graph->calls[arc]};
    row.inside = rows_class(g, arc) < 2;
    row.by_name = row.calls == 0 && (g->graph->flags[arc] & CALLGRAPH_EXACT) == 0;
    if (!row.inside && row.calls > 0) {
        row.of_calls = g->flow->component_outside[g->scc->component[g->graph->to[arc]]];
        row.self = g->flow->arc_self[arc];
        row.children = g->flow->arc_children[arc];
    }
    return row;
}

static void rows_callers(struct rows_work *w, uint32_t node, struct report_function *f)
{
    const struct callgraph *graph = w->g->graph;
    uint32_t n = 0;
    for (uint32_t i = graph->in_first[node]; i < graph->in_first[node + 1]; i++)
        if (graph->calls[graph->in_arc[i]] > 0)
            w->items[n++] = graph->in_arc[i];
    sort_merge(w->items, w->scratch, n, rows_compare_arcs, w->g);
    f->callers = w->rows + w->used;
    f->caller_count = n;
    f->spontaneous = true;
    for (uint32_t i = 0; i < n; i++) {
        w->rows[w->used++] = rows_make(w->g, w->items[i], graph->from[w->items[i]]);
        if (graph->from[w->items[i]] != node)
            f->spontaneous = false;
    }
}

static void rows_callees(struct rows_work *w, uint32_t node, struct report_function *f)
{
    const struct callgraph *graph = w->g->graph;
    uint32_t n = 0;
    for (uint32_t i = graph->out_first[node]; i < graph->out_first[node + 1]; i++)
        if (graph->calls[i] > 0)
            w->items[n++] = i;
    sort_merge(w->items, w->scratch, n, rows_compare_arcs_down, w->g);
    f->callees = w->rows + w->used;
    f->callee_count = n;
    for (uint32_t i = 0; i < n; i++)
        w->rows[w->used++] = rows_make(w->g, w->items[i], graph->to[w->items[i]]);
}

/* True for arcs known without calls whose both ends are shown. */
static bool rows_static(const struct report_graph *g, uint32_t arc)
{
    return g->graph->calls[arc] == 0 && (g->graph->flags[arc] & CALLGRAPH_STATIC) != 0 &&
           g->position[g->graph->from[arc]] != REPORT_NOWHERE && g->position[g->graph->to[arc]] != REPORT_NOWHERE;
}

static void rows_statics(struct rows_work *w, uint32_t node, struct report_function *f)
{
    const struct callgraph *graph = w->g->graph;
    f->static_callees = w->rows + w->used;
    for (uint32_t i = graph->out_first[node]; i < graph->out_first[node + 1]; i++)
        if (rows_static(w->g, i)) {
            w->rows[w->used++] = rows_make(w->g, i, graph->to[i]);
            f->static_callee_count++;
        }
    f->static_callers = w->rows + w->used;
    for (uint32_t i = graph->in_first[node]; i < graph->in_first[node + 1]; i++)
        if (rows_static(w->g, graph->in_arc[i])) {
            w->rows[w->used++] = rows_make(w->g, graph->in_arc[i], graph->from[graph->in_arc[i]]);
            f->static_caller_count++;
        }
}

bool report_rows_functions(struct arena *a, const struct report_graph *g, struct report_function *functions)
{
    const struct callgraph *graph = g->graph;
    size_t rows = 0;
    uint32_t widest = 0;
    for (uint32_t i = 0; i < graph->arc_count; i++)
        rows += graph->calls[i] > 0 || rows_static(g, i) ? 2 : 0; /* one at either end */
    for (uint32_t v = 0; v < graph->node_count; v++) {
        uint32_t out = graph->out_first[v + 1] - graph->out_first[v], in = graph->in_first[v + 1] - graph->in_first[v];
        widest = out > widest ? out : widest;
        widest = in > widest ? in : widest;
    }
    struct rows_work w = {.g = g, .rows = ARENA_ARRAY(a, rows, struct report_arc),
                          .items = ARENA_ARRAY(a, widest, uint32_t), .scratch = ARENA_ARRAY(a, widest, uint32_t)};
    if (w.rows == NULL || w.items == NULL || w.scratch == NULL)
        return false;
    for (uint32_t i = 0; i < g->function_count; i++) {
        rows_callers(&w, g->node_of[i], &functions[i]);
        rows_callees(&w, g->node_of[i], &functions[i]);
        rows_statics(&w, g->node_of[i], &functions[i]);
    }
    return true;
}
