/* What a process counted so far, and what it counted since: one upload that grows (DECISIONS 23). */
#ifndef PROFD_CORE_INCREMENT_H
#define PROFD_CORE_INCREMENT_H

#include <stdbool.h>

#include "core/arena.h"
#include "proto/counts.h"
#include "proto/status.h"

/* The sum of both, which the caller ends with counts_done. The rows of old keep their order; arcs and histograms that
 * only more has follow, in more's order, each once. Histograms of one geometry are added up. Both are as counts_decode
 * returns them, over the same builds. *saturated becomes true if a count is limited to 2^63−1 (except the collector's
 * counters), and never false. scratch is reset. NO_MEMORY or OK; counts_encode checks the limits of limits.h. O(bins +
 * arcs) expected. */
enum profd_status increment_add(struct arena *scratch, const struct counts *old, const struct counts *more,
                                struct counts *out, bool *saturated, struct profd_error *e);

#endif
