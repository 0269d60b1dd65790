/* What a process counted so far, and what it counted since: one upload that grows (DECISIONS 23). */
#ifndef PROFD_CORE_INCREMENT_H
#define PROFD_CORE_INCREMENT_H

#include <stdbool.h>

#include "core/arena.h"
#include "proto/counts.h"
#include "proto/status.h"

/* The sum of both in one that the caller ends with counts_done. What old has keeps its order; arcs and histograms that
 * only more has stand behind, in more's order, each once. Histograms of one geometry add. Both are as counts_decode
 * gives them, over the same builds. *saturated becomes true when a count stops at 2^63−1 (one of the collector's words
 * excepted: they are no counts), and never false. scratch is reset. NO_MEMORY or OK; the limits of limits.h are
 * counts_encode's to judge. O(bins + arcs) expected. */
enum profd_status increment_add(struct arena *scratch, const struct counts *old, const struct counts *more,
                                struct counts *out, bool *saturated, struct profd_error *e);

#endif
