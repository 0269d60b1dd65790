/* Merges the counts of two uploads. A live process's upload grows this way with each harvest (DECISIONS 23). */
#ifndef PROFD_CORE_COUNTS_MERGE_H
#define PROFD_CORE_COUNTS_MERGE_H

#include <stdbool.h>

#include "core/arena.h"
#include "proto/counts.h"
#include "proto/status.h"

/* Makes the sum of both; the caller ends it with counts_done. The rows of old keep their order. Arcs and histograms
 * that only more has follow once each, in the order of more. Histograms of the same geometry are added up, and so are
 * trees of stacks of the same clock, which are then folded to LIMIT_STACK_NODES. Both inputs are as counts_decode
 * returns them, over the same builds. Sets *saturated to true if a count was limited to 2^63−1
 * (except the collector's counters), never to false. Resets scratch. Returns NO_MEMORY or OK; counts_encode checks the
 * limits of limits.h. O(bins + arcs + nodes) expected; O(nodes log nodes) where trees are folded. */
enum profd_status counts_merge(struct arena *scratch, const struct counts *old, const struct counts *more,
                               struct counts *out, bool *saturated, struct profd_error *e);

#endif
