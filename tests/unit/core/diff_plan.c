/* What a change must be to be found, beside simulated tests. */
#include <criterion/criterion.h>
#include <math.h>

#include "core/diff.h"
#include "core/spread.h"

static double draw_normal(uint64_t *state)
{
    double u[2];
    for (int i = 0; i < 2; i++) {
        *state ^= *state << 13;
        *state ^= *state >> 7;
        *state ^= *state << 17;
        u[i] = (double)((*state >> 11) + 1) / 9007199254740993.0;
    }
    return sqrt(-2 * log(u[0])) * cos(2 * 3.14159265358979323846 * u[1]);
}

/* An error that is estimated, over the true one. */
static double draw_error(uint64_t *state, int freedom)
{
    double sum = 0;
    for (int i = 0; i < freedom; i++) {
        const double z = draw_normal(state);
        sum += z * z;
    }
    return sqrt(sum / freedom);
}

/* The part of experiments that find a change whose size was planned by an estimated error. */
static double simulate(int freedom, double level)
{
    const int count = 20000;
    const double t = student_quantile(freedom, 1 - level), effect = diff_stat_effect(freedom, level);
    uint64_t state = 0x9e3779b97f4a7c15;
    int found = 0;
    for (int i = 0; i < count; i++) {
        const double planned = effect * draw_error(&state, freedom);
        found += planned + draw_normal(&state) > t * draw_error(&state, freedom);
    }
    return (double)found / count;
}

Test(diff_plan, a_planned_change_is_found_in_four_of_five_cases)
{
    static const struct {
        int freedom;
        double level;
    } cases[] = {{30, 0.05}, {30, 0.05 / 40}, {30, 0.05 / 1000}, {15, 0.05}, {15, 0.05 / 40}, {8, 0.05}};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        const double found = simulate(cases[i].freedom, cases[i].level);
        cr_assert_float_eq(found, 0.8, 0.02, "%d degrees of freedom, level %g: %g", cases[i].freedom, cases[i].level,
                           found);
    }
    cr_assert_float_eq(diff_stat_effect(1e9, 0.05), 1.959963984540054 + 0.8416212335729143, 1e-6);
}

/* One test alone, and then ten that wait for four times the data: a plan that takes more has their tests, too. */
Test(diff_plan, more_data_brings_more_tests)
{
    struct arena *a = arena_new(0);
    struct diff_item items[11] = {{.estimated = true, .estimate = {.error = 0.01, .freedom = 30}}};
    struct diff_table t = {.count = 11, .items = items};
    const double log = 0.02, alone = diff_stat_effect(30, 0.05) * 0.01;
    struct diff_plan_request r = {.fdr = 0.05, .log = log, .most = 100};
    for (size_t i = 1; i < 11; i++) {
        items[i].verdict = DIFF_TOO_FEW;
        items[i].testable = 4;
    }
    diff_plan_make(a, &r, &t);
    cr_assert(items[0].needs == DIFF_NEEDS_DATA && items[1].needs == DIFF_NEEDS_DATA, "4 is not above 100");
    cr_assert_float_eq(items[0].estimate.visible, alone, 1e-12);
    cr_assert_float_eq(t.visible, alone, 1e-12);
    cr_assert_float_eq(items[0].needed, pow(alone / log, 2), 1e-9, "2.2 times the data: the others are not tested");
    r.log = 0.01;
    diff_plan_make(a, &r, &t);
    const double least = pow(diff_stat_effect(30, 0.05 / 11) * 0.01 / r.log, 2);
    cr_assert(items[0].needed >= least && items[0].needed < 1.05 * least, "%g, at least %g", items[0].needed, least);
    r.confidence = 0.99;
    diff_plan_make(a, &r, &t);
    cr_assert_float_eq(items[0].estimate.visible, diff_stat_effect(30, 0.01) * 0.01, 1e-12);
    r.most = 3;
    diff_plan_make(a, &r, &t);
    cr_assert(items[0].needs == DIFF_NEEDS_TOO_MUCH && items[1].needs == DIFF_NEEDS_TOO_MUCH, "4 is above 3");
    r.few_groups = true;
    diff_plan_make(a, &r, &t);
    cr_assert_eq(items[1].needs, DIFF_NEEDS_PROCESSES);
    arena_free(a);
}
