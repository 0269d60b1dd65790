#include "core/report_graph.h"

#include <math.h>

#include "core/names.h"
#include "proto/sum.h"

/* Finds the functions that count their calls and were not called: their code calls a counter, and they have neither
 * samples nor calls (REPORT_ENTRY in seen). O(symbols + static arcs). */
static void find_uncalled(struct arena *a, const struct report_builds *b, const uint8_t *seen,
                          struct report_uncalled *out)
{
    uint32_t owners = b->first[b->count + 1];
    bool *counts = ARENA_ARRAY(a, owners, bool);
    out->counted_of = ARENA_ARRAY(a, b->count, uint32_t);
    for (uint32_t build = 0; build < b->count; build++) {
        const struct symtab *t = b->tables[build];
        const struct object *o = t->object;
        if (o == NULL) {
            continue;
        }
        /* In a statically linked program the counters are functions of the same object. */
        bool *counter = ARENA_ARRAY(a, t->owner_count, bool);
        for (uint32_t i = 0; i < t->owner_count; i++) {
            const struct symtab_owner *owner = &t->owners[i];
            for (uint32_t k = 0; owner->kind == SYMTAB_FUNCTION && k < owner->count; k++) {
                const struct object_symbol *s = &o->symbols[t->sorted[owner->first + k]];
                counter[i] = counter[i] || runtime_is_counter(object_name(o, s->name));
            }
        }
        uint32_t from_span = 0, to_span = 0; /* arcs ascend by caller: each search goes on where the last one ended */
        for (uint32_t i = 0; i < o->arc_count; i++) {
            const struct object_arc *arc = &o->arcs[i];
            const char *name = arc->import != 0 ? object_name(o, arc->import) : NULL;
            bool counts_here = false;
            if (name == NULL) {
                uint32_t to = symtab_find_next(t, arc->to, &to_span);
                name = t->owners[to].kind == SYMTAB_PLT ? symtab_import(t, arc->to) : NULL;
                counts_here = counter[to];
            }
            if (name != NULL ? runtime_is_counter(name) : counts_here) {
                uint32_t from = symtab_find_next(t, arc->from, &from_span);
                counts[b->first[build] + from] = t->owners[from].kind == SYMTAB_FUNCTION && !counter[from];
            }
        }
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

/* Adds up the self times of nodes and components. Seconds of a component with several members are Σ ticks / rate of the
 * whole, not a sum of rounded quotients. */
static void graph_add_seconds(struct arena *a, struct report_graph *g)
{
    const struct report_ticks *t = &g->ticks;
    bool saturated = false;
    uint64_t *whole = ARENA_ARRAY(a, g->scc->count, uint64_t);
    double *part = ARENA_ARRAY(a, g->scc->count, double);
    uint32_t *touched = ARENA_ARRAY(a, g->scc->count, uint32_t), n = 0; /* components with ticks at this rate */
    g->node_seconds = ARENA_ARRAY(a, g->node_count, double);
    g->node_given = ARENA_ARRAY(a, g->node_count, double);
    g->node_sharing = ARENA_ARRAY(a, g->node_count, double);
    g->component_seconds = ARENA_ARRAY(a, g->scc->count, double);
    g->node_ticks = ARENA_ARRAY(a, g->node_count, uint64_t);
    for (uint32_t i = 0; i < t->count; i++) {
        const struct report_tick *row = &t->rows[i];
        uint32_t node = g->node_of_owner[row->owner], c = g->scc->component[node];
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
        bool last = i + 1 == t->count || row[1].rate != row->rate;
        for (; last && n > 0; n--) {
            c = touched[n - 1];
            g->component_seconds[c] += report_tick_seconds(t, whole[c], part[c], row->rate);
            whole[c] = 0;
            part[c] = 0;
        }
    }
    for (uint32_t i = 0; i < t->rate_count; i++) {
        g->total += (double)t->totals[i] / (double)t->rates[i];
    }
}

/* Components of several functions with an entry among them are the report's cycles, numbered by their first member.
 * Cycles are found over the arcs of all stored time; a cycle is closed if the arcs of the report alone make it one. */
static void graph_find_cycles(struct arena *a, const struct report_request *request, struct report_graph *g)
{
    const struct callgraph *graph = g->graph;
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
    g->cycle_closed = ARENA_ARRAY(a, g->cycle_count, bool);
    struct scc *scc = g->scc;
    if (g->cycle_count > 0 && request->ever != NULL && request->ever != request->profile) {
        struct callgraph_arc *arcs = ARENA_ARRAY(a, graph->arc_count, struct callgraph_arc);
        uint32_t n = 0, all = 0;
        for (uint32_t i = 0; i < graph->arc_count; i++) {
            uint32_t from = graph->from[i], to = graph->to[i];
            bool here = graph->calls[i] > 0 || (graph->flags[i] & (CALLGRAPH_STATIC | CALLGRAPH_STACK)) != 0;
            all += g->scc->component[from] == g->scc->component[to];
            if (here && g->scc->component[from] == g->scc->component[to]) {
                arcs[n++] = (struct callgraph_arc){.from = from, .to = to, .flags = CALLGRAPH_SHAPES};
            }
        }
        scc = n < all ? scc_find(a, callgraph_build(a, g->node_count, arcs, n)) : scc;
    }
    for (uint32_t i = 0; i < g->cycle_count; i++) {
        uint32_t c = g->cycle_component[i], first = g->scc->member[g->scc->first[c]];
        g->cycle_closed[i] = scc_size(scc, scc->component[first]) == scc_size(g->scc, c);
    }
}

/* Decides whether measured times sort. */
static void graph_choose_time(const struct report_request *request, struct report_graph *g)
{
    const double ticks = (double)(g->ticks.ticks > g->stacks.ticks ? g->ticks.ticks : g->stacks.ticks);
    g->coverage = ticks > 0 ? (double)g->stacks.ticks / ticks : 0;
    g->time_measured =
        g->stacks.count > 0 && (request->time == REPORT_TIME_MEASURED ||
                                (request->time == REPORT_TIME_BEST && g->coverage >= REPORT_TIME_COVERAGE));
}

/* Computes measured times, and compares them with the times by calls. */
static void graph_measure(struct arena *a, const struct report_request *request, struct report_graph *g)
{
    const struct callgraph *graph = g->graph;
    const struct scc *s = g->scc;
    if (g->stacks.count == 0 || request->stacks_only) {
        return;
    }
    struct report_measures *m = g->measures =
        report_measure(a, &g->stacks, g->node_of_owner, graph, s, request->groups, g->ticks.per_tick);
    /* Members of a cycle have no time by calls of their own, nor do classes of addresses as functions have it; and
     * without calls nothing has. */
    bool any = false;
    for (uint32_t i = 0; i < graph->arc_count; i++) {
        uint32_t callee = s->component[graph->to[i]];
        if (graph->calls[i] > 0 && s->component[graph->from[i]] != callee) {
            report_measure_compare(&m->arcs[i], g->flow->arc_self[i] + g->flow->arc_children[i], g->coverage);
        }
        any |= graph->calls[i] > 0;
    }
    for (uint32_t v = 0; any && v < g->node_count; v++) {
        if (scc_size(s, s->component[v]) == 1 && report_builds_is_function(&g->builds, g->owner[v])) {
            report_measure_compare(&m->nodes[v], g->node_seconds[v] + g->flow->node_children[v], g->coverage);
        }
    }
    for (uint32_t c = 0; any && c < s->count; c++) {
        if (scc_size(s, c) > 1) {
            report_measure_compare(&m->components[c], g->component_seconds[c] + g->flow->component_children[c],
                                   g->coverage);
        }
    }
}

enum profd_status report_graph_make(struct arena *a, const struct report_request *request, struct report_graph *g,
                                    struct profd_error *e)
{
    *g = (struct report_graph){.coverage = 0};
    TRY(report_builds_make(a, request, &g->builds, e));
    uint32_t n = 0, owners = g->builds.first[g->builds.count + 1] + 1; /* and "[incomplete]" */
    struct report_arcs arcs = {.seen = ARENA_ARRAY(a, owners, uint8_t), .calls = ARENA_ARRAY(a, owners, uint64_t)};
    uint32_t *node_of_owner = ARENA_ARRAY(a, owners, uint32_t);
    struct report_imports imports = {.arena = a, .builds = &g->builds};
    struct report_ticks *t = &g->ticks;
    report_arcs_collect(a, request, &g->builds, &imports, &arcs);
    TRY(report_ticks_collect(a, request, &g->builds, arcs.calls, t, e));

    /* Owners with ticks are entries. Rows without ticks, of owners that nothing else brings into the report, go. */
    for (uint32_t i = 0; i < t->count; i++) {
        if (report_tick_has_any(&t->rows[i])) {
            arcs.seen[t->rows[i].owner] |= REPORT_SEEN | REPORT_ENTRY;
        }
    }
    for (uint32_t i = 0; i < t->count; i++) {
        if (arcs.seen[t->rows[i].owner] != 0) {
            t->rows[n++] = t->rows[i];
        }
    }
    t->count = n;
    report_stacks_make(a, request, t->dimension, &g->builds, &imports, &arcs, &g->stacks);
    graph_choose_time(request, g);
    const bool frames_only =
        request->stacks_only && g->time_measured; /* arcs say nothing more than who is in a cycle */
    if (!request->stacks_only) {
        find_uncalled(a, &g->builds, arcs.seen, &g->uncalled);
    }

    /* The owners that occur are the nodes. */
    for (uint32_t i = 0; i < owners; i++) {
        g->node_count += arcs.seen[i] != 0;
    }
    g->owner = ARENA_ARRAY(a, g->node_count, uint32_t);
    g->entry = ARENA_ARRAY(a, g->node_count, bool);
    n = 0;
    for (uint32_t i = 0; i < owners; i++) {
        if (arcs.seen[i] != 0) {
            g->owner[n] = i;
            g->entry[n] = (arcs.seen[i] & REPORT_ENTRY) != 0;
            node_of_owner[i] = n++;
        }
    }
    n = 0;
    for (uint32_t i = 0; i < arcs.count; i++) {
        const struct callgraph_arc *arc = &arcs.rows[i];
        if ((arc->flags & CALLGRAPH_SHAPES) != 0 || !frames_only) {
            arcs.rows[n++] = (struct callgraph_arc){.calls = arc->calls,
                                                    .from = node_of_owner[arc->from],
                                                    .to = node_of_owner[arc->to],
                                                    .flags = arc->flags};
        }
    }
    arcs.count = n;
    g->node_of_owner = node_of_owner;
    g->graph = callgraph_build(a, g->node_count, arcs.rows, arcs.count);
    g->scc = scc_find(a, g->graph);
    graph_find_cycles(a, request, g);
    if (frames_only) {
        g->graph = callgraph_build(a, g->node_count, NULL, 0);
    }
    graph_add_seconds(a, g);
    g->flow = propagate_run(a, g->graph, g->scc, g->component_seconds);
    graph_measure(a, request, g);

    /* Shown are entries, members of cycles, and in the 1982 mode the other ends of entries' static arcs. */
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
    return PROFD_OK;
}
