#include "core/report_rows.h"

#include "core/report_place.h"

struct rows_work {
    const struct report_graph *g;
    struct report_arc *rows; /* all rows of all functions */
    size_t used;
    struct report_places places; /* arcs with calls of one list */
    uint32_t *statics;           /* arcs without, of the same list */
    uint32_t place_count, static_count;
};

/* Sorts an arc of node into one of the two lists. */
static void rows_take(struct rows_work *w, uint32_t node, uint32_t arc, uint32_t other, bool down)
{
    const struct report_graph *g = w->g;
    uint64_t calls = g->graph->calls[arc];
    if (calls == 0) {
        if ((g->graph->flags[arc] & CALLGRAPH_STATIC) != 0 && g->position[other] != REPORT_NOWHERE) {
            w->statics[w->static_count++] = arc;
        }
        return;
    }
    struct report_place *place = &w->places.places[w->place_count++];
    place->item = arc;
    place->other = other;
    place->inside = g->scc->component[node] == g->scc->component[other];
    unsigned rank = node == other ? 0 : place->inside ? 1 : 2;
    report_place_set(place, rank, g->flow->arc_self[arc] + g->flow->arc_children[arc], calls, down);
}

/* Adds the arcs with calls as rows, in order. */
static const struct report_arc *rows_add(struct rows_work *w, uint32_t node, bool callers)
{
    const struct report_graph *g = w->g;
    const struct report_place *places = report_places_sort(&w->places, w->place_count);
    const struct report_arc *first = w->rows + w->used;
    for (uint32_t i = 0; i < w->place_count; i++) {
        uint32_t arc = places[i].item, callee = callers ? node : places[i].other;
        struct report_arc *row = &w->rows[w->used++];
        row->other = g->position[places[i].other];
        row->calls = g->graph->calls[arc];
        row->inside = places[i].inside;
        if (row->inside) {
            continue;
        }
        row->of_calls = g->flow->component_outside[g->scc->component[callee]];
        row->self = g->flow->arc_self[arc];
        row->children = g->flow->arc_children[arc];
    }
    return first;
}

/* Adds the arcs without calls as rows, by position of the other end. */
static const struct report_arc *rows_add_static(struct rows_work *w, bool callers)
{
    const struct report_graph *g = w->g;
    const struct report_arc *first = w->rows + w->used;
    for (uint32_t i = 0; i < w->static_count; i++) {
        uint32_t arc = w->statics[i], from = g->graph->from[arc], to = g->graph->to[arc];
        struct report_arc *row = &w->rows[w->used++];
        row->other = g->position[callers ? from : to];
        row->inside = g->scc->component[from] == g->scc->component[to];
        row->by_name = (g->graph->flags[arc] & CALLGRAPH_EXACT) == 0;
    }
    return first;
}

static void rows_callers(struct rows_work *w, uint32_t node, struct report_function *f)
{
    const struct callgraph *graph = w->g->graph;
    w->place_count = w->static_count = 0;
    f->spontaneous = true;
    for (uint32_t i = graph->in_first[node]; i < graph->in_first[node + 1]; i++) {
        uint32_t arc = graph->in_arc[i], from = graph->from[arc];
        rows_take(w, node, arc, from, false);
        if (from != node && graph->calls[arc] > 0) {
            f->spontaneous = false;
        }
    }
    f->callers = rows_add(w, node, true);
    f->caller_count = w->place_count;
    f->static_callers = rows_add_static(w, true);
    f->static_caller_count = w->static_count;
}

static void rows_callees(struct rows_work *w, uint32_t node, struct report_function *f)
{
    const struct callgraph *graph = w->g->graph;
    w->place_count = w->static_count = 0;
    for (uint32_t i = graph->out_first[node]; i < graph->out_first[node + 1]; i++) {
        rows_take(w, node, i, graph->to[i], true);
    }
    f->callees = rows_add(w, node, false);
    f->callee_count = w->place_count;
    f->static_callees = rows_add_static(w, false);
    f->static_callee_count = w->static_count;
}

bool report_rows_functions(struct arena *a, const struct report_graph *g, struct report_function *functions)
{
    const struct callgraph *graph = g->graph;
    size_t rows = 0;
    uint32_t widest = 0;
    for (uint32_t i = 0; i < graph->arc_count; i++) {
        rows += graph->calls[i] > 0 || (graph->flags[i] & CALLGRAPH_STATIC) != 0 ? 2 : 0; /* one at either end */
    }
    for (uint32_t v = 0; v < graph->node_count; v++) {
        uint32_t out = graph->out_first[v + 1] - graph->out_first[v], in = graph->in_first[v + 1] - graph->in_first[v];
        widest = out > widest ? out : widest;
        widest = in > widest ? in : widest;
    }
    struct rows_work w = {
        .g = g, .rows = ARENA_ARRAY(a, rows, struct report_arc), .statics = ARENA_ARRAY(a, widest, uint32_t)};
    if (w.rows == NULL || w.statics == NULL || !report_places_take(&w.places, a, widest)) {
        return false;
    }
    for (uint32_t i = 0; i < g->function_count; i++) {
        rows_callers(&w, g->node_of[i], &functions[i]);
        rows_callees(&w, g->node_of[i], &functions[i]);
    }
    return true;
}
