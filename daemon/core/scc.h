/* Strongly connected components, numbered so that calls go downwards (Tarjan 1972; Graham, Kessler, McKusick 1982). */
#ifndef PROFD_CORE_SCC_H
#define PROFD_CORE_SCC_H

#include <stdint.h>

#include "core/arena.h"
#include "core/callgraph.h"
#include "proto/status.h"

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

#endif
