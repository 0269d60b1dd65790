/* The callers of a function: how long their calls took, and how that is known. */
#ifndef PROFD_CORE_CALLERS_H
#define PROFD_CORE_CALLERS_H

#include <stdbool.h>
#include <stdint.h>

#include "core/arena.h"
#include "core/caller_groups.h"
#include "core/regression.h"
#include "core/report.h"
#include "proto/status.h"

#define CALLERS_ERROR_MOST 0.25 /* standard error of a caller's seconds in those of the function */

enum callers_method {
    CALLERS_NONE,       /* the row has no time: a call inside a cycle */
    CALLERS_STACKS,     /* ticks with this caller on the stack */
    CALLERS_REGRESSION, /* over processes and hours with other mixes of callers */
    CALLERS_CALLS,      /* by numbers of calls, as gprof does */
};

struct callers_row {
    const struct report_arc *arc;
    double per_caller; /* calls per call of the caller; negative: it was not called itself */
    enum callers_method method;
    double seconds, low, high; /* with all that the function calls; no interval: low > high */
};

/* Of a regression. Sentences live in the arena. */
struct callers_fit {
    const char *refused; /* why it was not used; NULL: it was */
    uint32_t equations;
    double condition; /* 0: unknown */
    double
        worst_error; /* largest standard error of a caller's seconds, as a part of the function's; negative: unknown */
    bool shared_below;    /* what the function calls shares its time by numbers of calls */
    const char *together; /* says of which callers only the time together was fitted; NULL: of none */
};

struct callers {
    const struct report_function *function;
    enum callers_method method;
    const char *stacks_refused; /* why stacks were not used; NULL: they were, or were not wanted */
    bool tried;                 /* fit is set */
    struct callers_fit fit;
    uint32_t row_count;
    struct callers_row *rows; /* the most time first */
};

/* Callers of the function at that position, by stacks if the report's times are measured (want: or in any case, if they
 * are CALLERS_STACKS), else by numbers of calls. In the arena. NO_MEMORY or OK. O(callers log callers). */
enum profd_status callers_make(struct arena *a, const struct report *r, uint32_t position, enum callers_method want,
                               struct callers *out, struct profd_error *e);

/* Why no equations are needed or possible; NULL: they are. */
const char *callers_refuse(const struct report *r, uint32_t position, uint32_t callers, bool in_cycle);

/* What a fit is of. */
struct callers_causes {
    uint32_t count;
    const uint32_t *callers;            /* positions */
    const struct caller_groups *groups; /* of the callers: the fit's causes */
    double scale;                       /* seconds of the report by those of the equations */
};

/* Gives rows the costs of a fit, if it is one; else says why it is none. Time of a group of several callers is divided
 * by numbers of calls, and the interval of each reaches from 0 to that of the whole group. */
enum profd_status callers_apply(struct arena *a, const struct report *r, const struct regression *fit,
                                const struct callers_causes *causes, struct callers *c, struct profd_error *e);

#endif
