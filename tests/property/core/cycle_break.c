/* Random cycles are broken, and no arc is removed in vain. */
#include "core/graph.h"

#include <criterion/criterion.h>
#include <string.h>

#define NODES 40u
#define ARCS 120u

static uint64_t state = 99;

static uint32_t draw(uint32_t below)
{
    state ^= state << 13;
    state ^= state >> 7;
    state ^= state << 17;
    return (uint32_t)((state >> 33) % below);
}

/* Kahn: can all nodes be removed, one without an arc to it after the other? extra: this arc stays, too. */
static bool is_acyclic(const struct cycle_arc *arcs, uint32_t n, uint32_t nodes, uint32_t extra)
{
    uint32_t into[NODES] = {0}, left = nodes;
    bool gone[NODES] = {false};
    for (uint32_t i = 0; i < n; i++) {
        into[arcs[i].to] += arcs[i].from != arcs[i].to && (!arcs[i].breaks || i == extra);
    }
    for (bool moved = true; moved;) {
        moved = false;
        for (uint32_t v = 0; v < nodes; v++) {
            if (gone[v] || into[v] > 0) {
                continue;
            }
            gone[v] = moved = true;
            left--;
            for (uint32_t i = 0; i < n; i++) {
                into[arcs[i].to] -= arcs[i].from == v && arcs[i].to != v && (!arcs[i].breaks || i == extra);
            }
        }
    }
    return left == 0;
}

Test(cycle_break, random_cycles)
{
    for (int run = 0; run < 2000; run++) {
        struct cycle_arc arcs[ARCS];
        struct arena *a = arena_new(0);
        uint32_t nodes = 2 + draw(NODES - 1), n = 1 + draw(ARCS);
        for (uint32_t i = 0; i < n; i++) {
            arcs[i] = (struct cycle_arc){.from = draw(nodes), .to = draw(nodes), .calls = draw(6)};
        }
        cycle_break(a, nodes, arcs, n);
        cr_assert(is_acyclic(arcs, n, nodes, UINT32_MAX), "run %d: a cycle is left", run);
        for (uint32_t i = 0; i < n; i++) {
            cr_assert(!arcs[i].breaks || arcs[i].from != arcs[i].to, "run %d: arc %u closes no cycle", run, i);
            cr_assert(!arcs[i].breaks || !is_acyclic(arcs, n, nodes, i), "run %d: arc %u was removed in vain", run, i);
        }
        arena_free(a);
    }
}

/* main loop → handler 1,000 times, and back 3 times: the rare way back goes. */
Test(cycle_break, the_rare_arc_goes)
{
    struct cycle_arc arcs[] = {{.from = 0, .to = 1, .calls = 1000},
                               {.from = 1, .to = 2, .calls = 500},
                               {.from = 2, .to = 0, .calls = 3},
                               {.from = 1, .to = 0, .calls = 2}};
    struct arena *a = arena_new(0);
    cycle_break(a, 3, arcs, 4);
    cr_assert(!arcs[0].breaks && !arcs[1].breaks && arcs[2].breaks && arcs[3].breaks);
    arena_free(a);
}
