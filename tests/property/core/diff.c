/* Comparisons of simulated fleets: of equal sides a twentieth is significant at 5 %, real changes are found, and
 * intervals contain them. */
#include <criterion/criterion.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "core/diff.h"
#include "proto/sort.h"
#include "tests/rounds.h"

#define K RANDOM_GROUPS
#define FUNCTIONS 20u
#define PROCESSES 200u

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
    double r = sqrt(-2 * log(uniform()));
    return r * cos(2 * 3.14159265358979323846 * uniform());
}

/* To the values of all processes, and of all but those of each other group. */
static void add(double x[DIFF_VALUES], unsigned group, double value)
{
    for (unsigned k = 0; k < DIFF_VALUES; k++) {
        x[k] += k == group + 1 ? 0 : value;
    }
}

/* Work of a process: its amount differs from process to process, and so does its mixture. Ticks come in bundles, as
 * they do above the kernel's HZ. */
static void add_process(double self[FUNCTIONS][DIFF_VALUES], double *seconds, unsigned group, const double *slower)
{
    double amount = 0.3 - log(uniform());
    for (unsigned f = 0; f < FUNCTIONS; f++) {
        double mean = amount * (1 + f) * 0.4 * (0.5 + uniform()) * (slower != NULL ? slower[f] : 1);
        double ticks = 0;
        for (double p = uniform(), least = exp(-mean); p > least; p *= uniform()) {
            ticks += 3;
        }
        add(self[f], group, ticks);
        add(seconds, group, ticks);
    }
}

struct outcome {
    unsigned tests, below, discoveries, holds;
};

/* One comparison of two sides of processes that differ by the factors in `slower` (NULL: in nothing). */
static void compare_once(const double *slower, unsigned tested, double log_change, struct outcome *o)
{
    static double self[2][FUNCTIONS][DIFF_VALUES], seconds[2][DIFF_VALUES];
    const uint16_t groups[2] = {0xffff, 0xffff};
    double p[FUNCTIONS], q[FUNCTIONS];
    struct sort_item order[2 * FUNCTIONS];
    memset(self, 0, sizeof self);
    memset(seconds, 0, sizeof seconds);
    for (unsigned i = 0; i < 2 * PROCESSES; i++) {
        add_process(self[i % 2], seconds[i % 2], (unsigned)(next_bits() >> 60), i % 2 == 1 ? slower : NULL);
    }
    bool any = false;
    for (unsigned f = 0; f < FUNCTIONS; f++) {
        struct diff_logs logs[2];
        struct diff_estimate x;
        cr_assert(diff_stat_logs(self[0][f], seconds[0], &logs[0]) && diff_stat_logs(self[1][f], seconds[1], &logs[1]));
        diff_stat_compare(&logs[0], &logs[1], groups, false, &x);
        p[f] = x.p;
        if (f >= tested) {
            o->tests++;
            o->below += x.p < 0.05;
            o->holds += x.low <= log_change && log_change <= x.high;
        }
    }
    diff_stat_discover(p, q, FUNCTIONS, order);
    for (unsigned f = 0; f < FUNCTIONS; f++) {
        any = any || q[f] <= 0.05;
    }
    o->discoveries += any;
}

/* Equal sides, random splits. */
Test(diff_stat, equal_sides_are_seldom_significant)
{
    const unsigned splits = rounds(750);
    struct outcome o = {0};
    state = 20261123;
    for (unsigned i = 0; i < splits; i++) {
        compare_once(NULL, 0, 0, &o);
    }
    double share = (double)o.below / o.tests, found = (double)o.discoveries / splits;
    cr_log_info("p < 0.05 in %.2f %%, a discovery in %.2f %% of splits\n", 100 * share, 100 * found);
    cr_assert(share > 0.03 && share < 0.07, "p < .05 in %.2f %% of %u tests", 100 * share, o.tests);
    cr_assert_lt(found, 0.06, "a discovery in %.2f %% of %u splits", 100 * found, splits);
    cr_assert(fabs((double)o.holds / o.tests - (1 - share)) < 1e-9, "p and interval say the same");
}

/* Few processes, of which some do most of the work: the group of such a process deviates more than the others. */
Test(diff_stat, heavy_processes_are_not_significant)
{
    enum { FEW = 60, RUNS = 6000 };
    const uint16_t groups[2] = {0xffff, 0xffff};
    unsigned below = 0;
    state = 20261127;
    for (unsigned i = 0; i < RUNS; i++) {
        struct diff_logs logs[2];
        struct diff_estimate x;
        for (unsigned s = 0; s < 2; s++) {
            double ticks[DIFF_VALUES] = {0}, seconds[DIFF_VALUES] = {0};
            for (unsigned p = 0; p < FEW; p++) {
                const double size = exp(1.5 * normal());
                add(ticks, p % K, size * -log(uniform()));
                add(seconds, p % K, size);
            }
            cr_assert(diff_stat_logs(ticks, seconds, &logs[s]));
        }
        diff_stat_compare(&logs[0], &logs[1], groups, false, &x);
        below += x.p < 0.05;
    }
    cr_log_info("p < 0.05 in %.2f %%\n", 100.0 * below / RUNS);
    cr_assert(below > 0.03 * RUNS && below < 0.055 * RUNS, "p < .05 in %.2f %% of %d", 100.0 * below / RUNS, RUNS);
}

/* The last function takes a quarter longer, which changes its share by a known factor; the intervals contain it. */
Test(diff_stat, intervals_contain_a_real_change)
{
    struct outcome o = {0};
    double slower[FUNCTIONS], before = 0, after = 0;
    for (unsigned f = 0; f < FUNCTIONS; f++) {
        slower[f] = f == FUNCTIONS - 1 ? 1.25 : 1;
        before += 1 + f;
        after += (1 + f) * slower[f];
    }
    state = 7;
    for (unsigned i = 0; i < rounds(400); i++) {
        compare_once(slower, FUNCTIONS - 1, log(1.25 * before / after), &o);
    }
    double holds = (double)o.holds / o.tests;
    cr_assert(holds > 0.92 && holds < 0.98, "%.1f %% of 95 %% intervals contain the change", 100 * holds);
    cr_assert_gt((double)o.below / o.tests, 0.9, "found in %u of %u", o.below, o.tests);
}
