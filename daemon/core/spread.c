#include "core/spread.h"

#include <math.h>
#include <stddef.h>

#include "core/student.h"

#define K ROLLUP_GROUPS

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

struct spread_estimate spread_total(const double x[K], unsigned groups)
{
    return (struct spread_estimate){sum(x), between(x), groups};
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

struct spread_estimate spread_difference(const double a[K], const double b[K], unsigned groups)
{
    double d[K];
    for (unsigned g = 0; g < K; g++) {
        d[g] = a[g] - b[g];
    }
    return (struct spread_estimate){sum(a) - sum(b), between(d), groups};
}

bool spread_ratio_difference(const double a[K], const double c[K], const double b[K], const double d[K],
                             unsigned groups, struct spread_estimate *out)
{
    double first[K], second[K], x, y;
    if (!residuals(a, c, first, &x) || !residuals(b, d, second, &y)) {
        return false;
    }
    *out = (struct spread_estimate){x - y, spread_difference(first, second, groups).variance, groups};
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

static uint32_t present(const uint64_t *shares, uint32_t rows)
{
    uint32_t mask = 0;
    for (size_t i = 0; i < rows; i++) {
        for (unsigned g = 0; g < K; g++) {
            mask |= (uint32_t)(shares[i * K + g] != 0) << g;
        }
    }
    return mask;
}

uint32_t spread_groups(const struct rollup *r, const struct rollup_spread *spread)
{
    return present(spread->bins, r->bin_count) | present(spread->arcs, r->arc_count);
}
