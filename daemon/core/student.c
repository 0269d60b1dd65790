#include "core/student.h"

#include <math.h>

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
