#include "core/regression.h"

#include <math.h>
#include <stdbool.h>

#include "core/student.h"

#define K REGRESSION_CAUSES
#define SWEEPS 60          /* of Jacobi's method, which needs about 8 */
#define GRADIENT 1e-10     /* of a length of 1: what counts as 0 */
#define LEVERAGE_MOST 1e-9 /* 1 − leverage of an equation that decides on a cause alone */

/* Columns scaled to length 1. */
struct fit {
    const double *x, *y;
    uint32_t n, k;
    double length[K];  /* of each column before */
    double gram[K][K]; /* of the scaled columns */
    double moment[K];  /* of the scaled columns with y */
    double inverse[K][K];
    double free_cost[K], cost[K]; /* scaled: without and with the bound at 0 */
    double variance[K];
    bool single;
};

static double fit_at(const struct fit *f, uint32_t i, uint32_t k)
{
    return f->x[(size_t)i * f->k + k] / f->length[k];
}

/* False: a cause never occurs. */
static bool fit_scale(struct fit *f)
{
    for (uint32_t k = 0; k < f->k; k++) {
        double largest = 0, sum = 0;
        for (uint32_t i = 0; i < f->n; i++) {
            largest = fmax(largest, f->x[(size_t)i * f->k + k]);
        }
        for (uint32_t i = 0; largest > 0 && i < f->n; i++) {
            double part = f->x[(size_t)i * f->k + k] / largest;
            sum += part * part;
        }
        f->length[k] = largest * sqrt(sum);
        if (!(f->length[k] > 0)) {
            return false;
        }
    }
    for (uint32_t i = 0; i < f->n; i++) {
        for (uint32_t k = 0; k < f->k; k++) {
            double at = fit_at(f, i, k);
            f->moment[k] += at * f->y[i];
            for (uint32_t j = 0; at > 0 && j <= k; j++) {
                f->gram[k][j] += at * fit_at(f, i, j);
            }
        }
    }
    for (uint32_t k = 0; k < f->k; k++) {
        for (uint32_t j = 0; j < k; j++) {
            f->gram[j][k] = f->gram[k][j];
        }
    }
    return true;
}

/* One rotation of Jacobi's method: m[p][q] becomes 0. */
static void fit_rotate(double m[K][K], uint32_t k, uint32_t p, uint32_t q)
{
    double theta = (m[q][q] - m[p][p]) / (2 * m[p][q]);
    double t = (theta < 0 ? -1 : 1) / (fabs(theta) + sqrt(theta * theta + 1)), c = 1 / sqrt(t * t + 1), s = t * c;
    for (uint32_t i = 0; i < k; i++) {
        double a = m[i][p], b = m[i][q];
        m[i][p] = c * a - s * b;
        m[i][q] = s * a + c * b;
    }
    for (uint32_t i = 0; i < k; i++) {
        double a = m[p][i], b = m[q][i];
        m[p][i] = c * a - s * b;
        m[q][i] = s * a + c * b;
    }
}

/* Largest by smallest singular value of the columns: the root of that of the eigenvalues of their products. */
static double fit_condition(const struct fit *f)
{
    double m[K][K], least = INFINITY, most = 0;
    for (uint32_t i = 0; i < f->k; i++) {
        for (uint32_t j = 0; j < f->k; j++) {
            m[i][j] = f->gram[i][j];
        }
    }
    for (int sweep = 0; sweep < SWEEPS; sweep++) {
        for (uint32_t p = 0; p < f->k; p++) {
            for (uint32_t q = p + 1; q < f->k; q++) {
                if (fabs(m[p][q]) > 1e-300) {
                    fit_rotate(m, f->k, p, q);
                }
            }
        }
    }
    for (uint32_t i = 0; i < f->k; i++) {
        least = fmin(least, m[i][i]);
        most = fmax(most, m[i][i]);
    }
    return least > 0 ? sqrt(most / least) : INFINITY;
}

/* Solves the normal equations of the n causes in set by Cholesky's method. The matrix is far from singular: its
 * condition is at most that of all causes. */
static void fit_solve(const struct fit *f, const uint32_t *set, uint32_t n, const double *right, double *out)
{
    double l[K][K], z[K] = {0};
    for (uint32_t i = 0; i < n; i++) {
        for (uint32_t j = 0; j <= i; j++) {
            double sum = f->gram[set[i]][set[j]];
            for (uint32_t k = 0; k < j; k++) {
                sum -= l[i][k] * l[j][k];
            }
            l[i][j] = i == j ? sqrt(sum) : sum / l[j][j];
        }
    }
    for (uint32_t i = 0; i < n; i++) {
        z[i] = right[set[i]];
        for (uint32_t k = 0; k < i; k++) {
            z[i] -= l[i][k] * z[k];
        }
        z[i] /= l[i][i];
    }
    for (uint32_t i = n; i-- > 0;) {
        double sum = z[i];
        for (uint32_t k = i + 1; k < n; k++) {
            sum -= l[k][i] * out[set[k]];
        }
        out[set[i]] = sum / l[i][i];
    }
}

static void fit_invert(struct fit *f)
{
    uint32_t all[K] = {0};
    for (uint32_t k = 0; k < f->k; k++) {
        all[k] = k;
    }
    fit_solve(f, all, f->k, f->moment, f->free_cost);
    for (uint32_t k = 0; k < f->k; k++) {
        double unit[K] = {0}, column[K] = {0};
        unit[k] = 1;
        fit_solve(f, all, f->k, unit, column);
        for (uint32_t i = 0; i < f->k; i++) {
            f->inverse[i][k] = column[i];
        }
    }
}

/* The cause at 0 that lowers the sum of squares most when it grows; k if there is none. */
static uint32_t fit_pick(const struct fit *f, const bool *in)
{
    uint32_t best = f->k;
    double most = 0, size = 0;
    for (uint32_t k = 0; k < f->k; k++) {
        size = fmax(size, fabs(f->moment[k]));
    }
    most = size * GRADIENT;
    for (uint32_t k = 0; k < f->k; k++) {
        double gradient = f->moment[k];
        for (uint32_t j = 0; j < f->k; j++) {
            gradient -= f->gram[k][j] * f->cost[j];
        }
        if (!in[k] && gradient > most) {
            most = gradient;
            best = k;
        }
    }
    return best;
}

/* Goes from the present costs towards the solution z as far as none falls below 0. True: all the way. */
static bool fit_step(struct fit *f, bool *in, const double *z)
{
    double step = 1;
    uint32_t leaves = f->k;
    for (uint32_t k = 0; k < f->k; k++) {
        if (in[k] && z[k] <= 0 && f->cost[k] / (f->cost[k] - z[k]) <= step) {
            step = f->cost[k] / (f->cost[k] - z[k]);
            leaves = k;
        }
    }
    for (uint32_t k = 0; k < f->k; k++) {
        if (in[k]) {
            f->cost[k] += step * (z[k] - f->cost[k]);
            if (k == leaves || f->cost[k] <= 0) {
                f->cost[k] = 0;
                in[k] = false;
            }
        }
    }
    return leaves == f->k;
}

/* Lawson and Hanson, 1974. Each cause enters a bounded number of times, so that rounding cannot keep it going. */
static void fit_bounded(struct fit *f)
{
    bool in[K] = {false};
    for (uint32_t round = 0; round < 3 * f->k; round++) {
        uint32_t enters = fit_pick(f, in), set[K] = {0}, n;
        if (enters == f->k) {
            return;
        }
        in[enters] = true;
        do {
            double z[K] = {0};
            n = 0;
            for (uint32_t k = 0; k < f->k; k++) {
                if (in[k]) {
                    set[n++] = k;
                }
            }
            fit_solve(f, set, n, f->moment, z);
            if (fit_step(f, in, z)) {
                break;
            }
        } while (n > 0);
    }
}

/* HC3 (MacKinnon and White, 1985): V = G⁻¹ · Σ (r / (1 − h))² x xᵀ · G⁻¹; only its diagonal is wanted. */
static void fit_vary(struct fit *f)
{
    for (uint32_t i = 0; i < f->n; i++) {
        double own[K], leverage = 0, residual = f->y[i];
        for (uint32_t k = 0; k < f->k; k++) {
            own[k] = 0;
            for (uint32_t j = 0; j < f->k; j++) {
                own[k] += f->inverse[k][j] * fit_at(f, i, j);
            }
            leverage += own[k] * fit_at(f, i, k);
            residual -= f->free_cost[k] * fit_at(f, i, k);
        }
        if (1 - leverage < LEVERAGE_MOST) {
            f->single = true;
            return;
        }
        double weight = residual / (1 - leverage);
        for (uint32_t k = 0; k < f->k; k++) {
            f->variance[k] += weight * own[k] * weight * own[k];
        }
    }
}

static enum profd_status fit_answer(const struct fit *f, struct arena *a, struct regression *out, struct profd_error *e)
{
    double t = student_quantile(f->n - f->k, 0.95);
    out->cost = ARENA_ARRAY(a, f->k, double);
    out->error = ARENA_ARRAY(a, f->k, double);
    out->low = ARENA_ARRAY(a, f->k, double);
    out->high = ARENA_ARRAY(a, f->k, double);
    if (out->cost == NULL || out->error == NULL || out->low == NULL || out->high == NULL) {
        return profd_error_set(e, PROFD_NO_MEMORY, "no memory for the costs of %u callers", f->k);
    }
    for (uint32_t k = 0; k < f->k; k++) {
        double cost = f->cost[k] / f->length[k], middle = f->free_cost[k] / f->length[k];
        out->cost[k] = cost;
        out->error[k] = sqrt(f->variance[k]) / f->length[k];
        out->low[k] = fmin(cost, fmax(0, middle - t * out->error[k]));
        out->high[k] = fmax(cost, middle + t * out->error[k]);
    }
    out->verdict = f->single ? REGRESSION_SINGLE : REGRESSION_FITTED;
    return PROFD_OK;
}

enum profd_status regression_fit(struct arena *a, const double *x, const double *y, uint32_t n, uint32_t causes,
                                 struct regression *out, struct profd_error *e)
{
    struct fit *f = ARENA_NEW(a, struct fit);
    *out = (struct regression){.verdict = REGRESSION_FEW};
    if (f == NULL) {
        return profd_error_set(e, PROFD_NO_MEMORY, "no memory for %u equations", n);
    }
    *f = (struct fit){.x = x, .y = y, .n = n, .k = causes};
    if (n < causes + REGRESSION_SPARE) {
        return PROFD_OK;
    }
    out->verdict = REGRESSION_COLLINEAR;
    out->condition = fit_scale(f) ? fit_condition(f) : INFINITY;
    if (!(out->condition <= REGRESSION_CONDITION)) {
        return PROFD_OK;
    }
    fit_invert(f);
    fit_bounded(f);
    fit_vary(f);
    return fit_answer(f, a, out, e);
}
