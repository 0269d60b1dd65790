/* The regression against one that tries every set of causes, and against the truth of simulated processes. */
#include <criterion/criterion.h>
#include <math.h>
#include <string.h>

#include "core/regression.h"

#define N 400
#define K 5

static uint64_t state = 1;

static double uniform(void)
{
    state ^= state << 13;
    state ^= state >> 7;
    state ^= state << 17;
    return ((double)((state * 0x2545f4914f6cdd1du) >> 11) + 0.5) / 9007199254740992.0;
}

static double poisson(double mean)
{
    double n = 0;
    for (; mean > 30; mean -= 30) { /* a sum of independent ones */
        n += poisson(30);
    }
    for (double p = uniform(), least = exp(-mean); p > least; p *= uniform()) {
        n++;
    }
    return n;
}

static double x[N * K], y[N];

/* Gauss–Jordan with pivots: m·out = right for the causes in set (bits). */
static void solve(const double m[K][K], const double *right, unsigned set, unsigned k, double *out)
{
    double w[K][K + 1];
    for (unsigned i = 0; i < k; i++) {
        for (unsigned j = 0; j < k; j++) {
            w[i][j] = (set >> i & 1) && (set >> j & 1) ? m[i][j] : i == j;
        }
        w[i][k] = (set >> i & 1) ? right[i] : 0;
    }
    for (unsigned c = 0; c < k; c++) {
        unsigned p = c;
        for (unsigned r = c; r < k; r++) {
            p = fabs(w[r][c]) > fabs(w[p][c]) ? r : p;
        }
        for (unsigned j = 0; j <= k; j++) {
            double t = w[c][j];
            w[c][j] = w[p][j];
            w[p][j] = t;
        }
        for (unsigned r = 0; r < k; r++) {
            double by = w[r][c] / w[c][c];
            for (unsigned j = 0; r != c && j <= k; j++) {
                w[r][j] -= by * w[c][j];
            }
        }
    }
    for (unsigned i = 0; i < k; i++) {
        out[i] = w[i][k] / w[i][i];
    }
}

static double squares(const double *cost, unsigned n, unsigned k)
{
    double sum = 0;
    for (unsigned i = 0; i < n; i++) {
        double r = y[i];
        for (unsigned j = 0; j < k; j++) {
            r -= x[i * k + j] * cost[j];
        }
        sum += r * r;
    }
    return sum;
}

static void products(unsigned n, unsigned k, double m[K][K], double right[K])
{
    memset(m, 0, K * sizeof *m);
    memset(right, 0, K * sizeof *right);
    for (unsigned i = 0; i < n; i++) {
        for (unsigned j = 0; j < k; j++) {
            right[j] += x[i * k + j] * y[i];
            for (unsigned l = 0; l < k; l++) {
                m[j][l] += x[i * k + j] * x[i * k + l];
            }
        }
    }
}

/* The best of all sets whose costs are not negative. */
static void try_all(unsigned n, unsigned k, double best[K])
{
    double m[K][K], right[K], least = INFINITY;
    products(n, k, m, right);
    for (unsigned set = 0; set < 1u << k; set++) {
        double cost[K];
        bool good = true;
        solve(m, right, set, k, cost);
        for (unsigned j = 0; j < k; j++) {
            good = good && cost[j] >= 0;
        }
        if (good && squares(cost, n, k) < least) {
            least = squares(cost, n, k);
            memcpy(best, cost, sizeof cost);
        }
    }
}

/* HC3 word for word, with whole matrices. */
static void naive_errors(unsigned n, unsigned k, double out[K])
{
    double m[K][K], right[K], beta[K], inverse[K][K], meat[K][K] = {{0}};
    products(n, k, m, right);
    solve(m, right, (1u << k) - 1, k, beta);
    for (unsigned j = 0; j < k; j++) {
        double unit[K] = {0}, column[K];
        unit[j] = 1;
        solve(m, unit, (1u << k) - 1, k, column);
        for (unsigned i = 0; i < k; i++) {
            inverse[i][j] = column[i];
        }
    }
    for (unsigned i = 0; i < n; i++) {
        double r = y[i], h = 0;
        for (unsigned j = 0; j < k; j++) {
            r -= x[i * k + j] * beta[j];
            for (unsigned l = 0; l < k; l++) {
                h += x[i * k + j] * inverse[j][l] * x[i * k + l];
            }
        }
        for (unsigned j = 0; j < k; j++) {
            for (unsigned l = 0; l < k; l++) {
                meat[j][l] += r * r / ((1 - h) * (1 - h)) * x[i * k + j] * x[i * k + l];
            }
        }
    }
    for (unsigned c = 0; c < k; c++) {
        double v = 0;
        for (unsigned j = 0; j < k; j++) {
            for (unsigned l = 0; l < k; l++) {
                v += inverse[c][j] * meat[j][l] * inverse[l][c];
            }
        }
        out[c] = sqrt(v);
    }
}

static void near(double got, double want, double scale, unsigned seed)
{
    cr_assert(fabs(got - want) <= 1e-6 * (fabs(want) + scale), "%.17g is not %.17g (seed %u)", got, want, seed);
}

/* Costs may be negative in truth here, so that the bound at 0 decides often. */
Test(regression, is_the_best_of_all_sets_of_causes)
{
    unsigned fitted = 0, bounded = 0;
    struct arena *a = arena_new(16 << 20);
    for (unsigned seed = 1; seed <= 2000; seed++) {
        struct regression r;
        double truth[K], want[K], errors[K];
        state = seed * 0x9e3779b97f4a7c15u;
        unsigned k = 1 + seed % K, n = k + REGRESSION_SPARE + seed % 40;
        for (unsigned j = 0; j < k; j++) {
            truth[j] = uniform() * 2 - 0.7;
        }
        for (unsigned i = 0; i < n; i++) {
            y[i] = uniform() - 0.5;
            for (unsigned j = 0; j < k; j++) {
                x[i * k + j] = uniform() < 0.3 ? 0 : floor(uniform() * (j % 2 == 0 ? 10 : 1000));
                y[i] += x[i * k + j] * truth[j] / (j % 2 == 0 ? 1 : 100);
            }
        }
        arena_reset(a);
        cr_assert_eq(regression_fit(a, x, y, n, k, &r, NULL), PROFD_OK);
        if (r.verdict != REGRESSION_FITTED) {
            continue;
        }
        fitted++;
        try_all(n, k, want);
        naive_errors(n, k, errors);
        for (unsigned j = 0; j < k; j++) {
            near(r.cost[j], want[j], 1e-3, seed);
            near(r.error[j], errors[j], 1e-6, seed);
            cr_assert(r.low[j] >= 0 && r.low[j] <= r.cost[j] && r.cost[j] <= r.high[j]);
            bounded += r.cost[j] <= 0;
        }
    }
    arena_free(a);
    cr_assert(fitted > 1500 && bounded > 500, "%u fitted, %u at the bound: the cases test too little", fitted, bounded);
}

/* Processes with mixes of their own: their ticks vary by Poisson, and more where there are more. */
Test(regression, intervals_hold_the_truth)
{
    static const double COST[4] = {0.002, 0.02, 0.1, 0.5}; /* ticks a call */
    unsigned held = 0, all = 0, n = 120;
    struct arena *a = arena_new(16 << 20);
    state = 20261123;
    for (unsigned run = 0; run < 1000; run++) {
        struct regression r;
        for (unsigned i = 0; i < n; i++) {
            double mean = 0;
            for (unsigned j = 0; j < 4; j++) {
                x[i * 4 + j] = floor(uniform() * uniform() * 40 / COST[j]);
                mean += x[i * 4 + j] * COST[j];
            }
            y[i] = poisson(mean);
        }
        arena_reset(a);
        cr_assert_eq(regression_fit(a, x, y, n, 4, &r, NULL), PROFD_OK);
        cr_assert_eq(r.verdict, REGRESSION_FITTED);
        for (unsigned j = 0; j < 4; j++, all++) {
            held += r.low[j] <= COST[j] && COST[j] <= r.high[j];
        }
    }
    arena_free(a);
    cr_assert(held > 0.94 * all && held < 0.97 * all, "%u of %u intervals of 95 %% hold the truth", held, all);
}

Test(regression, refuses_what_it_cannot_tell)
{
    struct arena *a = arena_new(16 << 20);
    struct regression r;
    for (unsigned i = 0; i < 40; i++) {
        x[i * 2] = 100 + i;
        x[i * 2 + 1] = 2 * (100 + i) + (i == 3);
        y[i] = i;
    }
    cr_assert_eq(regression_fit(a, x, y, 2 + REGRESSION_SPARE - 1, 2, &r, NULL), PROFD_OK);
    cr_assert_eq(r.verdict, REGRESSION_FEW);
    cr_assert_eq(regression_fit(a, x, y, 40, 2, &r, NULL), PROFD_OK);
    cr_assert(r.verdict == REGRESSION_COLLINEAR && r.condition > REGRESSION_CONDITION, "condition %g", r.condition);
    for (unsigned i = 0; i < 40; i++) {
        x[i * 2 + 1] = 0;
    }
    cr_assert_eq(regression_fit(a, x, y, 40, 2, &r, NULL), PROFD_OK);
    cr_assert(r.verdict == REGRESSION_COLLINEAR && isinf(r.condition), "a cause that never occurs");
    x[7 * 2 + 1] = 5;
    cr_assert_eq(regression_fit(a, x, y, 40, 2, &r, NULL), PROFD_OK);
    cr_assert_eq(r.verdict, REGRESSION_SINGLE, "one equation alone decides");
    arena_free(a);
}
