/* gprof's order of entries: time with descendants, largest first; of equals cycles, then names without a leading
 * underscore, then the most called, then strcmp of raw names, then (build, address). */
#ifndef PROFD_CORE_REPORT_ORDER_H
#define PROFD_CORE_REPORT_ORDER_H

#include <stdbool.h>

#include "core/arena.h"
#include "core/report.h"
#include "core/report_graph.h"

/* Puts entries and cycles in order and writes their indexes (1 …) into functions and cycles. O(n log n). */
bool report_order_entries(struct arena *a, const struct report_graph *g, struct report_function *functions,
                          struct report_cycle *cycles, const uint32_t **order, uint32_t *count);

#endif
