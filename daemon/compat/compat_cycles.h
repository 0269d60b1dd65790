/* Cycles and the topological order (reference 3.5, A2 and A3): strongly connected components with gprof's order of
 * members. */
#ifndef PROFD_COMPAT_COMPAT_CYCLES_H
#define PROFD_COMPAT_COMPAT_CYCLES_H

#include <stdint.h>

#include "compat/compat_arcs.h"
#include "core/arena.h"
#include "proto/status.h"

struct compat_cycles {
    uint32_t count;                   /* number of components with two or more members; cycles are numbered from 1 */
    uint32_t *number;                 /* by symbol, 0 if in none */
    uint32_t *member_first, *members; /* cycle n: members[member_first[n − 1] … member_first[n]) */
    uint32_t *order;                  /* all symbols, callees before callers; members of a cycle are adjacent */
};

/* Depth-first search over all arcs, including those of count 0; iterative. O(symbols + arcs). */
enum profd_status compat_cycles_find(const struct compat_arcs *arcs, uint32_t symbols, struct arena *a,
                                     struct compat_cycles *out, struct profd_error *e);

#endif
