/* Components against brute-force reachability; propagation against the recurrence, classes of addresses
 * included; sizes that would break recursion. */
#include <criterion/criterion.h>
#include <math.h>
#include <string.h>

#include "core/graph.h"
#include "tests/rounds.h"

#define MOST 40

static uint64_t state;

static uint32_t draw(uint32_t below)
{
    state ^= state << 13;
    state ^= state >> 7;
    state ^= state << 17;
    return (uint32_t)(state >> 20) % below;
}

static bool reach[MOST][MOST];

static void close_reach(uint32_t n)
{
    for (uint32_t k = 0; k < n; k++) {
        for (uint32_t i = 0; i < n; i++) {
            for (uint32_t j = 0; j < n; j++) {
                reach[i][j] |= reach[i][k] && reach[k][j];
            }
        }
    }
}

/* The part of what the arc's callee component receives in calls from outside. */
static double part_of(const struct callgraph *g, const struct scc *s, uint32_t arc)
{
    uint32_t callee = s->component[g->to[arc]];
    double all = 0;
    for (uint32_t j = 0; j < g->arc_count; j++) {
        if (s->component[g->to[j]] == callee && s->component[g->from[j]] != callee) {
            all += (double)g->calls[j];
        }
    }
    return callee == s->component[g->from[arc]] || g->calls[arc] == 0 ? 0 : (double)g->calls[arc] / all;
}

/* Totals of components from the definition: own seconds and shares of what they call. A class of addresses (apart) has
 * its own seconds only, whatever it calls. */
static void totals_of(const struct callgraph *g, const struct scc *s, const double *self, const bool *apart,
                      double *totals)
{
    for (uint32_t k = 0; k < s->count; k++) {
        totals[k] = self[k];
        for (uint32_t i = 0; i < g->arc_count; i++) {
            if (s->component[g->from[i]] == k && !apart[g->from[i]]) {
                totals[k] += totals[s->component[g->to[i]]] * part_of(g, s, i);
            }
        }
    }
}

/* What a class of addresses calls took, but for its own seconds: what would be left if it had none. */
static double below_class(const struct callgraph *g, const struct scc *s, const double *self, const bool *apart,
                          uint32_t v)
{
    double without[MOST], totals[MOST], below = 0;
    memcpy(without, self, s->count * sizeof *without);
    without[s->component[v]] = 0;
    totals_of(g, s, without, apart, totals);
    for (uint32_t i = g->out_first[v]; i < g->out_first[v + 1]; i++) {
        below += totals[s->component[g->to[i]]] * part_of(g, s, i);
    }
    return below;
}

static void near(double got, double want, uint64_t seed)
{
    cr_assert(fabs(want - got) < 1e-9 * (1 + want), "seed %llu: %f is not %f", (unsigned long long)seed, got, want);
}

Test(scc, agrees_with_reachability_and_numbers_by_the_law)
{
    for (uint64_t seed = 1; seed <= rounds(1000); seed++) {
        state = seed * UINT64_C(0x9e3779b97f4a7c15);
        struct callgraph_arc arcs[MOST * 4];
        uint32_t n = draw(MOST) + 1, m = draw(n * 4);
        struct arena *a = arena_new(0);
        struct callgraph *g = NULL;
        struct scc *s = NULL;
        bool apart[MOST];
        memset(reach, 0, sizeof reach);
        for (uint32_t v = 0; v < n; v++) {
            apart[v] = draw(8) == 0;
        }
        for (uint32_t i = 0; i < m; i++) {
            uint32_t from = draw(n), to = draw(6) == 0 ? draw(n) : from + draw(n - from);
            arcs[i] = (struct callgraph_arc){draw(5), from, to, draw(9) == 0 ? CALLGRAPH_STATIC : CALLGRAPH_SHAPES};
            if (arcs[i].flags == CALLGRAPH_STATIC) {
                arcs[i].calls = 0;
            }
            if (apart[from]) {
                arcs[i].flags = 0;
            }
            reach[from][to] |= arcs[i].flags == CALLGRAPH_SHAPES;
        }
        close_reach(n);
        g = callgraph_build(a, n, arcs, m);
        s = scc_find(a, g);
        for (uint32_t i = 0; i < n; i++) {
            for (uint32_t j = 0; j < n; j++) {
                cr_assert_eq(s->component[i] == s->component[j], i == j || (reach[i][j] && reach[j][i]),
                             "seed %llu: %u %u", (unsigned long long)seed, i, j);
            }
        }
        for (uint32_t i = 0; i < m; i++) {
            cr_assert(arcs[i].flags != CALLGRAPH_SHAPES || s->component[arcs[i].from] >= s->component[arcs[i].to]);
        }
        double self[MOST], totals[MOST];
        struct propagate *p = NULL;
        for (uint32_t c = 0; c < s->count; c++) {
            self[c] = draw(100) / 7.0;
        }
        p = propagate_run(a, g, s, self);
        totals_of(g, s, self, apart, totals);
        for (uint32_t c = 0; c < s->count; c++) {
            near(self[c] + p->component_children[c], totals[c], seed);
        }
        for (uint32_t i = 0; i < g->arc_count; i++) {
            near(p->arc_self[i] + p->arc_children[i], totals[s->component[g->to[i]]] * part_of(g, s, i), seed);
        }
        for (uint32_t v = 0; v < n; v++) {
            if (apart[v]) {
                near(p->node_children[v], below_class(g, s, self, apart, v), seed);
            }
        }
        arena_free(a);
    }
}

Test(scc, a_chain_of_400000_calls)
{
    uint32_t n = 400000;
    struct arena *a = arena_new(0);
    struct callgraph_arc *arcs = ARENA_ARRAY(a, n, struct callgraph_arc);
    struct callgraph *g = NULL;
    struct scc *s = NULL;
    struct propagate *p = NULL;
    for (uint32_t i = 0; i + 1 < n; i++) {
        arcs[i] = (struct callgraph_arc){1, i, i + 1, CALLGRAPH_SHAPES};
    }
    g = callgraph_build(a, n, arcs, n - 1);
    s = scc_find(a, g);
    cr_assert_eq(s->count, n);
    double *self = ARENA_ARRAY(a, n, double);
    self[s->component[n - 1]] = 1.5;
    p = propagate_run(a, g, s, self);
    cr_assert_eq(p->node_children[0], 1.5, "the last one's time reaches the first unharmed");
    arcs[n - 1] = (struct callgraph_arc){1, n - 1, 0, CALLGRAPH_SHAPES};
    g = callgraph_build(a, n, arcs, n);
    s = scc_find(a, g);
    cr_assert_eq(s->count, 1, "one arc closes it");
    arena_free(a);
}
