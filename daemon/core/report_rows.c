#include "core/report_graph.h"

#include "proto/sum.h"
#include "proto/sort.h"

/* Items in order of time, then calls; ties keep their order. Keys are gathered once, because comparing would look the
 * same numbers up again and again. */

struct rows_place {
    uint64_t time, calls; /* ascending in the wanted order */
    uint32_t item;        /* what is put in order */
    uint32_t other;       /* for the caller's use */
    bool inside;          /* likewise */
};

struct rows_places {
    struct rows_place *places, *sorted;
    struct sort_item *keys, *scratch;
};

/* Keys of an item; `down` turns the order round. rank 0, 1: below every time (self arcs, arcs inside a cycle); 2: by
 * time. */
static inline void rows_place_set(struct rows_place *place, unsigned rank, double time, uint64_t calls, bool down)
{
    uint64_t key = rank < 2 ? rank : sort_key_double(time);
    place->time = down ? ~key : key;
    place->calls = down ? ~calls : calls;
}

#define PLACE_FEW 24u /* up to this many are sorted by insertion */

/* Ensures capacity for n places. */
static void rows_places_take(struct rows_places *p, struct arena *a, uint32_t n)
{
    p->places = ARENA_ARRAY(a, n, struct rows_place);
    p->sorted = ARENA_ARRAY(a, n, struct rows_place);
    p->keys = ARENA_ARRAY(a, n, struct sort_item);
    p->scratch = ARENA_ARRAY(a, n, struct sort_item);
}

/* Sorts the first n of p->places; returns where they are. O(n). */
static const struct rows_place *rows_places_sort(struct rows_places *p, uint32_t n)
{
    if (n <= PLACE_FEW) {
        for (uint32_t i = 1; i < n; i++) {
            struct rows_place place = p->places[i];
            uint32_t k = i;
            for (; k > 0; k--) {
                const struct rows_place *before = &p->places[k - 1];
                if (before->time < place.time || (before->time == place.time && before->calls <= place.calls)) {
                    break;
                }
                p->places[k] = p->places[k - 1];
            }
            p->places[k] = place;
        }
        return p->places;
    }
    for (uint32_t i = 0; i < n; i++) {
        p->keys[i] = (struct sort_item){p->places[i].calls, i};
    }
    sort_radix(p->keys, p->scratch, n);
    for (uint32_t i = 0; i < n; i++) {
        p->keys[i].key = p->places[p->keys[i].value].time;
    }
    sort_radix(p->keys, p->scratch, n);
    for (uint32_t i = 0; i < n; i++) {
        p->sorted[i] = p->places[p->keys[i].value];
    }
    return p->sorted;
}

struct rows_work {
    const struct report_graph *g;
    struct report_arc *rows; /* those of all functions that stay */
    size_t used;
    struct rows_places places; /* arcs with calls of one list */
    uint32_t *statics;         /* arcs without, of the same list */
    uint32_t place_count, static_count;
};

/* Sorts an arc of node into one of the two lists. */
static void rows_take(struct rows_work *w, uint32_t node, uint32_t arc, uint32_t other, bool down)
{
    const struct report_graph *g = w->g;
    uint64_t calls = g->graph->calls[arc];
    if (calls == 0 && (g->graph->flags[arc] & CALLGRAPH_STACK) == 0) {
        if ((g->graph->flags[arc] & CALLGRAPH_STATIC) != 0 && g->position[other] != REPORT_NOWHERE) {
            w->statics[w->static_count++] = arc;
        }
        return;
    }
    struct rows_place *place = &w->places.places[w->place_count++];
    place->item = arc;
    place->other = other;
    place->inside = g->scc->component[node] == g->scc->component[other];
    unsigned rank = node == other ? 0 : place->inside ? 1 : 2;
    double time = g->time_measured ? g->measures->arcs[arc].total : g->flow->arc_self[arc] + g->flow->arc_children[arc];
    rows_place_set(place, rank, time, calls, down);
}

/* Adds the arcs with calls as rows, in order. */
static const struct report_arc *rows_add(struct rows_work *w, uint32_t node, bool callers)
{
    const struct report_graph *g = w->g;
    const struct rows_place *places = rows_places_sort(&w->places, w->place_count);
    const struct report_arc *first = w->rows + w->used;
    for (uint32_t i = 0; i < w->place_count; i++) {
        uint32_t arc = places[i].item, callee = callers ? node : places[i].other;
        struct report_arc *row = &w->rows[w->used++];
        *row = (struct report_arc){
            .other = g->position[places[i].other], .calls = g->graph->calls[arc], .inside = places[i].inside};
        row->jumped = (g->graph->flags[arc] & CALLGRAPH_JUMP) != 0 && row->calls > 0;
        if (row->inside) {
            continue;
        }
        row->of_calls = g->flow->component_outside[g->scc->component[callee]];
        row->self = g->flow->arc_self[arc];
        row->children = g->flow->arc_children[arc];
        row->measured = g->measures == NULL ? NULL : &g->measures->arcs[arc];
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
        w->rows[w->used++] = (struct report_arc){.other = g->position[callers ? from : to],
                                                 .inside = g->scc->component[from] == g->scc->component[to],
                                                 .by_name = (g->graph->flags[arc] & CALLGRAPH_EXACT) == 0};
    }
    return first;
}

const double *report_rows_functions(struct arena *a, const struct report_graph *g, bool stacks_only,
                                    struct report_function *functions)
{
    const struct callgraph *graph = g->graph;
    size_t rows = 0;
    uint32_t widest = 0;
    for (uint32_t i = 0; i < graph->arc_count; i++) { /* an arc is a row at either end */
        const bool is_row = graph->calls[i] > 0 || (graph->flags[i] & (CALLGRAPH_STATIC | CALLGRAPH_STACK)) != 0;
        rows += !is_row ? 0 : !stacks_only ? 2 : g->cycle[g->scc->component[graph->from[i]]] == 0;
    }
    for (uint32_t v = 0; v < graph->node_count; v++) {
        uint32_t out = graph->out_first[v + 1] - graph->out_first[v], in = graph->in_first[v + 1] - graph->in_first[v];
        widest = out > widest ? out : widest;
        widest = in > widest ? in : widest;
    }
    struct rows_work w = {
        .g = g, .rows = ARENA_ARRAY(a, rows + widest, struct report_arc), .statics = ARENA_ARRAY(a, widest, uint32_t)};
    double *uncalled = stacks_only ? ARENA_ARRAY(a, g->function_count, double) : NULL;
    rows_places_take(&w.places, a, widest);
    for (uint32_t n = 0; n < g->function_count; n++) {
        struct report_function *f = &functions[n];
        const uint32_t node = g->node_of[n];
        if (stacks_only && f->cycle != 0) { /* its cycle is a frame, and no caller or callee of it is read */
            continue;
        }
        const size_t used = w.used;
        w.place_count = w.static_count = 0;
        f->spontaneous = true;
        for (uint32_t i = graph->in_first[node]; i < graph->in_first[node + 1]; i++) {
            uint32_t arc = graph->in_arc[i], from = graph->from[arc];
            rows_take(&w, node, arc, from, false);
            if (from != node && (graph->calls[arc] > 0 || (graph->flags[arc] & CALLGRAPH_STACK) != 0)) {
                f->spontaneous = false;
            }
        }
        f->callers = rows_add(&w, node, true);
        f->caller_count = w.place_count;
        f->static_callers = rows_add_static(&w, true);
        f->static_caller_count = w.static_count;
        if (stacks_only) {
            const double seconds = f->self + (report_kind_is_class(f->kind) ? 0 : f->children);
            uncalled[n] = report_uncalled(seconds, f->callers, f->caller_count);
            w.used = used;
            f->caller_count = f->static_caller_count = 0;
        }

        w.place_count = w.static_count = 0;
        for (uint32_t i = graph->out_first[node]; i < graph->out_first[node + 1]; i++) {
            rows_take(&w, node, i, graph->to[i], true);
        }
        f->callees = rows_add(&w, node, false);
        f->callee_count = w.place_count;
        f->static_callees = rows_add_static(&w, false);
        f->static_callee_count = w.static_count;
    }
    return uncalled;
}

/* Arcs over a cycle's border, by the function outside. */
struct cycle_work {
    const struct report_graph *g;
    struct sort_item *arcs, *scratch; /* key: position of the function outside; value: arc */
    struct rows_places places;
    struct report_arc *unordered; /* rows of one list before they are put in order */
};

/* One row for each function outside, its arcs to or from the members summed. */
static void cycle_rows(struct cycle_work *w, struct arena *a, uint32_t component, bool callers,
                       const struct report_arc **out, uint32_t *count)
{
    const struct report_graph *g = w->g;
    const struct callgraph *graph = g->graph;
    const struct scc *s = g->scc;
    uint32_t arcs = 0, n = 0;
    bool saturated = false;
    for (uint32_t m = s->first[component]; m < s->first[component + 1]; m++) {
        uint32_t v = s->member[m], end = callers ? graph->in_first[v + 1] : graph->out_first[v + 1];
        for (uint32_t i = callers ? graph->in_first[v] : graph->out_first[v]; i < end; i++) {
            uint32_t arc = callers ? graph->in_arc[i] : i, other = callers ? graph->from[arc] : graph->to[arc];
            bool shown = graph->calls[arc] > 0 || (graph->flags[arc] & CALLGRAPH_STACK) != 0;
            if (shown && s->component[other] != component) {
                w->arcs[arcs++] = (struct sort_item){g->position[other], arc};
            }
        }
    }
    sort_radix(w->arcs, w->scratch, arcs);
    for (uint32_t i = 0; i < arcs; i++) {
        uint32_t arc = w->arcs[i].value;
        if (n == 0 || w->unordered[n - 1].other != w->arcs[i].key) {
            w->unordered[n++] =
                (struct report_arc){.other = (uint32_t)w->arcs[i].key,
                                    .of_calls = g->flow->component_outside[s->component[graph->to[arc]]]};
        }
        struct report_arc *row = &w->unordered[n - 1];
        sum_add(&row->calls, graph->calls[arc], &saturated);
        row->self += g->flow->arc_self[arc];
        row->children += g->flow->arc_children[arc];
        row->jumped |= (graph->flags[arc] & CALLGRAPH_JUMP) != 0 && graph->calls[arc] > 0;
    }

    /* Arcs stand in the order of the rows that they are summed in. */
    struct report_arc *rows = ARENA_ARRAY(a, n, struct report_arc);
    struct report_measured *measured = g->measures == NULL ? NULL : ARENA_ARRAY(a, n, struct report_measured);
    for (uint32_t i = 0, first = 0, end = 0; i < n; i++, first = end) {
        struct report_arc *row = &w->unordered[i];
        if (measured != NULL) {
            while (end < arcs && w->arcs[end].key == w->arcs[first].key) {
                end++;
            }
            report_measure_join(g->measures, w->arcs + first, end - first, &measured[i]);
            row->measured = &measured[i];
        }
        if (measured != NULL && row->calls > 0) {
            report_measure_compare(&measured[i], row->self + row->children, g->coverage);
        }
        w->places.places[i].item = i;
        double time = g->time_measured ? row->measured->total : row->self + row->children;
        rows_place_set(&w->places.places[i], 2, time, row->calls, !callers);
    }
    const struct rows_place *places = rows_places_sort(&w->places, n);
    for (uint32_t i = 0; i < n; i++) {
        rows[i] = w->unordered[places[i].item];
    }
    *out = rows;
    *count = n;
}

void report_rows_cycles(struct arena *a, const struct report_graph *g, const struct report_function *functions,
                        struct report_cycle *cycles)
{
    const struct callgraph *graph = g->graph;
    const struct scc *s = g->scc;
    uint32_t most = 0; /* members of a cycle, or arcs over its border: the capacity that one list needs */
    for (uint32_t i = 0; i < g->cycle_count; i++) {
        const uint32_t component = g->cycle_component[i];
        uint32_t in = 0, out = 0, members = scc_size(s, component);
        for (uint32_t m = s->first[component]; m < s->first[component + 1]; m++) {
            uint32_t v = s->member[m];
            for (uint32_t k = graph->in_first[v]; k < graph->in_first[v + 1]; k++) {
                in += s->component[graph->from[graph->in_arc[k]]] != component;
            }
            for (uint32_t k = graph->out_first[v]; k < graph->out_first[v + 1]; k++) {
                out += s->component[graph->to[k]] != component;
            }
        }
        most = in > most ? in : most;
        most = out > most ? out : most;
        most = members > most ? members : most;
    }
    struct cycle_work w = {.g = g,
                           .arcs = ARENA_ARRAY(a, most, struct sort_item),
                           .scratch = ARENA_ARRAY(a, most, struct sort_item),
                           .unordered = ARENA_ARRAY(a, most, struct report_arc)};
    rows_places_take(&w.places, a, most);
    for (uint32_t i = 0; i < g->cycle_count; i++) {
        const uint32_t component = g->cycle_component[i], n = scc_size(s, component);
        struct report_arc *members = ARENA_ARRAY(a, n, struct report_arc);
        for (uint32_t m = 0; m < n; m++) {
            struct rows_place *place = &w.places.places[m];
            place->item = g->position[s->member[s->first[component] + m]];
            const struct report_function *f = &functions[place->item];
            bool saturated = false;
            uint64_t calls = f->calls;
            sum_add(&calls, f->self_calls, &saturated);
            double time = g->time_measured ? f->measured->total : f->self + f->children;
            rows_place_set(place, 2, time, calls, true);
        }
        const struct rows_place *places = rows_places_sort(&w.places, n);
        for (uint32_t m = 0; m < n; m++) {
            const struct report_function *f = &functions[places[m].item];
            members[m] = (struct report_arc){.other = places[m].item,
                                             .calls = f->calls_inside,
                                             .self = f->self,
                                             .children = f->children,
                                             .measured = f->measured,
                                             .inside = true};
        }
        cycles[i].members = members;
        cycles[i].member_count = n;
        cycle_rows(&w, a, component, true, &cycles[i].callers, &cycles[i].caller_count);
        cycle_rows(&w, a, component, false, &cycles[i].callees, &cycles[i].callee_count);
    }
}
