/* The report with measured times in place of those by calls. */
#ifndef PROFD_CORE_REPORT_SHOWN_H
#define PROFD_CORE_REPORT_SHOWN_H

#include <stdbool.h>

#include "core/arena.h"
#include "core/report.h"

/* Sets shown: a copy if time_measured, else the report itself. In a copy self of a function stays what its samples
 * say; children is the measured time of what stands below it in stacks. O(report). */
void report_shown_make(struct arena *a, struct report *r);

#endif
