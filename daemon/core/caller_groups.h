/* Callers with calls that keep one proportion in all equations. A fit cannot tell their costs apart; their time
 * together it can. At the start of a program many functions are called by several callers, each of them always equally
 * often. */
#ifndef PROFD_CORE_CALLER_GROUPS_H
#define PROFD_CORE_CALLER_GROUPS_H

#include <stdint.h>

#include "core/arena.h"
#include "proto/status.h"

struct caller_groups {
    uint32_t count;
    uint32_t *of;  /* [caller] */
    double *calls; /* [equation · count + group] */
};

/* Of the columns of calls, [equation · callers + caller], two are in one group if they alone would have a condition
 * number above REGRESSION_CONDITION, and so are all that such pairs join. Where nothing else is left, each caller has a
 * group of its own. Arrays live in the arena. O(equations · callers²). NO_MEMORY or OK. */
enum profd_status caller_groups_make(struct arena *a, const double *calls, uint32_t equations, uint32_t callers,
                                     struct caller_groups *out, struct profd_error *e);

#endif
