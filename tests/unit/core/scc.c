/* The figures of Graham, Kessler and McKusick (1982): a graph numbered in topological order, the same graph with two
 * functions that call each other, and the graph after these have become one. The graph is our own, of the same kind. */
#include <criterion/criterion.h>

#include "core/graph.h"

/* Ten functions, named 0 … 9 here; 1 is main. */
static const struct callgraph_arc acyclic[] = {
    {1, 9, 8, CALLGRAPH_SHAPES}, {1, 9, 7, CALLGRAPH_SHAPES}, {1, 8, 6, CALLGRAPH_SHAPES}, {1, 8, 3, CALLGRAPH_SHAPES},
    {1, 7, 3, CALLGRAPH_SHAPES}, {1, 7, 5, CALLGRAPH_SHAPES}, {1, 6, 2, CALLGRAPH_SHAPES}, {1, 3, 1, CALLGRAPH_SHAPES},
    {1, 3, 2, CALLGRAPH_SHAPES}, {1, 5, 2, CALLGRAPH_SHAPES}, {1, 5, 4, CALLGRAPH_SHAPES}, {1, 4, 0, CALLGRAPH_SHAPES}};
#define ARCS (sizeof acyclic / sizeof *acyclic)

static struct callgraph *graph;

static struct scc *find(struct arena *a, uint32_t nodes, const struct callgraph_arc *arcs, uint32_t n)
{
    struct scc *s = NULL;
    graph = callgraph_build(a, nodes, arcs, n);
    s = scc_find(a, graph);
    uint32_t listed = 0;
    for (uint32_t c = 0; c < s->count; c++) {
        for (uint32_t i = s->first[c]; i < s->first[c + 1]; i++, listed++) {
            cr_assert_eq(s->component[s->member[i]], c);
            cr_assert(i == s->first[c] || s->member[i - 1] < s->member[i]);
        }
    }
    cr_assert_eq(listed, nodes);
    return s;
}

/* Every arc goes from a higher number to a lower one, or stays in its component. */
static void assert_law(const struct scc *s)
{
    for (uint32_t i = 0; i < graph->arc_count; i++) {
        cr_assert_geq(s->component[graph->from[i]], s->component[graph->to[i]], "%u → %u", graph->from[i],
                      graph->to[i]);
    }
}

Test(scc, topological_numbering)
{
    struct arena *a = arena_new(0);
    struct scc *s = find(a, 10, acyclic, ARCS);
    cr_assert_eq(s->count, 10, "no cycle: everybody alone");
    assert_law(s);
    for (size_t i = 0; i < ARCS; i++) {
        cr_assert_gt(s->component[acyclic[i].from], s->component[acyclic[i].to]);
    }
    arena_free(a);
}

Test(scc, two_that_call_each_other)
{
    struct arena *a = arena_new(0);
    struct callgraph_arc arcs[ARCS + 1];
    for (size_t i = 0; i < ARCS; i++) {
        arcs[i] = acyclic[i];
    }
    arcs[ARCS] = (struct callgraph_arc){1, 3, 7, CALLGRAPH_SHAPES}; /* 3 calls 7 back */
    struct scc *s = find(a, 10, arcs, ARCS + 1);
    cr_assert_eq(s->count, 9);
    cr_assert_eq(s->component[3], s->component[7]);
    cr_assert_eq(scc_size(s, s->component[3]), 2);
    assert_law(s);
    arena_free(a);
}

Test(scc, after_the_collapse)
{
    struct arena *a = arena_new(0);
    struct callgraph_arc arcs[ARCS + 1];
    for (size_t i = 0; i < ARCS; i++) {
        arcs[i] = acyclic[i];
    }
    arcs[ARCS] = (struct callgraph_arc){1, 3, 7, CALLGRAPH_SHAPES};
    struct scc *cyclic = find(a, 10, arcs, ARCS + 1);
    uint32_t nodes = cyclic->count, n = 0;
    for (size_t i = 0; i < ARCS + 1; i++) {
        uint32_t from = cyclic->component[arcs[i].from], to = cyclic->component[arcs[i].to];
        if (from != to) {
            arcs[n++] = (struct callgraph_arc){1, from, to, CALLGRAPH_SHAPES};
        }
    }
    struct scc *s = find(a, nodes, arcs, n);
    cr_assert_eq(s->count, nodes, "the collapsed graph has no cycle");
    for (uint32_t i = 0; i < n; i++) {
        cr_assert_gt(s->component[arcs[i].from], s->component[arcs[i].to]);
    }
    arena_free(a);
}

Test(scc, self_arcs_and_arcs_that_do_not_shape)
{
    struct arena *a = arena_new(0);
    const struct callgraph_arc arcs[] = {
        {5, 0, 0, CALLGRAPH_SHAPES}, {1, 0, 1, CALLGRAPH_SHAPES}, {0, 1, 0, CALLGRAPH_STATIC}};
    struct scc *s = find(a, 3, arcs, 3);
    cr_assert_eq(s->count, 3);
    s = find(a, 0, NULL, 0);
    cr_assert_eq(s->count, 0);
    arena_free(a);
}

Test(callgraph, sums_pairs_and_links_both_ways)
{
    struct arena *a = arena_new(0);
    const struct callgraph_arc arcs[] = {{5, 2, 0, 1},         {7, 0, 2, 2}, {6, 2, 0, 4},
                                         {INT64_MAX, 0, 1, 1}, {1, 0, 1, 1}, {3, 2, 2, 1}};
    struct callgraph *g = NULL;
    g = callgraph_build(a, 3, arcs, 6);
    cr_assert(g->arc_count == 4 && g->saturated);
    cr_assert(g->from[0] == 0 && g->to[0] == 1 && g->calls[0] == INT64_MAX);
    cr_assert(g->from[1] == 0 && g->to[1] == 2 && g->calls[1] == 7);
    cr_assert(g->from[2] == 2 && g->to[2] == 0 && g->calls[2] == 11 && g->flags[2] == 5);
    cr_assert(g->from[3] == 2 && g->to[3] == 2 && g->calls[3] == 3);
    cr_assert(g->out_first[0] == 0 && g->out_first[1] == 2 && g->out_first[2] == 2 && g->out_first[3] == 4);
    cr_assert(g->in_first[0] == 0 && g->in_first[1] == 1 && g->in_first[2] == 2 && g->in_first[3] == 4);
    cr_assert(g->in_arc[0] == 2 && g->in_arc[1] == 0 && g->in_arc[2] == 1 && g->in_arc[3] == 3);
    arena_free(a);
}
