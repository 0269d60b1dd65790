#include "core/report_graph.h"

#include <math.h>

#include "core/names.h"
#include "proto/sum.h"

/* Marks the owners that are counters: in a statically linked program they are functions of the same object. */
static bool *uncalled_counters(struct arena *a, const struct symtab *t)
{
    bool *counter = ARENA_ARRAY(a, t->owner_count, bool);
    for (uint32_t i = 0; i < t->owner_count; i++) {
        const struct symtab_owner *o = &t->owners[i];
        for (uint32_t k = 0; o->kind == SYMTAB_FUNCTION && k < o->count; k++) {
            const struct object_symbol *s = &t->object->symbols[t->sorted[o->first + k]];
            counter[i] = counter[i] || runtime_is_counter(object_name(t->object, s->name));
        }
    }
    return counter;
}

static bool uncalled_is_counter(const struct symtab *t, const bool *counter, const struct object_arc *arc,
                                uint32_t *span)
{
    if (arc->import != 0) {
        return runtime_is_counter(object_name(t->object, arc->import));
    }
    uint32_t owner = symtab_find_next(t, arc->to, span);
    const char *name = t->owners[owner].kind == SYMTAB_PLT ? symtab_import(t, arc->to) : NULL;
    return name != NULL ? runtime_is_counter(name) : counter[owner];
}

/* Marks those owners of one build that call a counter. Arcs ascend by caller, so the search continues where it
 * stopped. */
static void uncalled_mark(struct arena *a, const struct symtab *t, bool *counts)
{
    const bool *counter = uncalled_counters(a, t);
    uint32_t from_span = 0, to_span = 0;
    for (uint32_t i = 0; i < t->object->arc_count; i++) {
        const struct object_arc *arc = &t->object->arcs[i];
        if (uncalled_is_counter(t, counter, arc, &to_span)) {
            uint32_t owner = symtab_find_next(t, arc->from, &from_span);
            counts[owner] = t->owners[owner].kind == SYMTAB_FUNCTION && !counter[owner];
        }
    }
}

/* Finds them. seen has the flags of each owner : REPORT_ENTRY means samples or calls. O(symbols + static
 * arcs). */
static void report_uncalled_find(struct arena *a, const struct report_builds *b, const uint8_t *seen,
                                 struct report_uncalled *out)
{
    uint32_t owners = b->first[b->count + 1];
    bool *counts = ARENA_ARRAY(a, owners, bool);
    for (uint32_t i = 0; i < b->count; i++) {
        if (b->tables[i]->object != NULL) {
            uncalled_mark(a, b->tables[i], counts + b->first[i]);
        }
    }
    out->counted_of = ARENA_ARRAY(a, b->count, uint32_t);
    for (uint32_t build = 0; build < b->count; build++) {
        for (uint32_t i = b->first[build]; i < b->first[build + 1]; i++) {
            out->counted_of[build] += counts[i];
            out->count += counts[i] && (seen[i] & REPORT_ENTRY) == 0;
        }
        out->counted += out->counted_of[build];
    }
    out->owners = ARENA_ARRAY(a, out->count, uint32_t);
    for (uint32_t i = 0, n = 0; i < owners; i++) {
        if (counts[i] && (seen[i] & REPORT_ENTRY) == 0) {
            out->owners[n++] = i;
        }
    }
}

/* Numbers the owners that occur, and moves the arcs' ends to these numbers. */
static void graph_number_nodes(struct arena *a, struct report_graph *g, struct report_arcs *arcs,
                               uint32_t *node_of_owner)
{
    uint32_t owners = g->builds.first[g->builds.count + 1] + 1;
    for (uint32_t i = 0; i < owners; i++) {
        if (arcs->seen[i] != 0) {
            g->node_count++;
        }
    }
    g->owner = ARENA_ARRAY(a, g->node_count, uint32_t);
    g->entry = ARENA_ARRAY(a, g->node_count, bool);
    uint32_t n = 0;
    for (uint32_t i = 0; i < owners; i++) {
        if (arcs->seen[i] != 0) {
            g->owner[n] = i;
            g->entry[n] = (arcs->seen[i] & REPORT_ENTRY) != 0;
            node_of_owner[i] = n++;
        }
    }
    for (uint32_t i = 0; i < arcs->count; i++) {
        arcs->rows[i].from = node_of_owner[arcs->rows[i].from];
        arcs->rows[i].to = node_of_owner[arcs->rows[i].to];
    }
}

/* Seconds of components with several members are Σ ticks / rate of the whole, not a sum of rounded quotients. */
static void graph_add_component_rate(struct report_graph *g, uint32_t rate, const uint32_t *touched, uint32_t n,
                                     uint64_t *whole, double *part)
{
    for (uint32_t i = 0; i < n; i++) {
        uint32_t c = touched[i];
        g->component_seconds[c] += report_tick_seconds(&g->ticks, whole[c], part[c], rate);
        whole[c] = 0;
        part[c] = 0;
    }
}

static void graph_add_seconds(struct arena *a, struct report_graph *g, const uint32_t *node_of_owner)
{
    const struct report_ticks *t = &g->ticks;
    bool saturated = false;
    uint64_t *whole = ARENA_ARRAY(a, g->scc->count, uint64_t);
    double *part = ARENA_ARRAY(a, g->scc->count, double);
    uint32_t *touched = ARENA_ARRAY(a, g->scc->count, uint32_t), n = 0;
    g->node_seconds = ARENA_ARRAY(a, g->node_count, double);
    g->node_given = ARENA_ARRAY(a, g->node_count, double);
    g->node_sharing = ARENA_ARRAY(a, g->node_count, double);
    g->component_seconds = ARENA_ARRAY(a, g->scc->count, double);
    g->node_ticks = ARENA_ARRAY(a, g->node_count, uint64_t);
    for (uint32_t i = 0; i < t->count; i++) {
        const struct report_tick *row = &t->rows[i];
        uint32_t node = node_of_owner[row->owner], c = g->scc->component[node];
        g->node_seconds[node] += report_tick_seconds(t, row->whole, row->part, row->rate);
        if (t->rate_count == 1 && t->ticks > 0) {
            g->node_ticks[node] = row->whole + (row->part < 9e18 ? (uint64_t)llround(row->part) : 0);
        }
        g->node_given[node] += report_tick_seconds(t, 0, row->given, row->rate);
        g->node_sharing[node] += report_tick_seconds(t, 0, row->sharing, row->rate);
        if (report_tick_has_any(row) && whole[c] == 0 && !(part[c] > 0)) {
            touched[n++] = c;
        }
        sum_add(&whole[c], row->whole, &saturated);
        part[c] += row->part;
        if (i + 1 == t->count || row[1].rate != row->rate) {
            graph_add_component_rate(g, row->rate, touched, n, whole, part);
            n = 0;
        }
    }
    for (uint32_t i = 0; i < t->rate_count; i++) {
        g->total += (double)t->totals[i] / (double)t->rates[i];
    }
}

/* Components of several functions with an entry among them are the report's cycles, numbered by their first member. */
static void graph_number_cycles(struct arena *a, struct report_graph *g)
{
    bool *shown = ARENA_ARRAY(a, g->scc->count, bool);
    g->cycle = ARENA_ARRAY(a, g->scc->count, uint32_t);
    g->cycle_component = ARENA_ARRAY(a, g->scc->count, uint32_t);
    for (uint32_t v = 0; v < g->node_count; v++) {
        if (g->entry[v] && scc_size(g->scc, g->scc->component[v]) > 1) {
            shown[g->scc->component[v]] = true;
        }
    }
    for (uint32_t v = 0; v < g->node_count; v++) {
        uint32_t c = g->scc->component[v];
        if (shown[c] && g->cycle[c] == 0) {
            g->cycle_component[g->cycle_count] = c;
            g->cycle[c] = ++g->cycle_count;
        }
    }
}

/* Cycles are found over the arcs of all stored time: is each also one by those of the report alone? */
static void graph_close_cycles(struct arena *a, const struct report_request *request, struct report_graph *g)
{
    const struct callgraph *graph = g->graph;
    struct callgraph_arc *arcs = ARENA_ARRAY(a, graph->arc_count, struct callgraph_arc);
    uint32_t n = 0;
    g->cycle_closed = ARENA_ARRAY(a, g->cycle_count, bool);
    for (uint32_t i = 0; g->cycle_count > 0 && i < graph->arc_count; i++) {
        uint32_t from = graph->from[i], to = graph->to[i];
        bool here = graph->calls[i] > 0 || (graph->flags[i] & (CALLGRAPH_STATIC | CALLGRAPH_STACK)) != 0;
        if (here && g->scc->component[from] == g->scc->component[to]) {
            arcs[n++] = (struct callgraph_arc){.from = from, .to = to, .flags = CALLGRAPH_SHAPES};
        }
    }
    struct scc *scc = g->scc;
    if (g->cycle_count > 0 && request->ever != NULL && request->ever != request->profile) {
        scc = scc_find(a, callgraph_build(a, g->node_count, arcs, n));
    }
    for (uint32_t i = 0; i < g->cycle_count; i++) {
        uint32_t c = g->cycle_component[i], first = g->scc->member[g->scc->first[c]];
        g->cycle_closed[i] = scc_size(scc, scc->component[first]) == scc_size(g->scc, c);
    }
}

/* Shown are entries, members of cycles, and in the 1982 mode the other ends of entries' static arcs. */
static void graph_choose_functions(struct arena *a, struct report_graph *g)
{
    const struct callgraph *graph = g->graph;
    bool *shown = ARENA_ARRAY(a, g->node_count, bool);
    g->position = ARENA_ARRAY(a, g->node_count, uint32_t);
    g->node_of = ARENA_ARRAY(a, g->node_count, uint32_t);
    for (uint32_t v = 0; v < g->node_count; v++) {
        shown[v] = g->entry[v] || g->cycle[g->scc->component[v]] != 0;
    }
    for (uint32_t i = 0; i < graph->arc_count; i++) {
        if (graph->calls[i] == 0 && (graph->flags[i] & CALLGRAPH_STATIC) != 0 &&
            (g->entry[graph->from[i]] || g->entry[graph->to[i]])) {
            shown[graph->from[i]] = shown[graph->to[i]] = true;
        }
    }
    for (uint32_t v = 0; v < g->node_count; v++) {
        g->position[v] = REPORT_NOWHERE;
        if (shown[v]) {
            g->node_of[g->function_count] = v;
            g->position[v] = g->function_count++;
        }
    }
}

/* Owners with ticks are entries. Rows without ticks, of owners that nothing else brings into the report, go. */
static void graph_mark_entries(struct report_ticks *t, uint8_t *seen)
{
    uint32_t n = 0;
    for (uint32_t i = 0; i < t->count; i++) {
        if (report_tick_has_any(&t->rows[i])) {
            seen[t->rows[i].owner] |= REPORT_SEEN | REPORT_ENTRY;
        }
    }
    for (uint32_t i = 0; i < t->count; i++) {
        if (seen[t->rows[i].owner] != 0) {
            t->rows[n++] = t->rows[i];
        }
    }
    t->count = n;
}

/* Members of a cycle have no time by calls of their own, nor do classes of addresses as functions have it; and without
 * calls nothing has. */
static void graph_compare(struct report_graph *g)
{
    const struct callgraph *graph = g->graph;
    const struct scc *s = g->scc;
    bool any = false;
    for (uint32_t i = 0; i < graph->arc_count; i++) {
        uint32_t callee = s->component[graph->to[i]];
        if (graph->calls[i] > 0 && s->component[graph->from[i]] != callee) {
            report_measure_compare(&g->measures->arcs[i], g->flow->arc_self[i] + g->flow->arc_children[i], g->coverage);
        }
        any |= graph->calls[i] > 0;
    }
    for (uint32_t v = 0; any && v < g->node_count; v++) {
        if (scc_size(s, s->component[v]) == 1 && report_builds_is_function(&g->builds, g->owner[v])) {
            report_measure_compare(&g->measures->nodes[v], g->node_seconds[v] + g->flow->node_children[v], g->coverage);
        }
    }
    for (uint32_t c = 0; any && c < s->count; c++) {
        if (scc_size(s, c) > 1) {
            report_measure_compare(&g->measures->components[c],
                                   g->component_seconds[c] + g->flow->component_children[c], g->coverage);
        }
    }
}

/* Measured times, and whether they sort. */
static void graph_measure(struct arena *a, const struct report_request *request, struct report_graph *g)
{
    if (g->stacks.count == 0) {
        return;
    }
    g->measures = report_measure(a, &g->stacks, g->node_of_owner, g->graph, g->scc, request->groups, g->ticks.per_tick);
    double ticks = (double)(g->ticks.ticks > g->stacks.ticks ? g->ticks.ticks : g->stacks.ticks);
    g->coverage = ticks > 0 ? (double)g->stacks.ticks / ticks : 0;
    g->time_measured = request->time == REPORT_TIME_MEASURED ||
                       (request->time == REPORT_TIME_BEST && g->coverage >= REPORT_TIME_COVERAGE);
    graph_compare(g);
}

enum profd_status report_graph_make(struct arena *a, const struct report_request *request, struct report_graph *g,
                                    struct profd_error *e)
{
    *g = (struct report_graph){.coverage = 0};
    TRY(report_builds_make(a, request, &g->builds, e));
    uint32_t owners = g->builds.first[g->builds.count + 1] + 1; /* and "[incomplete]" */
    struct report_arcs arcs = {.seen = ARENA_ARRAY(a, owners, uint8_t), .calls = ARENA_ARRAY(a, owners, uint64_t)};
    uint32_t *node_of_owner = ARENA_ARRAY(a, owners, uint32_t);
    struct report_imports imports = {.arena = a, .builds = &g->builds};
    report_arcs_collect(a, request, &g->builds, &imports, &arcs);
    TRY(report_ticks_collect(a, request, &g->builds, arcs.calls, &g->ticks, e));
    graph_mark_entries(&g->ticks, arcs.seen);
    report_stacks_make(a, request, g->ticks.dimension, &g->builds, &imports, &arcs, &g->stacks);
    report_uncalled_find(a, &g->builds, arcs.seen, &g->uncalled);
    graph_number_nodes(a, g, &arcs, node_of_owner);
    g->graph = callgraph_build(a, g->node_count, arcs.rows, arcs.count);
    g->scc = scc_find(a, g->graph);
    graph_add_seconds(a, g, node_of_owner);
    g->flow = propagate_run(a, g->graph, g->scc, g->component_seconds);
    g->node_of_owner = node_of_owner;
    graph_measure(a, request, g);
    graph_number_cycles(a, g);
    graph_choose_functions(a, g);
    graph_close_cycles(a, request, g);
    return PROFD_OK;
}
