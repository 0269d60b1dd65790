/* Which arcs to remove so that a cycle is none any more (gprof's -k, suggested). */
#ifndef PROFD_CORE_CYCLE_BREAK_H
#define PROFD_CORE_CYCLE_BREAK_H

#include <stdbool.h>
#include <stdint.h>

#include "core/arena.h"
#include "proto/status.h"

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
