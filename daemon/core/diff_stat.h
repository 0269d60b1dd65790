/* Comparison of two ratios by the logarithm, with the delete-one-group jackknife.
 *
 * A ratio R = Σx/Σy of a side is known as the logarithms ℓ of all values (core/diff_side.h): of all processes, and
 * without each group. Its variance is (m − 1)/m · Σ(ℓ(g) − mean)² over the m groups of the side. It has m − 1 degrees
 * of freedom if each group is as likely to deviate as the others. A group with more of x deviates more, so m is
 * replaced by Kish's number of groups of equal weight: (Σ x_g)² / Σ x_g². Sides of different builds have different
 * processes: variances are added, with the degrees of freedom of Welch and Satterthwaite. Two windows or label sets of
 * one build may share processes, which stay in their group: the differences by group are taken as one sample. */
#ifndef PROFD_CORE_DIFF_STAT_H
#define PROFD_CORE_DIFF_STAT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/diff_side.h"

#define DIFF_GROUPS_LEAST 12u   /* below, there is no test */
#define DIFF_SAMPLES_LEAST 150u /* of a function on each side if nothing had changed, for tests of its time */
#define DIFF_CONFIDENCE 0.95
#define DIFF_POWER 0.84162123357291442 /* normal quantile of 80 % */
#define DIFF_ROUNDING 1e-9             /* logarithms that differ by less are equal: rounding */

/* ln(x/y) of all values. */
struct diff_logs {
    double of[DIFF_VALUES];
    double freedom; /* of its variance, ≥ 1 */
};

/* Where x or y is 0, so that there is no logarithm, false. */
bool diff_stat_logs(const double x[DIFF_VALUES], const double y[DIFF_VALUES], struct diff_logs *out);

/* Standard error and interval of a difference of logarithms. */
struct diff_estimate {
    double log;       /* ln(R_B / R_A) */
    double error;     /* standard error; 0: constant in all groups of both sides */
    double freedom;   /* degrees of freedom, ≤ 30 */
    double low, high; /* of log, 95 % */
    double p;         /* two-sided; 1 or 0 where error is 0 */
    double visible;   /* the smallest increase, as a logarithm, that is found in 80 % of cases (core/diff_plan.h) */
};

/* Compares two sides; groups[s]: mask of the side's groups, of which there are at least two. O(groups). */
void diff_stat_compare(const struct diff_logs *a, const struct diff_logs *b, const uint16_t groups[2], bool paired,
                       struct diff_estimate *out);

/* Computes low and high for another confidence, in (0, 1), from error and freedom. */
void diff_stat_set_confidence(struct diff_estimate *x, double confidence);

/* The size, in standard errors, that a change must have so that a test with p ≤ level finds it in 80 % of cases.
 *
 * T = (d + Z) / r, where r² is the jackknife's variance over the true one, about χ²/ν with a standard deviation of
 * 1/√(2ν): T > t holds in a part Φ((d − t (1 − 1/4ν)) / √(1 + t²/2ν)) of cases (Abramowitz and Stegun 26.7.10). d is
 * counted in errors that are estimated as well, by an independent r: it varies by d/√(2ν). So
 *     d = t (1 − 1/4ν) + z √(1 + (t² + d²)/2ν),   z = Φ⁻¹(0.8),
 * a quadratic equation. The error is that of the difference from the common factor, so that factor's error is in it,
 * and what processes differ by. */
double diff_stat_effect(double freedom, double level);

/* q[i] of p[i], by Benjamini and Hochberg: the least rate of false discoveries at which i is one. order: scratch of 2n
 * items. O(n). */
struct sort_item;
void diff_stat_discover(const double *p, double *q, size_t n, struct sort_item *order);

unsigned diff_stat_count(uint32_t groups);

#endif
