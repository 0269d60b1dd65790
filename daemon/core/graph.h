/* The call graph and what gprof makes of it (Graham, Kessler, McKusick, "gprof: a Call Graph Execution Profiler",
 * 1982): arcs between functions, cycles, and the times that callees hand over to callers. */
#ifndef PROFD_CORE_GRAPH_H
#define PROFD_CORE_GRAPH_H

#include <stdbool.h>
#include <stdint.h>

#include "core/arena.h"
#include "proto/status.h"

/* Functions and the arcs between them, each pair once. */

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

/* Strongly connected components, numbered so that calls go downwards (Tarjan 1972; Graham, Kessler, McKusick 1982). */

struct scc {
    uint32_t count;
    uint32_t *component; /* of each node, 0 … count − 1: every arc that shapes goes to the same or a lower number */
    uint32_t *first;     /* members of c: member[first[c]] … member[first[c + 1]], ascending */
    uint32_t *member;
};

/* Components over the arcs flagged CALLGRAPH_SHAPES. The same graph gives the same numbers. Iterative; O(nodes + arcs)
 * time and memory. */
struct scc *scc_find(struct arena *a, const struct callgraph *g);

static inline uint32_t scc_size(const struct scc *s, uint32_t component)
{
    return s->first[component + 1] - s->first[component];
}

/* Time flows from callees to callers: T_r = S_r + Σ T_e · C_e^r / C_e over callees e outside r's component.
 *
 * Arcs without CALLGRAPH_SHAPES leave a class of addresses, which is no function. What flows along them is not passed
 * on to the callers of the class: nothing says that their calls led to these. */

/* Seconds and calls of nodes, components and arcs. A component of one node has that node's numbers. */
struct propagate {
    double *node_children; /* what reaches the node from outside its component; of a class of addresses without what is
                            * its own self time, handed over by its callers, so that self + children counts it once */
    double *component_children;      /* what is passed on to callers; 0 of a class of addresses */
    double *arc_self, *arc_children; /* what flows along an arc: a share of the callee component's self and children */
    uint64_t *node_outside, *node_inside, *node_self; /* calls from other components, from other members, from itself */
    uint64_t *component_outside, *component_inside;   /* inside: also calls of a node to itself */
    bool saturated;
};

/* component_self: seconds of samples of each component. Sums run over nodes and arcs in ascending order, so that the
 * same input gives the same doubles. Self arcs, arcs inside a component and arcs without calls carry nothing.
 * Components must be numbered as scc_find does. O(nodes + arcs), and again for each class of addresses with time,
 * callers and callees. All arcs with calls of a node have CALLGRAPH_SHAPES, or none. */
struct propagate *propagate_run(struct arena *a, const struct callgraph *g, const struct scc *s,
                                const double *component_self);

/* Which arcs to remove so that a cycle is none any more (gprof's -k, suggested). */

/* An arc among nodes 0 … nodes − 1. One from a node to itself is never marked: its node may stay alone. */
struct cycle_arc {
    uint32_t from, to;
    uint64_t calls;
    bool breaks; /* removing all arcs so marked leaves no cycle */
};

/* Marks arcs. Arcs are taken by calls, the most first (ties: as they stand), and each that closes a cycle with those
 * taken before is marked: of every cycle an arc with few calls goes. No marked arc could stay without a cycle, but
 * another set may have fewer calls: the best one is not known in reasonable time. The order of the nodes is kept as
 * Pearce and Kelly do, 2007. O(n log n) and, for an arc against the order, what lies between its ends:
 * once 20 million arcs were looked at, each further arc against the order is marked, whether it closes a cycle or not.
 */
void cycle_break(struct arena *a, uint32_t nodes, struct cycle_arc *arcs, uint32_t count);

#endif
