#include "core/scc.h"

#include <stdbool.h>

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
