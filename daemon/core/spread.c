#include "core/spread.h"

#include <math.h>

#include "core/student.h"

#define K COUNTS_GROUPS

static double sum(const double x[K])
{
    double s = 0;
    for (unsigned g = 0; g < K; g++) {
        s += x[g];
    }
    return s;
}

/* k/(k−1)·Σ(x_g − mean)². */
static double between(const double x[K])
{
    double mean = sum(x) / K, squares = 0;
    for (unsigned g = 0; g < K; g++) {
        squares += (x[g] - mean) * (x[g] - mean);
    }
    return squares * K / (K - 1);
}

/* What each group's deviation from the ratio contributes to it; they add up to 0. False if the denominator is 0. */
static bool residuals(const double x[K], const double y[K], double out[K], double *ratio)
{
    double denominator = sum(y);
    if (!(fabs(denominator) > 0)) {
        return false;
    }
    *ratio = sum(x) / denominator;
    for (unsigned g = 0; g < K; g++) {
        out[g] = (x[g] - *ratio * y[g]) / denominator;
    }
    return true;
}

bool spread_ratio(const double x[K], const double y[K], unsigned groups, struct spread_estimate *out)
{
    double r[K], ratio;
    if (!residuals(x, y, r, &ratio)) {
        return false;
    }
    *out = (struct spread_estimate){ratio, between(r), groups};
    return true;
}

bool spread_interval(const struct spread_estimate *s, double confidence, double *low, double *high)
{
    if (s->groups < 2) {
        return false;
    }
    double half = student_quantile((s->groups < K ? s->groups : K) - 1, confidence) * sqrt(s->variance);
    *low = s->value - half;
    *high = s->value + half;
    return true;
}
