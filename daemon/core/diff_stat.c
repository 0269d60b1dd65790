#include "core/diff.h"

#include <math.h>

#include "core/spread.h"
#include "proto/sort.h"

unsigned diff_stat_count(uint32_t groups)
{
    return (unsigned)__builtin_popcount(groups);
}

bool diff_stat_logs(const double x[DIFF_VALUES], const double y[DIFF_VALUES], struct diff_logs *out)
{
    for (uint32_t k = 0; k < DIFF_VALUES; k++) {
        if (!(x[k] > 0) || !(y[k] > 0)) {
            return false;
        }
    }
    double first = x[0] / y[0], log_first = log(first);
    for (uint32_t k = 0; k < DIFF_VALUES; k++) {
        double ratio = x[k] / y[k];
        bool same = !(ratio < first) && !(ratio > first);
        out->of[k] = same ? log_first : log(ratio);
    }
    /* Kish's number of groups of equal weight, less 1. */
    double sum = 0, squares = 0;
    for (uint32_t g = 0; g < RANDOM_GROUPS; g++) {
        const double share = x[0] - x[1 + g];
        sum += share;
        squares += share * share;
    }
    const double freedom = squares > 0 ? sum * sum / squares - 1 : 1;
    out->freedom = freedom > 1 ? freedom : 1;
    return true;
}

/* Jackknife of the values without each group of the mask. */
static double stat_variance(const double x[DIFF_VALUES], uint32_t groups)
{
    double m = diff_stat_count(groups), mean = 0, squares = 0;
    for (uint32_t g = 0; g < RANDOM_GROUPS; g++) {
        mean += (groups >> g & 1) != 0 ? x[1 + g] / m : 0;
    }
    for (uint32_t g = 0; g < RANDOM_GROUPS; g++) {
        squares += (groups >> g & 1) != 0 ? (x[1 + g] - mean) * (x[1 + g] - mean) : 0;
    }
    return squares * (m - 1) / m;
}

void diff_stat_compare(const struct diff_logs *a, const struct diff_logs *b, const uint16_t groups[2], bool paired,
                       struct diff_estimate *out)
{
    double variance, freedom;
    if (paired) {
        double d[DIFF_VALUES];
        for (uint32_t k = 0; k < DIFF_VALUES; k++) {
            d[k] = b->of[k] - a->of[k];
        }
        variance = stat_variance(d, groups[0] | groups[1]);
        freedom = fmin(a->freedom, b->freedom);
    } else {
        double va = stat_variance(a->of, groups[0]), vb = stat_variance(b->of, groups[1]);
        variance = va + vb;
        freedom = variance > 0 ? variance * variance / (va * va / a->freedom + vb * vb / b->freedom)
                               : a->freedom + b->freedom;
    }
    freedom = floor(freedom + DIFF_ROUNDING);
    *out = (struct diff_estimate){.log = b->of[0] - a->of[0], .error = sqrt(variance), .freedom = freedom};
    if (out->error < DIFF_ROUNDING) {
        out->error = 0;
        out->low = out->high = out->log;
        out->p = fabs(out->log) < DIFF_ROUNDING ? 1 : 0;
        return;
    }
    /* The t with P(|T| ≤ t) = 95 %, for 1 to 30 degrees of freedom: core/spread.h would take most of the time. */
    static const double OF[] = {0,          12.7062047, 4.30265273, 3.18244631, 2.77644511, 2.57058184, 2.44691185,
                                2.36462425, 2.30600414, 2.26215716, 2.22813885, 2.20098516, 2.17881283, 2.16036866,
                                2.14478669, 2.13144955, 2.11990530, 2.10981558, 2.10092204, 2.09302405, 2.08596345,
                                2.07961384, 2.07387307, 2.06865761, 2.06389856, 2.05953855, 2.05552944, 2.05183052,
                                2.04840714, 2.04522964, 2.04227246};
    double t = OF[freedom > 30 ? 30 : (int)freedom];
    out->low = out->log - t * out->error;
    out->high = out->log + t * out->error;
    out->p = student_outside(freedom, out->log / out->error);
}

void diff_stat_set_confidence(struct diff_estimate *x, double confidence)
{
    if (x->error > 0) {
        const double t = student_quantile(x->freedom, confidence);
        x->low = x->log - t * x->error;
        x->high = x->log + t * x->error;
    }
}

double diff_stat_effect(double freedom, double level)
{
    const double t = student_quantile(freedom, 1 - level), middle = t * (1 - 1 / (4 * freedom));
    const double z = DIFF_POWER * DIFF_POWER, each = z / (2 * freedom);
    const double a = 1 - each, c = middle * middle - z - each * t * t; /* a d² − 2 middle d + c = 0 */
    return (middle + sqrt(middle * middle - a * c)) / a;
}

void diff_stat_discover(const double *p, double *q, size_t n, struct sort_item *order)
{
    double least = 1;
    for (size_t i = 0; i < n; i++) {
        order[i] = (struct sort_item){sort_key_double(p[i]), (uint32_t)i};
    }
    sort_radix(order, order + n, n);
    for (size_t rank = n; rank > 0; rank--) {
        uint32_t i = order[rank - 1].value;
        double of = p[i] * (double)n / (double)rank;
        least = of < least ? of : least;
        q[i] = least;
    }
}
