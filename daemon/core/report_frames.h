/* The tree of stacks as the report has it. */
#ifndef PROFD_CORE_REPORT_FRAMES_H
#define PROFD_CORE_REPORT_FRAMES_H

#include <stdbool.h>

#include "core/arena.h"
#include "core/report.h"
#include "core/report_graph.h"

/* Sets stacks and time_measured of the report; its functions are there.
 * O(nodes log nodes), no recursion. */
void report_frames_make(struct arena *a, const struct report_graph *g, struct report *r);

#endif
