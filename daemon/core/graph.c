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

struct callgraph *callgraph_build(struct arena *a, uint32_t nodes, const struct callgraph_arc *arcs, uint32_t n)
{
    struct callgraph *g = ARENA_NEW(a, struct callgraph);
    uint32_t *order = NULL; /* they are often in order */
    g->node_count = nodes;
    g->from = ARENA_ARRAY(a, n, uint32_t);
    g->to = ARENA_ARRAY(a, n, uint32_t);
    g->calls = ARENA_ARRAY(a, n, uint64_t);
    g->flags = ARENA_ARRAY(a, n, uint8_t);
    g->in_arc = ARENA_ARRAY(a, n, uint32_t);
    g->out_first = ARENA_ARRAY(a, (size_t)nodes + 1, uint32_t);
    g->in_first = ARENA_ARRAY(a, (size_t)nodes + 2, uint32_t);
    for (uint32_t i = 1; i < n && !order; i++) {
        if (compare_pairs(arcs[i - 1].from, arcs[i].from, arcs[i - 1].to, arcs[i].to) > 0) {
            uint32_t *by_to = ARENA_ARRAY(a, n, uint32_t), *first = ARENA_ARRAY(a, (size_t)nodes + 1, uint32_t);
            order = ARENA_ARRAY(a, n, uint32_t);
            callgraph_sort(arcs, NULL, by_to, n, nodes, first, false);
            callgraph_sort(arcs, by_to, order, n, nodes, first, true);
        }
    }
    uint32_t last = UINT32_MAX;
    for (uint32_t i = 0; i < n; i++) {
        const struct callgraph_arc *arc = &arcs[order ? order[i] : i];
        if (last == UINT32_MAX || g->from[last] != arc->from || g->to[last] != arc->to) {
            last = g->arc_count++;
            g->from[last] = arc->from;
            g->to[last] = arc->to;
        }
        sum_add(&g->calls[last], arc->calls, &g->saturated);
        g->flags[last] |= arc->flags;
    }

    /* Starts of both directions. in_first is one place ahead while it serves as cursor, and right when all arcs have
     * passed. */
    for (uint32_t i = 0; i < g->arc_count; i++) {
        g->out_first[g->from[i]]++;
        g->in_first[g->to[i] + 2]++;
    }
    uint32_t start = 0;
    for (uint32_t v = 0; v <= nodes; v++) {
        uint32_t count = g->out_first[v];
        g->out_first[v] = start;
        start += count;
        g->in_first[v + 1] += g->in_first[v];
    }
    for (uint32_t i = 0; i < g->arc_count; i++) {
        g->in_arc[g->in_first[g->to[i] + 1]++] = i;
    }
    return g;
}

uint32_t callgraph_find_arc(const struct callgraph *g, uint32_t from, uint32_t to)
{
    const uint32_t end = g->out_first[from + 1];
    uint32_t arc;
    SORT_SEARCH(arc, g->out_first[from], end, g->to[arc] < to);
    return arc < end && g->to[arc] == to ? arc : CALLGRAPH_NO_ARC;
}

#define SCC_NONE UINT32_MAX

/* Tarjan's algorithm, with its stack of calls in an array. */
struct scc *scc_find(struct arena *a, const struct callgraph *g)
{
    struct scc *result = ARENA_NEW(a, struct scc);
    uint32_t *number = ARENA_ARRAY(a, g->node_count, uint32_t); /* of each node: when it was reached; 0: not yet */
    uint32_t *low = ARENA_ARRAY(a, g->node_count, uint32_t);    /* the earliest open node that it reaches */
    uint32_t *next = ARENA_ARRAY(a, g->node_count, uint32_t);   /* the arc to look at next */
    uint32_t *path = ARENA_ARRAY(a, g->node_count, uint32_t);   /* nodes being visited, outermost first */
    uint32_t *open = ARENA_ARRAY(a, g->node_count, uint32_t);   /* nodes reached whose component is not closed yet */
    uint32_t depth = 0, open_count = 0, visited = 0;
    result->component = ARENA_ARRAY(a, g->node_count, uint32_t);
    result->first = ARENA_ARRAY(a, (size_t)g->node_count + 2, uint32_t);
    result->member = ARENA_ARRAY(a, g->node_count, uint32_t);
    for (uint32_t root = 0; root < g->node_count; root++) {
        uint32_t enter = number[root] == 0 ? root : SCC_NONE;
        while (enter != SCC_NONE || depth > 0) {
            if (enter != SCC_NONE) {
                number[enter] = low[enter] = ++visited;
                next[enter] = g->out_first[enter];
                result->component[enter] = SCC_NONE;
                path[depth++] = open[open_count++] = enter;
                enter = SCC_NONE;
            }
            uint32_t v = path[depth - 1];
            if (next[v] < g->out_first[v + 1]) {
                uint32_t arc = next[v]++, to = g->to[arc];
                if ((g->flags[arc] & CALLGRAPH_SHAPES) == 0) {
                    continue;
                }
                if (number[to] == 0) {
                    enter = to;
                } else if (result->component[to] == SCC_NONE && number[to] < low[v]) {
                    low[v] = number[to];
                }
                continue;
            }
            /* All arcs of the innermost node have been seen: its component closes if it reaches nothing earlier. */
            depth--;
            if (low[v] == number[v]) {
                uint32_t member;
                do {
                    member = open[--open_count];
                    result->component[member] = result->count;
                } while (member != v);
                result->count++;
            }
            if (depth > 0 && low[v] < low[path[depth - 1]]) {
                low[path[depth - 1]] = low[v];
            }
        }
    }
    for (uint32_t v = 0; v < g->node_count; v++) {
        result->first[result->component[v] + 2]++;
    }
    for (uint32_t c = 0; c < result->count; c++) {
        result->first[c + 1] += result->first[c];
    }
    /* first is one place ahead while it serves as cursor. */
    for (uint32_t v = 0; v < g->node_count; v++) {
        result->member[result->first[result->component[v] + 1]++] = v;
    }
    return result;
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
    /* shares[c]: calls into c from outside as a double, which does not stop at SUM_MAX: shares must add up to 1 even
     * then. */
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
#define STEPS_MOST 4000000u /* arcs that are looked at: a tenth of a second */

/* Arcs that were taken stand in lists by their ends. place: an order of the nodes in which all of them ascend. */
struct break_work {
    struct cycle_arc *arcs;
    uint32_t nodes;
    uint32_t *out, *in;           /* of each node: its first arc; NONE */
    uint32_t *next_out, *next_in; /* of each arc */
    uint32_t *place;
    uint32_t *ahead, *behind; /* nodes that were reached */
    bool *reached;
    struct sort_item *order; /* 2 · nodes */
    uint32_t steps;
};

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

/* Makes room in the order for an arc that leads to an earlier place. Nodes that its end leads to and nodes that lead to
 * its beginning, between the two places, change places among each other. False if the arc would close a cycle. */
static bool break_move(struct break_work *w, const struct cycle_arc *arc)
{
    const uint32_t least = w->place[arc->to], most = w->place[arc->from];
    uint32_t ahead = 0, behind = 0, n = 0;
    bool closes = false;
    w->ahead[ahead++] = arc->to;
    w->reached[arc->to] = true;
    for (uint32_t i = 0; i < ahead && !closes; i++) { /* each list is its own queue */
        for (uint32_t k = w->out[w->ahead[i]]; k != NONE && !closes; k = w->next_out[k]) {
            uint32_t to = w->arcs[k].to;
            w->steps++;
            closes = w->place[to] == most;
            if (!closes && !w->reached[to] && w->place[to] < most) {
                w->reached[to] = true;
                w->ahead[ahead++] = to;
            }
        }
    }
    if (!closes) {
        w->behind[behind++] = arc->from;
        w->reached[arc->from] = true;
    }
    for (uint32_t i = 0; i < behind; i++) {
        for (uint32_t k = w->in [w->behind[i]]; k != NONE; k = w->next_in[k]) {
            uint32_t from = w->arcs[k].from;
            w->steps++;
            if (!w->reached[from] && w->place[from] > least) {
                w->reached[from] = true;
                w->behind[behind++] = from;
            }
        }
    }
    for (uint32_t i = 0; i < ahead; i++) {
        w->reached[w->ahead[i]] = false;
    }
    for (uint32_t i = 0; i < behind; i++) {
        w->reached[w->behind[i]] = false;
    }
    if (closes) {
        return false;
    }

    /* The places of all nodes reached go to those behind first, then to those ahead. */
    break_sort(w, w->behind, behind);
    break_sort(w, w->ahead, ahead);
    for (uint32_t i = 0; i < behind; i++) {
        w->order[n++] = (struct sort_item){w->place[w->behind[i]], 0};
    }
    for (uint32_t i = 0; i < ahead; i++) {
        w->order[n++] = (struct sort_item){w->place[w->ahead[i]], 0};
    }
    sort_radix(w->order, w->order + w->nodes, n);
    for (uint32_t i = 0; i < n; i++) {
        w->place[i < behind ? w->behind[i] : w->ahead[i - behind]] = (uint32_t)w->order[i].key;
    }
    return true;
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
        const uint32_t number = by_calls[i].value;
        struct cycle_arc *arc = &arcs[number];
        if (arc->from == arc->to) {
            continue;
        }
        arc->breaks = w.place[arc->from] > w.place[arc->to] && (w.steps > STEPS_MOST || !break_move(&w, arc));
        if (!arc->breaks) {
            w.next_out[number] = w.out[arc->from];
            w.next_in[number] = w.in[arc->to];
            w.out[arc->from] = w.in[arc->to] = number;
        }
    }
}
