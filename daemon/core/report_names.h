/* What the owners of a report are called. */
#ifndef PROFD_CORE_REPORT_NAMES_H
#define PROFD_CORE_REPORT_NAMES_H

#include <stdbool.h>
#include <stdint.h>

#include "core/arena.h"
#include "core/report.h"
#include "core/report_builds.h"

/* Fills in kind, name, raw, aliases, build, address, size and file of the owner. Names are the object's or in the
 * arena. O(log builds + aliases log aliases). */
void report_names_describe(struct arena *a, const struct report_builds *b, uint32_t owner, struct report_function *f);

#endif
