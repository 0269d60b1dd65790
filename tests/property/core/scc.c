/* Components against brute-force reachability; propagation against the recurrence; sizes that would break recursion. */
#include <criterion/criterion.h>
#include <math.h>
#include <string.h>

#include "core/propagate.h"

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

/* Total of a component from the definition: own seconds and shares of what it calls. */
static double total_of(const struct callgraph *g, const struct scc *s, const double *self, uint32_t c)
{
    static double totals[MOST];
    for (uint32_t k = 0; k <= c; k++) {
        totals[k] = self[k];
        for (uint32_t i = 0; i < g->arc_count; i++) {
            uint32_t callee = s->component[g->to[i]];
            if (s->component[g->from[i]] != k || callee == k || g->calls[i] == 0) {
                continue;
            }
            double all = 0;
            for (uint32_t j = 0; j < g->arc_count; j++) {
                if (s->component[g->to[j]] == callee && s->component[g->from[j]] != callee) {
                    all += (double)g->calls[j];
                }
            }
            totals[k] += totals[callee] * (double)g->calls[i] / all;
        }
    }
    return totals[c];
}

Test(scc, agrees_with_reachability_and_numbers_by_the_law)
{
    for (uint64_t seed = 1; seed <= 4000; seed++) {
        state = seed * UINT64_C(0x9e3779b97f4a7c15);
        struct callgraph_arc arcs[MOST * 4];
        uint32_t n = draw(MOST) + 1, m = draw(n * 4);
        struct arena *a = arena_new(0);
        struct callgraph *g = NULL;
        struct scc *s = NULL;
        memset(reach, 0, sizeof reach);
        for (uint32_t i = 0; i < m; i++) {
            uint32_t from = draw(n), to = draw(6) == 0 ? draw(n) : from + draw(n - from);
            arcs[i] = (struct callgraph_arc){draw(5), from, to, draw(9) == 0 ? CALLGRAPH_STATIC : CALLGRAPH_SHAPES};
            if (arcs[i].flags == CALLGRAPH_STATIC) {
                arcs[i].calls = 0;
            }
            reach[from][to] |= arcs[i].flags == CALLGRAPH_SHAPES;
        }
        close_reach(n);
        cr_assert_eq(callgraph_build(a, n, arcs, m, &g, NULL), PROFD_OK);
        cr_assert_eq(scc_find(a, g, &s, NULL), PROFD_OK);
        for (uint32_t i = 0; i < n; i++) {
            for (uint32_t j = 0; j < n; j++) {
                cr_assert_eq(s->component[i] == s->component[j], i == j || (reach[i][j] && reach[j][i]),
                             "seed %llu: %u %u", (unsigned long long)seed, i, j);
            }
        }
        for (uint32_t i = 0; i < m; i++) {
            cr_assert(arcs[i].flags != CALLGRAPH_SHAPES || s->component[arcs[i].from] >= s->component[arcs[i].to]);
        }
        double self[MOST];
        struct propagate *p = NULL;
        for (uint32_t c = 0; c < s->count; c++) {
            self[c] = draw(100) / 7.0;
        }
        cr_assert_eq(propagate_run(a, g, s, self, &p, NULL), PROFD_OK);
        for (uint32_t c = 0; c < s->count; c++) {
            double want = total_of(g, s, self, c), got = self[c] + p->component_children[c];
            cr_assert(fabs(want - got) < 1e-9 * (1 + want), "seed %llu: %f %f", (unsigned long long)seed, want, got);
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
    cr_assert_eq(callgraph_build(a, n, arcs, n - 1, &g, NULL), PROFD_OK);
    cr_assert_eq(scc_find(a, g, &s, NULL), PROFD_OK);
    cr_assert_eq(s->count, n);
    double *self = ARENA_ARRAY(a, n, double);
    self[s->component[n - 1]] = 1.5;
    cr_assert_eq(propagate_run(a, g, s, self, &p, NULL), PROFD_OK);
    cr_assert_eq(p->node_children[0], 1.5, "the last one's time reaches the first unharmed");
    arcs[n - 1] = (struct callgraph_arc){1, n - 1, 0, CALLGRAPH_SHAPES};
    cr_assert_eq(callgraph_build(a, n, arcs, n, &g, NULL), PROFD_OK);
    cr_assert_eq(scc_find(a, g, &s, NULL), PROFD_OK);
    cr_assert_eq(s->count, 1, "one arc closes it");
    arena_free(a);
}
