/* Rows above and below entries, in gprof's order: callers least first, callees most first; ties by (build, address). */
#ifndef PROFD_CORE_REPORT_ROWS_H
#define PROFD_CORE_REPORT_ROWS_H

#include <stdbool.h>

#include "core/arena.h"
#include "core/report.h"
#include "core/report_graph.h"

/* Fills in the callers, callees and static rows of functions (g->function_count of them) and what is counted in them.
 * O(arcs). */
void report_rows_functions(struct arena *a, const struct report_graph *g, struct report_function *functions);

/* Fills in members, callers and callees of cycles. The functions must be complete. O(arcs). */
void report_rows_cycles(struct arena *a, const struct report_graph *g, const struct report_function *functions,
                        struct report_cycle *cycles);

#endif
