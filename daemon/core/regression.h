/* Non-negative least squares: how much each cause costs, from sums of which only the mixture is known. */
#ifndef PROFD_CORE_REGRESSION_H
#define PROFD_CORE_REGRESSION_H

#include <stdint.h>

#include "core/arena.h"
#include "proto/status.h"

#define REGRESSION_CAUSES 64u     /* of one fit */
#define REGRESSION_CONDITION 30.0 /* above it the causes rise and fall together */
#define REGRESSION_SPARE 8u       /* equations that a fit needs beside one for each cause */

enum regression_verdict {
    REGRESSION_FITTED,
    REGRESSION_FEW,       /* equations: fewer than causes + REGRESSION_SPARE */
    REGRESSION_COLLINEAR, /* condition > REGRESSION_CONDITION, or a cause that never occurs */
    REGRESSION_SINGLE,    /* one equation alone decides on a cause, so nothing says how far it may be wrong */
};

/* FEW: nothing else is set. COLLINEAR: only condition. */
struct regression {
    enum regression_verdict verdict;
    double condition; /* largest by smallest singular value of the columns, each scaled to length 1; infinite if a cause
                         never occurs or is a mixture of others */
    double *cost;     /* of each cause: ≥ 0, least squares */
    double *error;    /* standard error of the unconstrained estimate (HC3: equations may vary differently) */
    double *low, *high; /* 95 % interval, ≥ 0; holds cost */
};

/* Fits y[i] ≈ Σ x[i·causes + k] · cost[k] for i < n, all x ≥ 0 and finite; 1 ≤ causes ≤ REGRESSION_CAUSES. Arrays live
 * in the arena. Same input, same result. O(n · causes² + causes⁴). NO_MEMORY or OK. */
enum profd_status regression_fit(struct arena *a, const double *x, const double *y, uint32_t n, uint32_t causes,
                                 struct regression *out, struct profd_error *e);

#endif
