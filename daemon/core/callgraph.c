#include "core/callgraph.h"

#include "core/sum.h"

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
    uint32_t low = g->out_first[from], end = g->out_first[from + 1], high = end;
    while (low < high) {
        uint32_t middle = low + (high - low) / 2;
        if (g->to[middle] < to) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    return low < end && g->to[low] == to ? low : CALLGRAPH_NO_ARC;
}
