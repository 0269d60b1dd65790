/* Simulated fleets: what the 16 groups say of a number's variance is right on average, and a wrong formula fails the
 * same check. */
#include <criterion/criterion.h>
#include <math.h>
#include <string.h>

#include "core/spread.h"
#include "core/student.h"

#define K ROLLUP_GROUPS
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

/* How much one process brings. Mean and mean square are known exactly. */
enum shape { EVEN, EXPONENTIAL, LOGNORMAL, MOSTLY_IDLE, SHAPES };
static double draw(enum shape shape)
{
    switch (shape) {
    case EVEN:
        return 90 + 20 * uniform();
    case EXPONENTIAL:
        return -100 * log(uniform());
    case LOGNORMAL:
        return 60 * exp(normal());
    default:
        return uniform() < 0.05 ? 2000 * uniform() : 1;
    }
}

static double mean_square(enum shape shape)
{
    static const double OF[SHAPES] = {100 * 100 + 400.0 / 12, 2 * 100 * 100, 60 * 60 * 7.38905609893065, 0};
    return shape == MOSTLY_IDLE ? 0.05 * 2000 * 2000 / 3 + 0.95 : OF[shape];
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

Test(spread, the_variance_of_a_total_is_unbiased)
{
    static const double FLEETS[] = {3, 20, 200};
    for (int shape = 0; shape < SHAPES; shape++) {
        for (int f = 0; f < 3; f++) {
            for (uint64_t seed = 1; seed <= 2; seed++) {
                struct tally ours = {0}, poisson_says = {0}, forgotten = {0};
                double truth = FLEETS[f] * mean_square((enum shape)shape);
                state = seed * 1000003 + (uint64_t)shape * 17 + (uint64_t)f;
                for (int run = 0; run < RUNS / 2; run++) {
                    double x[K] = {0};
                    for (unsigned n = poisson(FLEETS[f]); n > 0; n--) {
                        x[next_bits() >> 60] += draw((enum shape)shape);
                    }
                    struct spread_estimate s = spread_total(x, K);
                    put(&ours, s.variance);
                    put(&poisson_says, s.value);
                    put(&forgotten, s.variance / K);
                }
                cr_assert(is_unbiased(&ours, truth, 0), "shape %d, %g processes: %g ± %g, not %g", shape, FLEETS[f],
                          mean(&ours), error_of(&ours), truth);
                cr_assert(!is_unbiased(&poisson_says, truth, 0),
                          "counts are no Poisson numbers, and the check must see it");
                cr_assert(!is_unbiased(&forgotten, truth, 0), "the variance of one group's sum is not the total's");
            }
        }
    }
}

/* A fixed fleet, however small and however unlike its processes: the mean over all ways to deal them out is Σy². */
Test(spread, groups_of_any_size_are_right_on_average)
{
    static const double FLEETS[][6] = {{5}, {1, 1000}, {3, 3, 3}, {1, 2, 4, 8, 16, 32}, {100, 1, 1, 1, 1, 1}};
    for (size_t f = 0; f < sizeof FLEETS / sizeof *FLEETS; f++) {
        struct tally t = {0};
        double truth = 0;
        state = 7 + f;
        for (int i = 0; i < 6; i++) {
            truth += FLEETS[f][i] * FLEETS[f][i];
        }
        for (int run = 0; run < RUNS; run++) {
            double x[K] = {0};
            for (int i = 0; i < 6; i++) {
                x[next_bits() >> 60] += FLEETS[f][i];
            }
            put(&t, spread_total(x, K).variance);
        }
        cr_assert(is_unbiased(&t, truth, truth * 1e-12), "fleet %zu: %g ± %g, not %g", f, mean(&t), error_of(&t),
                  truth);
    }
}

/* Calls y of a function in each process, and its time x: a cost of its own per process, times the calls, and noise. */
static void draw_costs(double x[K], double y[K], unsigned n)
{
    for (; n > 0; n--) {
        unsigned g = (unsigned)(next_bits() >> 60);
        double calls = draw(EXPONENTIAL), cost = 0.5 + uniform();
        y[g] += calls;
        x[g] += calls * cost + 3 * normal();
    }
}

/* Variance of what was put, and how sure that is. */
static double variance_of(const struct tally *t)
{
    return t->squares / t->n - mean(t) * mean(t);
}

Test(spread, a_ratio_varies_as_said)
{
    for (uint64_t seed = 1; seed <= 3; seed++) {
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
            put(&total_only, spread_total(x, K).variance / (spread_total(y, K).value * spread_total(y, K).value));
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

/* Half of the processes live through both windows and are alike in both. */
Test(spread, a_difference_pairs_the_groups)
{
    struct tally differences = {0}, ours = {0}, unpaired = {0};
    state = 4711;
    for (int run = 0; run < RUNS; run++) {
        double a[K] = {0}, b[K] = {0};
        for (unsigned n = poisson(60); n > 0; n--) {
            unsigned g = (unsigned)(next_bits() >> 60);
            double y = draw(LOGNORMAL);
            a[g] += y;
            b[g] += y * (0.9 + 0.2 * uniform());
        }
        for (unsigned n = poisson(60); n > 0; n--) {
            a[next_bits() >> 60] += draw(LOGNORMAL);
        }
        for (unsigned n = poisson(60); n > 0; n--) {
            b[next_bits() >> 60] += draw(LOGNORMAL);
        }
        struct spread_estimate s = spread_difference(a, b, K);
        put(&differences, s.value);
        put(&ours, s.variance);
        put(&unpaired, spread_total(a, K).variance + spread_total(b, K).variance);
    }
    double truth = variance_of(&differences), error = truth * 0.02; /* the fourth moments of this are heavy */
    cr_assert(is_unbiased(&ours, truth, error), "%g ± %g, not %g ± %g", mean(&ours), error_of(&ours), truth, error);
    cr_assert(!is_unbiased(&unpaired, truth, error), "what both windows have in common does not vary between them");
}

Test(spread, a_difference_of_ratios)
{
    struct tally differences = {0}, ours = {0};
    unsigned false_alarms = 0;
    state = 99;
    for (int run = 0; run < RUNS; run++) {
        double a[K] = {0}, c[K] = {0}, b[K] = {0}, d[K] = {0}, low, high;
        struct spread_estimate s;
        draw_costs(a, c, poisson(300));
        draw_costs(b, d, poisson(500));
        cr_assert(spread_ratio_difference(a, c, b, d, K, &s));
        put(&differences, s.value);
        put(&ours, s.variance);
        cr_assert(spread_interval(&s, 0.95, &low, &high));
        false_alarms += low > 0 || high < 0;
    }
    double truth = variance_of(&differences), error = truth * sqrt(2.0 / RUNS);
    cr_assert(is_unbiased(&ours, truth, error), "%g ± %g, not %g ± %g", mean(&ours), error_of(&ours), truth, error);
    cr_assert(false_alarms > 0.04 * RUNS && false_alarms < 0.06 * RUNS, "%u of %d", false_alarms, RUNS);
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
    struct spread_estimate s = spread_total(x, 1), untouched = {5, 6, 7};
    cr_assert(s.value == 7 && fabs(s.variance - 49) < 1e-9, "one process: Σy² all the same");
    cr_assert(!spread_interval(&s, 0.95, &low, &high) && low == 1 && high == 2);
    s.groups = 2;
    cr_assert(spread_interval(&s, 0.95, &low, &high) && fabs(high - 7 - 12.7062047361747 * 7) < 1e-6 &&
              fabs(low + high - 14) < 1e-9);
    cr_assert(!spread_ratio(x, y, 1, &untouched) && !spread_ratio_difference(x, x, x, y, 2, &untouched) &&
              untouched.value == 5);
    cr_assert(spread_ratio(y, x, 1, &s) && s.value == 0 && s.variance == 0);
}

Test(spread, groups_come_from_the_rows)
{
    uint64_t bins[2 * K] = {[5] = 1, [K + 5] = 2}, arcs[K] = {[0] = 1, [15] = 9};
    const struct rollup r = {.bin_count = 2, .arc_count = 1};
    const struct rollup_spread spread = {bins, arcs, NULL};
    cr_assert_eq(spread_groups(&r, &spread), 1u << 5 | 1u << 15 | 1u);
}
