/* Time flows from callees to callers: T_r = S_r + Σ T_e · C_e^r / C_e over callees e outside r's component.
 *
 * Arcs without CALLGRAPH_SHAPES leave a class of addresses, which is no function. What flows along them is not passed
 * on to the callers of the class: nothing says that their calls led to these. */
#ifndef PROFD_CORE_PROPAGATE_H
#define PROFD_CORE_PROPAGATE_H

#include <stdbool.h>
#include <stdint.h>

#include "core/arena.h"
#include "core/callgraph.h"
#include "core/scc.h"
#include "proto/status.h"

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

#endif
