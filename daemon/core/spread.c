#include "core/spread.h"

#include <math.h>

#include "proto/sum.h"

#define TINY 1e-300
#define STEPS 500

/* The continued fraction of the incomplete beta function (Numerical Recipes 6.4, by Lentz's method). */
static double beta_fraction(double a, double b, double x)
{
    double c = 1, d = 1 - (a + b) * x / (a + 1);
    d = 1 / (fabs(d) < TINY ? TINY : d);
    double value = d;
    for (int m = 1; m <= STEPS; m++) {
        double steps[2] = {m * (b - m) * x / ((a + 2 * m - 1) * (a + 2 * m)),
                           -(a + m) * (a + b + m) * x / ((a + 2 * m) * (a + 2 * m + 1))};
        double factor = 1;
        for (int k = 0; k < 2; k++) {
            d = 1 + steps[k] * d;
            c = 1 + steps[k] / c;
            d = 1 / (fabs(d) < TINY ? TINY : d);
            c = fabs(c) < TINY ? TINY : c;
            factor = c * d;
            value *= factor;
        }
        if (fabs(factor - 1) < 1e-15) {
            break;
        }
    }
    return value;
}

/* The regularized incomplete beta function I_x(a, b); y = 1 − x. */
static double beta_inside(double a, double b, double x, double y)
{
    int sign;
    if (!(x > 0)) {
        return 0;
    }
    if (!(y > 0)) {
        return 1;
    }
    double front = exp(lgamma_r(a + b, &sign) - lgamma_r(a, &sign) - lgamma_r(b, &sign) + a * log(x) + b * log(y));
    return x < (a + 1) / (a + b + 2) ? front * beta_fraction(a, b, x) / a : 1 - front * beta_fraction(b, a, y) / b;
}

double student_outside(double freedom, double t)
{
    double square = t * t;
    return beta_inside(freedom / 2, 0.5, freedom / (freedom + square), square / (freedom + square));
}

double student_quantile(double freedom, double confidence)
{
    double low = 0, high = 1;
    while (student_outside(freedom, high) > 1 - confidence && high < 1e300) {
        high *= 2;
    }
    for (int i = 0; i < 200; i++) {
        double middle = low + (high - low) / 2;
        if (middle <= low || middle >= high) {
            break;
        }
        if (student_outside(freedom, middle) > 1 - confidence) {
            low = middle;
        } else {
            high = middle;
        }
    }
    return high;
}

void random_groups_add(struct random_groups *to, const struct random_groups *more)
{
    bool ignored = false;
    for (unsigned g = 0; g < RANDOM_GROUPS; g++) {
        sum_add(&to->of[g], more->of[g], &ignored);
    }
    sum_add(&to->unknown, more->unknown, &ignored);
}

uint64_t random_groups_known(const struct random_groups *g)
{
    bool ignored = false;
    uint64_t sum = 0;
    for (unsigned i = 0; i < RANDOM_GROUPS; i++) {
        sum_add(&sum, g->of[i], &ignored);
    }
    return sum;
}

size_t random_groups_encode(const struct random_groups *g, uint8_t *out)
{
    uint8_t *p = out;
    for (unsigned i = 0; i < RANDOM_GROUPS; i++) {
        p = varint_put(p, g->of[i]);
    }
    p = varint_put(p, g->unknown);
    return (size_t)(p - out);
}

bool random_groups_decode(const uint8_t *in, size_t n, struct random_groups *out)
{
    struct random_groups g = {0};
    const uint8_t *end = in + n;
    for (unsigned i = 0; i <= RANDOM_GROUPS; i++) {
        uint64_t *number = i < RANDOM_GROUPS ? &g.of[i] : &g.unknown;
        if (!varint_get(&in, end, number) || *number > SUM_MAX) {
            return false;
        }
    }
    if (in != end) {
        return false;
    }
    *out = g;
    return true;
}

#define K COUNTS_GROUPS

static double spread_sum(const double x[K])
{
    double s = 0;
    for (unsigned g = 0; g < K; g++) {
        s += x[g];
    }
    return s;
}

bool spread_ratio(const double x[K], const double y[K], unsigned groups, struct spread_estimate *out)
{
    /* What each group's deviation from the ratio contributes to it; they add up to 0. */
    double r[K], denominator = spread_sum(y), squares = 0;
    if (!(fabs(denominator) > 0)) {
        return false;
    }
    const double ratio = spread_sum(x) / denominator;
    for (unsigned g = 0; g < K; g++) {
        r[g] = (x[g] - ratio * y[g]) / denominator;
    }
    const double mean = spread_sum(r) / K;
    for (unsigned g = 0; g < K; g++) {
        squares += (r[g] - mean) * (r[g] - mean);
    }
    *out = (struct spread_estimate){ratio, squares * K / (K - 1), groups};
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
