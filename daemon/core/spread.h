/* How far a figure could have been otherwise: Student's t, the 16 random groups of processes, and what they say about a
 * ratio (schema/spread.md). */
#ifndef PROFD_CORE_SPREAD_H
#define PROFD_CORE_SPREAD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/rollup.h"
#include "proto/varint.h"

/* Student's t for any number of degrees of freedom > 0. Relative error below 1e-10, also far out in the tails. */

/* P(|T| ≥ |t|). */
double student_outside(double freedom, double t);
/* The t with P(|T| ≤ t) = confidence, in (0, 1). */
double student_quantile(double freedom, double confidence);

/* How many processes of a sum are in each of the 16 random groups (schema/spread.md): calls per process have an
 * interval with them. */

#define RANDOM_GROUPS 16u
#define RANDOM_GROUPS_BYTES ((RANDOM_GROUPS + 1) * (size_t)VARINT_MAX)

/* Sums stop at 2^63−1. known + unknown processes are all processes of the sum, where no number stopped. */
struct random_groups {
    uint64_t of[RANDOM_GROUPS];
    uint64_t unknown; /* processes of sums that were made before groups were counted: their numbers are known for the
                         others only */
};

void random_groups_add(struct random_groups *to, const struct random_groups *more);
/* Processes of all groups together, the unknown ones not among them. */
uint64_t random_groups_known(const struct random_groups *g);
/* The stored encoding: 17 LEB128 numbers. Returns its size, at most RANDOM_GROUPS_BYTES. */
size_t random_groups_encode(const struct random_groups *g, uint8_t *out);
/* False if the bytes are none; *out is then unchanged. */
bool random_groups_decode(const uint8_t *in, size_t n, struct random_groups *out);

/* How far a ratio could have been otherwise: estimates from the 16 random groups of processes that sums keep apart
 * (core/rollup.h). schema/spread.md derives the formulas and says what they do not cover. x[g] is what group g's
 * processes brought: ticks, calls, seconds, any sum of rows. */

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
