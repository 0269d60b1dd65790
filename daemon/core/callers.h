/* The callers of a function: how long their calls took, and how that is known. */
#ifndef PROFD_CORE_CALLERS_H
#define PROFD_CORE_CALLERS_H

#include <stdbool.h>
#include <stdint.h>

#include "core/arena.h"
#include "core/report.h"
#include "proto/status.h"

enum callers_method {
    CALLERS_NONE,   /* the row has no time: a call inside a cycle */
    CALLERS_STACKS, /* ticks with this caller on the stack */
    CALLERS_CALLS,  /* by numbers of calls, as gprof does */
};

struct callers_row {
    const struct report_arc *arc;
    double per_caller; /* calls per call of the caller; negative: it was not called itself */
    enum callers_method method;
    double seconds, low, high; /* with all that the function calls; no interval: low > high */
};

struct callers {
    const struct report_function *function;
    enum callers_method method;
    const char *stacks_refused; /* why stacks were not used; NULL: they were, or were not wanted */
    uint32_t row_count;
    struct callers_row *rows; /* the most time first */
};

/* Lists the callers of the function at that position, in the arena. Times come from stacks if the report's times are
 * measured, or if want is CALLERS_STACKS and there are stacks; else from numbers of calls. O(callers log callers). */
void callers_make(struct arena *a, const struct report *r, uint32_t position, enum callers_method want,
                  struct callers *out);

#endif
