/* Functions and the arcs between them, each pair once. */
#ifndef PROFD_CORE_CALLGRAPH_H
#define PROFD_CORE_CALLGRAPH_H

#include <stdbool.h>
#include <stdint.h>

#include "core/arena.h"
#include "proto/status.h"

#define CALLGRAPH_SHAPES 1u /* counts when cycles are sought, and its time is passed on to callers of the caller */
#define CALLGRAPH_STATIC 2u /* known without having been observed: a row of count 0 unless it has calls */
#define CALLGRAPH_EXACT 4u  /* not only known through an import's name */
#define CALLGRAPH_STACK 8u  /* seen in stacks: a row even without calls */
#define CALLGRAPH_JUMP 16u  /* the callee may have been entered by a jump: another function may have made the call */

struct callgraph_arc {
    uint64_t calls;
    uint32_t from, to; /* nodes */
    uint8_t flags;
};

struct callgraph {
    uint32_t node_count, arc_count;
    uint32_t *from, *to; /* ascending by (from, to), no pair twice */
    uint64_t *calls;     /* summed; stopped at SUM_MAX */
    uint8_t *flags;      /* OR of all */
    uint32_t *out_first; /* arcs out of v: out_first[v] … out_first[v + 1] */
    uint32_t *in_first;  /* arcs into v: in_arc[in_first[v]] … in_arc[in_first[v + 1]], ascending by from */
    uint32_t *in_arc;
    bool saturated;
};

/* Sums n arcs in any order into a graph in the arena. Nodes are 0 … nodes − 1. O(nodes + n). */
struct callgraph *callgraph_build(struct arena *a, uint32_t nodes, const struct callgraph_arc *arcs, uint32_t n);

/* The arc between two nodes, CALLGRAPH_NO_ARC if there is none. O(log arcs out of from). */
#define CALLGRAPH_NO_ARC UINT32_MAX
uint32_t callgraph_find_arc(const struct callgraph *g, uint32_t from, uint32_t to);

#endif
