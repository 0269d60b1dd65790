#include "core/graph.h"

#include <stdbool.h>

#include "proto/sum.h"
#include "proto/sort.h"

/* Stable counting sort of the positions in `in` by one end of their arcs. first gets nodes + 1 starts. */
static void callgraph_sort(const struct callgraph_arc *arcs, const uint32_t *in, uint32_t *out, uint32_t n,
                           uint32_t nodes, uint32_t *first, bool by_from)
{
    for (uint32_t v = 0; v <= nodes; v++) {
        first[v] = 0;
    }
    for (uint32_t i = 0; i < n; i++) {
        first[by_from ? arcs[i].from : arcs[i].to]++;
    }
    uint32_t start = 0;
    for (uint32_t v = 0; v <= nodes; v++) {
        uint32_t count = first[v];
        first[v] = start;
        start += count;
    }
    for (uint32_t i = 0; i < n; i++) {
        uint32_t arc = in == NULL ? i : in[i];
        out[first[by_from ? arcs[arc].from : arcs[arc].to]++] = arc;
    }
}

/* Starts of both directions, once the arcs are in order. */
static void callgraph_link(struct callgraph *g)
{
    for (uint32_t i = 0; i < g->arc_count; i++) {
        g->out_first[g->from[i]]++;
        g->in_first[g->to[i] + 2]++;
    }
    uint32_t start = 0;
    for (uint32_t v = 0; v <= g->node_count; v++) {
        uint32_t count = g->out_first[v];
        g->out_first[v] = start;
        start += count;
        g->in_first[v + 1] += g->in_first[v];
    }
    /* in_first is one place ahead while it serves as cursor, and right when all arcs have passed. */
    for (uint32_t i = 0; i < g->arc_count; i++) {
        g->in_arc[g->in_first[g->to[i] + 1]++] = i;
    }
}

struct callgraph *callgraph_build(struct arena *a, uint32_t nodes, const struct callgraph_arc *arcs, uint32_t n)
{
    struct callgraph *g = ARENA_NEW(a, struct callgraph);
    uint32_t *by_to = ARENA_ARRAY(a, n, uint32_t), *order = ARENA_ARRAY(a, n, uint32_t);
    uint32_t *first = ARENA_ARRAY(a, (size_t)nodes + 1, uint32_t);
    g->node_count = nodes;
    g->from = ARENA_ARRAY(a, n, uint32_t);
    g->to = ARENA_ARRAY(a, n, uint32_t);
    g->calls = ARENA_ARRAY(a, n, uint64_t);
    g->flags = ARENA_ARRAY(a, n, uint8_t);
    g->in_arc = ARENA_ARRAY(a, n, uint32_t);
    g->out_first = ARENA_ARRAY(a, (size_t)nodes + 1, uint32_t);
    g->in_first = ARENA_ARRAY(a, (size_t)nodes + 2, uint32_t);
    callgraph_sort(arcs, NULL, by_to, n, nodes, first, false);
    callgraph_sort(arcs, by_to, order, n, nodes, first, true);
    uint32_t last = UINT32_MAX;
    for (uint32_t i = 0; i < n; i++) {
        const struct callgraph_arc *arc = &arcs[order[i]];
        if (last == UINT32_MAX || g->from[last] != arc->from || g->to[last] != arc->to) {
            last = g->arc_count++;
            g->from[last] = arc->from;
            g->to[last] = arc->to;
        }
        sum_add(&g->calls[last], arc->calls, &g->saturated);
        g->flags[last] |= arc->flags;
    }
    callgraph_link(g);
    return g;
}

uint32_t callgraph_find_arc(const struct callgraph *g, uint32_t from, uint32_t to)
{
    const uint32_t end = g->out_first[from + 1];
    uint32_t arc;
    SORT_SEARCH(arc, g->out_first[from], end, g->to[arc] < to);
    return arc < end && g->to[arc] == to ? arc : CALLGRAPH_NO_ARC;
}

/* Tarjan's walk with its stack of calls in arrays. number is 0 for nodes not yet visited. */
struct scc_walk {
    const struct callgraph *graph;
    struct scc *result;
    uint32_t *number, *low; /* of each node: when it was reached, and the earliest open node it reaches */
    uint32_t *next;         /* of each node: the arc to look at next */
    uint32_t *path;         /* nodes being visited, outermost first */
    uint32_t *open;         /* nodes reached, with their component not closed yet */
    uint32_t depth, open_count, visited;
};

#define SCC_NONE UINT32_MAX

static void scc_enter(struct scc_walk *w, uint32_t v)
{
    w->number[v] = w->low[v] = ++w->visited;
    w->next[v] = w->graph->out_first[v];
    w->result->component[v] = SCC_NONE;
    w->path[w->depth++] = v;
    w->open[w->open_count++] = v;
}

/* All arcs of the innermost node have been seen: close its component if it reaches nothing earlier. */
static void scc_leave(struct scc_walk *w)
{
    uint32_t v = w->path[--w->depth];
    if (w->low[v] == w->number[v]) {
        uint32_t member;
        do {
            member = w->open[--w->open_count];
            w->result->component[member] = w->result->count;
        } while (member != v);
        w->result->count++;
    }
    if (w->depth > 0 && w->low[v] < w->low[w->path[w->depth - 1]]) {
        w->low[w->path[w->depth - 1]] = w->low[v];
    }
}

static void scc_visit(struct scc_walk *w, uint32_t root)
{
    const struct callgraph *g = w->graph;
    scc_enter(w, root);
    while (w->depth > 0) {
        uint32_t v = w->path[w->depth - 1];
        if (w->next[v] == g->out_first[v + 1]) {
            scc_leave(w);
            continue;
        }
        uint32_t arc = w->next[v]++, to = g->to[arc];
        if ((g->flags[arc] & CALLGRAPH_SHAPES) == 0) {
            continue;
        }
        if (w->number[to] == 0) {
            scc_enter(w, to);
        } else if (w->result->component[to] == SCC_NONE && w->number[to] < w->low[v]) {
            w->low[v] = w->number[to];
        }
    }
}

struct scc *scc_find(struct arena *a, const struct callgraph *g)
{
    struct scc_walk w = {.graph = g, .result = ARENA_NEW(a, struct scc)};
    w.number = ARENA_ARRAY(a, g->node_count, uint32_t);
    w.low = ARENA_ARRAY(a, g->node_count, uint32_t);
    w.next = ARENA_ARRAY(a, g->node_count, uint32_t);
    w.path = ARENA_ARRAY(a, g->node_count, uint32_t);
    w.open = ARENA_ARRAY(a, g->node_count, uint32_t);
    w.result->component = ARENA_ARRAY(a, g->node_count, uint32_t);
    w.result->first = ARENA_ARRAY(a, (size_t)g->node_count + 2, uint32_t);
    w.result->member = ARENA_ARRAY(a, g->node_count, uint32_t);
    for (uint32_t v = 0; v < g->node_count; v++) {
        if (w.number[v] == 0) {
            scc_visit(&w, v);
        }
    }
    for (uint32_t v = 0; v < g->node_count; v++) {
        w.result->first[w.result->component[v] + 2]++;
    }
    for (uint32_t c = 0; c < w.result->count; c++) {
        w.result->first[c + 1] += w.result->first[c];
    }
    /* first is one place ahead while it serves as cursor. */
    for (uint32_t v = 0; v < g->node_count; v++) {
        w.result->member[w.result->first[w.result->component[v] + 1]++] = v;
    }
    return w.result;
}

/* shares[c]: calls into c from outside as a double, which does not stop at SUM_MAX: shares must add up to 1 even then.
 */
static void propagate_count(struct propagate *p, const struct callgraph *g, const struct scc *s, double *shares)
{
    for (uint32_t i = 0; i < g->arc_count; i++) {
        uint32_t from = g->from[i], to = g->to[i], component = s->component[to];
        if (from == to) {
            sum_add(&p->node_self[to], g->calls[i], &p->saturated);
            sum_add(&p->component_inside[component], g->calls[i], &p->saturated);
        } else if (s->component[from] == component) {
            sum_add(&p->node_inside[to], g->calls[i], &p->saturated);
            sum_add(&p->component_inside[component], g->calls[i], &p->saturated);
        } else {
            sum_add(&p->node_outside[to], g->calls[i], &p->saturated);
            sum_add(&p->component_outside[component], g->calls[i], &p->saturated);
            shares[component] += (double)g->calls[i];
        }
    }
}

static bool propagate_flows(const struct callgraph *g, const struct scc *s, uint32_t arc)
{
    return g->calls[arc] > 0 && s->component[g->from[arc]] != s->component[g->to[arc]];
}

/* Time of the arcs out of v that shape, or of those that do not. */
static double propagate_arcs(struct propagate *p, const struct callgraph *g, const struct scc *s, const double *self,
                             const double *shares, uint32_t v, bool shape)
{
    double children = 0;
    for (uint32_t i = g->out_first[v]; i < g->out_first[v + 1]; i++) {
        uint32_t callee = s->component[g->to[i]];
        if (((g->flags[i] & CALLGRAPH_SHAPES) != 0) != shape || !propagate_flows(g, s, i)) {
            continue;
        }
        double share = (double)g->calls[i] / shares[callee];
        p->arc_self[i] = self[callee] * share;
        p->arc_children[i] = p->component_children[callee] * share;
        children += p->arc_self[i] + p->arc_children[i];
    }
    return children;
}

/* The seconds of v itself that its callers hand over to what it calls, and that so come back to it. part is scratch,
 * one element for each component. */
static double propagate_again(const struct callgraph *g, const struct scc *s, const double *self, const double *shares,
                              uint32_t v, double *part)
{
    uint32_t own = s->component[v];
    double again = 0;
    for (uint32_t c = own; c < s->count; c++) {
        part[c] = c == own ? self[own] : 0;
    }
    for (uint32_t m = s->first[own] + scc_size(s, own); m < g->node_count; m++) { /* callers have higher numbers */
        uint32_t w = s->member[m];
        for (uint32_t i = g->out_first[w]; i < g->out_first[w + 1]; i++) {
            uint32_t callee = s->component[g->to[i]];
            if (callee >= own && (g->flags[i] & CALLGRAPH_SHAPES) != 0 && propagate_flows(g, s, i)) {
                part[s->component[w]] += part[callee] * (double)g->calls[i] / shares[callee];
            }
        }
    }
    for (uint32_t i = g->out_first[v]; i < g->out_first[v + 1]; i++) {
        uint32_t callee = s->component[g->to[i]];
        if (callee > own && propagate_flows(g, s, i)) {
            again += part[callee] * (double)g->calls[i] / shares[callee];
        }
    }
    return again;
}

struct propagate *propagate_run(struct arena *a, const struct callgraph *g, const struct scc *s,
                                const double *component_self)
{
    struct propagate *p = ARENA_NEW(a, struct propagate);
    double *shares = ARENA_ARRAY(a, s->count, double), *part = ARENA_ARRAY(a, s->count, double);
    p->node_children = ARENA_ARRAY(a, g->node_count, double);
    p->component_children = ARENA_ARRAY(a, s->count, double);
    p->arc_self = ARENA_ARRAY(a, g->arc_count, double);
    p->arc_children = ARENA_ARRAY(a, g->arc_count, double);
    p->node_outside = ARENA_ARRAY(a, g->node_count, uint64_t);
    p->node_inside = ARENA_ARRAY(a, g->node_count, uint64_t);
    p->node_self = ARENA_ARRAY(a, g->node_count, uint64_t);
    p->component_outside = ARENA_ARRAY(a, s->count, uint64_t);
    p->component_inside = ARENA_ARRAY(a, s->count, uint64_t);
    propagate_count(p, g, s, shares);
    for (uint32_t m = 0; m < g->node_count; m++) { /* members of component 0, then of 1, …: callees before callers */
        uint32_t v = s->member[m], component = s->component[v];
        p->node_children[v] = propagate_arcs(p, g, s, component_self, shares, v, true);
        p->component_children[component] += p->node_children[v];
    }
    /* What classes of addresses call, when the times of all functions are known. */
    for (uint32_t v = 0; v < g->node_count; v++) {
        double below = propagate_arcs(p, g, s, component_self, shares, v, false);
        if (below > 0 && p->node_outside[v] > 0 && component_self[s->component[v]] > 0) {
            double again = propagate_again(g, s, component_self, shares, v, part);
            below -= again < below ? again : below;
        }
        p->node_children[v] += below;
    }
    return p;
}

#define NONE UINT32_MAX
#define STEPS_MOST 20000000u /* arcs that are looked at: a tenth of a second */

/* Arcs that were taken stand in lists by their ends. place: an order of the nodes in which all of them ascend. */
struct break_work {
    struct cycle_arc *arcs;
    uint32_t nodes;
    uint32_t *out, *in;           /* of each node: its first arc; NONE */
    uint32_t *next_out, *next_in; /* of each arc */
    uint32_t *place;
    uint32_t *ahead, *behind; /* nodes that were reached */
    uint32_t ahead_count, behind_count;
    bool *reached;
    struct sort_item *order; /* 2 · nodes */
    uint32_t steps;
};

/* Nodes from v on along the arcs taken, with places up to most. False if it reaches the node at that place. The list is
 * its own queue. */
static bool break_go_ahead(struct break_work *w, uint32_t v, uint32_t most)
{
    w->ahead_count = 0;
    w->ahead[w->ahead_count++] = v;
    w->reached[v] = true;
    for (uint32_t i = 0; i < w->ahead_count; i++) {
        for (uint32_t arc = w->out[w->ahead[i]]; arc != NONE; arc = w->next_out[arc]) {
            uint32_t to = w->arcs[arc].to;
            w->steps++;
            if (w->place[to] == most) {
                return false;
            }
            if (!w->reached[to] && w->place[to] < most) {
                w->reached[to] = true;
                w->ahead[w->ahead_count++] = to;
            }
        }
    }
    return true;
}

/* Nodes from which u can be reached, with places from least on. */
static void break_go_behind(struct break_work *w, uint32_t u, uint32_t least)
{
    w->behind_count = 0;
    w->behind[w->behind_count++] = u;
    w->reached[u] = true;
    for (uint32_t i = 0; i < w->behind_count; i++) {
        for (uint32_t arc = w->in [w->behind[i]]; arc != NONE; arc = w->next_in[arc]) {
            uint32_t from = w->arcs[arc].from;
            w->steps++;
            if (!w->reached[from] && w->place[from] > least) {
                w->reached[from] = true;
                w->behind[w->behind_count++] = from;
            }
        }
    }
}

static void break_sort(struct break_work *w, uint32_t *nodes, uint32_t n)
{
    for (uint32_t i = 0; i < n; i++) {
        w->order[i] = (struct sort_item){w->place[nodes[i]], nodes[i]};
    }
    sort_radix(w->order, w->order + w->nodes, n);
    for (uint32_t i = 0; i < n; i++) {
        nodes[i] = w->order[i].value;
    }
}

/* The places of all nodes reached go to those behind first, then to those ahead. */
static void break_move(struct break_work *w)
{
    uint32_t n = 0;
    break_sort(w, w->behind, w->behind_count);
    break_sort(w, w->ahead, w->ahead_count);
    for (uint32_t i = 0; i < w->behind_count; i++) {
        w->order[n++] = (struct sort_item){w->place[w->behind[i]], 0};
    }
    for (uint32_t i = 0; i < w->ahead_count; i++) {
        w->order[n++] = (struct sort_item){w->place[w->ahead[i]], 0};
    }
    sort_radix(w->order, w->order + w->nodes, n);
    for (uint32_t i = 0; i < w->behind_count; i++) {
        w->place[w->behind[i]] = (uint32_t)w->order[i].key;
    }
    for (uint32_t i = 0; i < w->ahead_count; i++) {
        w->place[w->ahead[i]] = (uint32_t)w->order[w->behind_count + i].key;
    }
}

/* Takes the arc, unless it closes a cycle. */
static void break_take(struct break_work *w, uint32_t number)
{
    struct cycle_arc *arc = &w->arcs[number];
    bool free = true;
    if (w->place[arc->from] > w->place[arc->to] && w->steps > STEPS_MOST) {
        free = false;
    } else if (w->place[arc->from] > w->place[arc->to]) {
        free = break_go_ahead(w, arc->to, w->place[arc->from]);
        if (free) {
            break_go_behind(w, arc->from, w->place[arc->to]);
            break_move(w);
        }
        for (uint32_t i = 0; i < w->ahead_count; i++) {
            w->reached[w->ahead[i]] = false;
        }
        for (uint32_t i = 0; i < w->behind_count; i++) {
            w->reached[w->behind[i]] = false;
        }
        w->ahead_count = w->behind_count = 0;
    }
    arc->breaks = !free;
    if (free) {
        w->next_out[number] = w->out[arc->from];
        w->next_in[number] = w->in[arc->to];
        w->out[arc->from] = w->in[arc->to] = number;
    }
}

void cycle_break(struct arena *a, uint32_t nodes, struct cycle_arc *arcs, uint32_t count)
{
    struct break_work w = {.arcs = arcs, .nodes = nodes};
    struct sort_item *by_calls = ARENA_ARRAY(a, (size_t)count * 2, struct sort_item);
    w.out = ARENA_ARRAY(a, w.nodes, uint32_t);
    w.in = ARENA_ARRAY(a, w.nodes, uint32_t);
    w.next_out = ARENA_ARRAY(a, count, uint32_t);
    w.next_in = ARENA_ARRAY(a, count, uint32_t);
    w.place = ARENA_ARRAY(a, w.nodes, uint32_t);
    w.ahead = ARENA_ARRAY(a, w.nodes, uint32_t);
    w.behind = ARENA_ARRAY(a, w.nodes, uint32_t);
    w.reached = ARENA_ARRAY(a, w.nodes, bool);
    w.order = ARENA_ARRAY(a, (size_t)w.nodes * 2, struct sort_item);
    for (uint32_t i = 0; i < w.nodes; i++) {
        w.out[i] = w.in[i] = NONE;
        w.place[i] = i;
    }
    for (uint32_t i = 0; i < count; i++) {
        by_calls[i] = (struct sort_item){~arcs[i].calls, i};
    }
    sort_radix(by_calls, by_calls + count, count);
    for (uint32_t i = 0; i < count; i++) {
        const struct cycle_arc *arc = &arcs[by_calls[i].value];
        if (arc->from != arc->to) {
            break_take(&w, by_calls[i].value);
        }
    }
}
