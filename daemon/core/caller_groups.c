#include "core/caller_groups.h"

#include <math.h>

#include "core/regression.h"

static double product(const double *calls, uint32_t n, uint32_t callers, uint32_t i, uint32_t j)
{
    double sum = 0;
    for (uint32_t row = 0; row < n; row++) {
        sum += calls[(size_t)row * callers + i] * calls[(size_t)row * callers + j];
    }
    return sum;
}

/* Two columns of length 1 with the cosine c have the singular values √(1 + c) and √(1 − c). */
static bool keep_proportion(double ii, double ij, double jj)
{
    const double most = REGRESSION_CONDITION * REGRESSION_CONDITION, cosine = ij / sqrt(ii * jj);
    return ii > 0 && jj > 0 && 1 + cosine > most * (1 - cosine);
}

/* of[i]: the first caller of its group, so far. */
static void join(uint32_t *of, uint32_t callers, uint32_t from, uint32_t to)
{
    for (uint32_t i = 0; i < callers; i++) {
        of[i] = of[i] == from ? to : of[i];
    }
}

static void find_groups(const double *calls, uint32_t n, uint32_t callers, uint32_t *of)
{
    double lengths[REGRESSION_CAUSES];
    for (uint32_t i = 0; i < callers; i++) {
        of[i] = i;
        lengths[i] = product(calls, n, callers, i, i);
        for (uint32_t j = 0; j < i; j++) {
            if (of[i] != of[j] && keep_proportion(lengths[i], product(calls, n, callers, i, j), lengths[j])) {
                join(of, callers, of[i] > of[j] ? of[i] : of[j], of[i] < of[j] ? of[i] : of[j]);
            }
        }
    }
}

/* Numbers the groups in the order of their first callers. */
static uint32_t number_groups(uint32_t *of, uint32_t callers)
{
    uint32_t count = 0;
    for (uint32_t i = 0; i < callers; i++) {
        of[i] = of[i] == i ? count++ : of[of[i]]; /* the first caller has its number already */
    }
    return count;
}

enum profd_status caller_groups_make(struct arena *a, const double *calls, uint32_t equations, uint32_t callers,
                                     struct caller_groups *out, struct profd_error *e)
{
    out->of = ARENA_ARRAY(a, callers, uint32_t);
    out->calls = ARENA_ARRAY(a, (size_t)equations * callers, double);
    if (out->of == NULL || out->calls == NULL) {
        return profd_error_set(e, PROFD_NO_MEMORY, "no memory for %u equations", equations);
    }
    find_groups(calls, equations, callers, out->of);
    out->count = number_groups(out->of, callers);
    for (uint32_t i = 0; out->count == 1 && i < callers; i++) {
        out->of[i] = i;
    }
    out->count = out->count == 1 ? callers : out->count;
    for (uint32_t row = 0; row < equations; row++) {
        for (uint32_t i = 0; i < callers; i++) {
            out->calls[(size_t)row * out->count + out->of[i]] += calls[(size_t)row * callers + i];
        }
    }
    return PROFD_OK;
}
