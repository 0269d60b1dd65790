/* Simulated fleets: what the 16 groups say of a number's variance is right on average, and a wrong formula fails the
 * same check. */
#include <criterion/criterion.h>
#include <math.h>
#include <string.h>

#include "core/spread.h"
#include "tests/rounds.h"

#define K COUNTS_GROUPS
#define RUNS 20000
#define TOLERANCE 4.5 /* standard errors of the simulation itself */

static uint64_t state;

static uint64_t next_bits(void)
{
    state ^= state << 13;
    state ^= state >> 7;
    state ^= state << 17;
    return state * 0x2545f4914f6cdd1du;
}

static double uniform(void)
{
    return ((double)(next_bits() >> 11) + 0.5) / 9007199254740992.0;
}

static double normal(void)
{
    return sqrt(-2 * log(uniform())) * cos(6.283185307179586 * uniform());
}

static unsigned poisson(double mean)
{
    unsigned n = 0;
    for (double p = uniform(), least = exp(-mean); p > least; p *= uniform()) {
        n++;
    }
    return n;
}

/* Mean of what is put, and how sure it is. */
struct tally {
    double n, sum, squares;
};

static void put(struct tally *t, double x)
{
    t->n++;
    t->sum += x;
    t->squares += x * x;
}

static double mean(const struct tally *t)
{
    return t->sum / t->n;
}

static double error_of(const struct tally *t)
{
    return sqrt((t->squares / t->n - mean(t) * mean(t)) / t->n);
}

/* The one check: the mean of the estimates is the truth, as far as the simulation can tell. */
static bool is_unbiased(const struct tally *estimates, double truth, double truth_error)
{
    double e = error_of(estimates);
    return fabs(mean(estimates) - truth) <= TOLERANCE * sqrt(e * e + truth_error * truth_error);
}

/* Calls y of a function in each process, and its time x: a cost of its own per process, times the calls, and noise. */
static void draw_costs(double x[K], double y[K], unsigned n)
{
    for (; n > 0; n--) {
        unsigned g = (unsigned)(next_bits() >> 60);
        double calls = -100 * log(uniform()), cost = 0.5 + uniform();
        y[g] += calls;
        x[g] += calls * cost + 3 * normal();
    }
}

/* Variance of what was put, and how sure that is. */
static double variance_of(const struct tally *t)
{
    return t->squares / t->n - mean(t) * mean(t);
}

/* A wrong formula: as if the calls were no chance. */
static double numerator_alone(const double x[K], const double y[K])
{
    double all = 0, calls = 0, squares = 0;
    for (unsigned g = 0; g < K; g++) {
        all += x[g];
        calls += y[g];
    }
    for (unsigned g = 0; g < K; g++) {
        squares += (x[g] - all / K) * (x[g] - all / K);
    }
    return squares * K / (K - 1) / (calls * calls);
}

Test(spread, a_ratio_varies_as_said)
{
    for (uint64_t seed = 1; seed <= rounds(1); seed++) {
        struct tally ratios = {0}, ours = {0}, total_only = {0};
        unsigned covered = 0;
        state = seed * 77;
        for (int run = 0; run < RUNS; run++) {
            double x[K] = {0}, y[K] = {0}, low, high;
            struct spread_estimate s;
            draw_costs(x, y, poisson(400));
            cr_assert(spread_ratio(x, y, K, &s));
            put(&ratios, s.value - 1); /* about 0: so the squares keep their digits */
            put(&ours, s.variance);
            put(&total_only, numerator_alone(x, y));
            cr_assert(spread_interval(&s, 0.95, &low, &high));
            covered += low <= 1 && 1 <= high;
        }
        double truth = variance_of(&ratios), error = truth * sqrt(2.0 / RUNS);
        cr_assert(is_unbiased(&ours, truth, error), "%g ± %g, not %g ± %g", mean(&ours), error_of(&ours), truth, error);
        cr_assert(!is_unbiased(&total_only, truth, error), "without the covariance it is far too wide");
        cr_assert(fabs(mean(&ratios)) < TOLERANCE * error_of(&ratios) + 0.001, "the ratio itself");
        cr_assert(covered > 0.94 * RUNS && covered < 0.96 * RUNS, "%u of %d intervals of 95 %% hold the truth", covered,
                  RUNS);
    }
}

/* Values of the printed tables. */
Test(spread, quantiles_are_those_of_the_tables)
{
    static const struct {
        unsigned freedom;
        double confidence, t;
    } TABLE[] = {{1, 0.95, 12.7062047361747},
                 {2, 0.95, 4.30265272974946},
                 {3, 0.99, 5.84090930973336},
                 {4, 0.9, 2.13184678632665},
                 {5, 0.999, 6.8688266258808},
                 {15, 0.5, 0.691196949236268},
                 {15, 0.9, 1.75305035569257},
                 {15, 0.95, 2.13144954555978},
                 {15, 0.99, 2.94671288347524},
                 {30, 0.95, 2.04227245630124},
                 {1, 0.5, 1}};
    for (size_t i = 0; i < sizeof TABLE / sizeof *TABLE; i++) {
        cr_assert_float_eq(student_quantile(TABLE[i].freedom, TABLE[i].confidence), TABLE[i].t, 1e-9 * TABLE[i].t,
                           "%u %g: %.14g", TABLE[i].freedom, TABLE[i].confidence,
                           student_quantile(TABLE[i].freedom, TABLE[i].confidence));
    }
}

Test(spread, too_few_groups_have_no_interval)
{
    double x[K] = {[3] = 7}, y[K] = {0}, low = 1, high = 2;
    struct spread_estimate s = {7, 49, 1}, untouched = {5, 6, 7};
    cr_assert(!spread_interval(&s, 0.95, &low, &high) && low == 1 && high == 2);
    s.groups = 2;
    cr_assert(spread_interval(&s, 0.95, &low, &high) && fabs(high - 7 - 12.7062047361747 * 7) < 1e-6 &&
              fabs(low + high - 14) < 1e-9);
    cr_assert(!spread_ratio(x, y, 1, &untouched) && untouched.value == 5);
    cr_assert(spread_ratio(y, x, 1, &s) && s.value == 0 && s.variance == 0);
}
