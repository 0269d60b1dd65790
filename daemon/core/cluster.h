/* An order of functions in memory: callees near their callers, hot code near hot code (C3: Ottoni and Maher,
 * "Optimizing Function Placement for Large-Scale Data-Center Applications", 2017). Pure. */
#ifndef PROFD_CORE_CLUSTER_H
#define PROFD_CORE_CLUSTER_H

#include <stdint.h>

#include "core/arena.h"
#include "proto/status.h"

/* Clusters do not grow beyond this size: so much code is near. */
#define CLUSTER_SIZE_MAX (1u << 20)

struct cluster_node {
    uint64_t size, weight; /* bytes; calls into it */
};

struct cluster_arc {
    uint32_t from, to; /* nodes */
    uint64_t weight;   /* calls */
};

/* Writes all nodes into out, which has capacity for them, in the order in which they should lie. The heaviest nodes
 * come first to be appended to the cluster of the caller with most calls, unless that would exceed CLUSTER_SIZE_MAX or
 * there is no caller; then clusters are sorted by weight per byte. Ties ascend by node. Self arcs and arcs of weight 0
 * are ignored; arcs may repeat. O((nodes + arcs) log nodes). */
void cluster_order(struct arena *a, const struct cluster_node *nodes, uint32_t count, const struct cluster_arc *arcs,
                   uint32_t arc_count, uint32_t *out);

#endif
