/* Time flows from callees to callers: T_r = S_r + Σ T_e · C_e^r / C_e over callees e outside r's component. */
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
    double *node_children; /* what reaches the node from outside its component */
    double *component_children;
    double *arc_self, *arc_children; /* what flows along an arc: a share of the callee component's self and children */
    uint64_t *node_outside, *node_inside, *node_self; /* calls from other components, from other members, from itself */
    uint64_t *component_outside, *component_inside;
    bool saturated;
};

/* component_self: seconds of samples of each component. Sums run over nodes and arcs in ascending order, so that the
 * same input gives the same doubles. Self arcs, arcs inside a component and arcs without calls carry nothing.
 * Components must be numbered as scc_find does. O(nodes + arcs). NO_MEMORY or OK. */
enum profd_status propagate_run(struct arena *a, const struct callgraph *g, const struct scc *s,
                                const double *component_self, struct propagate **out, struct profd_error *e);

#endif
