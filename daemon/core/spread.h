/* How far a ratio could have been otherwise: estimates from the 16 random groups of processes that sums keep apart
 * (core/rollup.h). schema/spread.md derives the formulas and says what they do not cover. x[g] is what group g's
 * processes brought: ticks, calls, seconds, any sum of rows. */
#ifndef PROFD_CORE_SPREAD_H
#define PROFD_CORE_SPREAD_H

#include <stdbool.h>
#include <stdint.h>

#include "core/rollup.h"

/* groups: in how many the window has a process at all, whether or not it brought something to this number. */
struct spread_estimate {
    double value;
    double variance; /* of the value; ≥ 0 */
    unsigned groups;
};

/* Of a ratio R = Σx/Σy (seconds per call, a share of the time): delta method, k/(k−1)·Σ(x_g − R·y_g)² / (Σy)².
 * False, and *out untouched, if Σy is 0. */
bool spread_ratio(const double x[COUNTS_GROUPS], const double y[COUNTS_GROUPS], unsigned groups,
                  struct spread_estimate *out);

/* value ± t·√variance with groups − 1 degrees of freedom, 15 at most. False, and nothing written, with fewer than two
 * groups: one process says nothing about others. */
bool spread_interval(const struct spread_estimate *s, double confidence, double *low, double *high);

#endif
