/* What follows from the collector's counters, and what does not. */
#include <criterion/criterion.h>

#include "core/coverage.h"
#include "core/rollup.h"
#include "core/shares.h"
#include "proto/sum.h"
#include "tests/unit/core/fixture.h"

static struct upload upload;
static const char *const ids[] = {"0011223344556677", "8899aabbccddeeff"};

static void setup(void)
{
    upload_init(&upload);
}

static void counters(uint32_t build)
{
    collector_make_histogram(&upload.histograms[upload.counts.histogram_count], build);
    upload.histograms[upload.counts.histogram_count++].first = upload.counts.bin_count;
}

static struct coverage coverage(struct arena *a)
{
    struct coverage c;
    coverage_make(upload_profile(&upload, a, ids, 2), &c);
    return c;
}

Test(coverage, without_words_there_is_none, .init = setup)
{
    struct arena *a = arena_new(0);
    upload_histogram(&upload, 0, 0x1000, 0x1400, 0x400, 1000);
    upload_bin(&upload, 1, 7);
    struct coverage c = coverage(a);
    double share = 9;
    cr_assert(!c.any && !c.saturated && coverage_attributed(&c) == 0 && !coverage_share(&c, &share) && share == 9);
    arena_free(a);
}

Test(coverage, what_functions_have_of_the_cpu_time, .init = setup)
{
    struct arena *a = arena_new(0);
    counters(1);
    upload_bin(&upload, COLLECTOR_PROCESSES, 2);
    upload_bin(&upload, COLLECTOR_CPU_NS, 1000);
    upload_bin(&upload, COLLECTOR_SAMPLED_NS, 900);
    upload_bin(&upload, COLLECTOR_INSIDE_NS, 50);
    upload_bin(&upload, COLLECTOR_BLOCKED_NS, 30);
    upload_bin(&upload, COLLECTOR_DROPPED_NS, 15);
    upload_bin(&upload, COLLECTOR_OUTSIDE_NS, 5);
    upload_bin(&upload, COLLECTOR_CALLS_LOST, 3);
    upload_bin(&upload, 63, 8); /* of a later version */
    struct coverage c = coverage(a);
    double share = 0;
    cr_assert(c.any && c.counters[COLLECTOR_CALLS_LOST] == 3 && c.counters[63] == 8 && coverage_attributed(&c) == 800);
    cr_assert(coverage_share(&c, &share) && share == 800.0 / 950);
    cr_assert(coverage_overhead(&c, &share) && share == 50.0 / 900);
    share = 0.8;
    c.counters[COLLECTOR_CPU_NS] = 50; /* all of it inside */
    cr_assert(!coverage_share(&c, &share));
    c.counters[COLLECTOR_CPU_NS] = 0;
    cr_assert(!coverage_share(&c, &share));
    c.counters[COLLECTOR_SAMPLED_NS] = 0;
    cr_assert(!coverage_overhead(&c, &share) && share == 0.8);
    c.counters[COLLECTOR_SAMPLED_NS] = 900;
    c.counters[COLLECTOR_DROPPED_NS] = 2000; /* more was lost than there was */
    cr_assert_eq(coverage_attributed(&c), 0);
    arena_free(a);
}

/* No tick inside of n: below 3/n. */
Test(coverage, what_no_tick_inside_shows)
{
    static const uint32_t RATES[] = {100, 1000};
    struct report r = {.ticks = 30, .rates = RATES, .rate_count = 2};
    struct coverage c = {.any = true};
    double most = 9;
    c.counters[COLLECTOR_CPU_NS] = c.counters[COLLECTOR_SAMPLED_NS] = 300000000;
    cr_assert(coverage_overhead_below(&c, &r, &most) && most == 0.1);
    r.ticks = 120;
    r.per_tick = 0.25; /* a sample stood for four ticks */
    cr_assert(coverage_overhead_below(&c, &r, &most) && most == 0.1);
    r.ticks = 119;
    cr_assert(!coverage_overhead_below(&c, &r, &most) && most == 0.1, "fewer show nothing");
    r.ticks = 29;
    r.per_tick = 0;
    cr_assert(!coverage_overhead_below(&c, &r, &most) && most == 0.1, "fewer show nothing");
    c.counters[COLLECTOR_INSIDE_NS] = 10000000;
    cr_assert_float_eq(coverage_samples(&c, &r), 30, 1e-9);
    cr_assert(!coverage_overhead_below(&c, &r, &most) && most == 0.1, "one was inside");
}

Test(coverage, how_much_of_the_cpu_time_has_no_ticks)
{
    struct coverage c = {.any = true};
    c.counters[COLLECTOR_CPU_NS] = 1000000000;
    c.counters[COLLECTOR_SAMPLED_NS] = 900000000;
    cr_assert_eq(coverage_without_ticks(&c), 0, "a tenth");
    c.counters[COLLECTOR_SAMPLED_NS]--;
    cr_assert_eq(coverage_without_ticks(&c), 100000001);
    c = (struct coverage){.any = true};
    c.counters[COLLECTOR_CPU_NS] = 49999999;
    cr_assert_eq(coverage_without_ticks(&c), 0, "too short for a tick");
}

/* A process of 1.6 ms may lack a tick of 4 ms. */
Test(coverage, undelivered_ticks_are_no_more_than_the_time_without_ticks)
{
    static const uint64_t cases[][4] = {/* CPU time, sampled, undelivered, shown; microseconds */
                                        {1600, 0, 4000, 1600},
                                        {13600, 12000, 4000, 1600},
                                        {13600, 16000, 4000, 0},
                                        {20000, 12000, 4000, 4000}};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct arena *a = arena_new(0);
        upload_init(&upload);
        counters(1);
        upload_bin(&upload, COLLECTOR_CPU_NS, 1000 * cases[i][0]);
        upload_bin(&upload, COLLECTOR_SAMPLED_NS, 1000 * cases[i][1]);
        upload_bin(&upload, COLLECTOR_UNDELIVERED_NS, 1000 * cases[i][2]);
        cr_assert_eq(coverage(a).counters[COLLECTOR_UNDELIVERED_NS], 1000 * cases[i][3], "case %zu", i);
        arena_free(a);
    }
}

/* 292 years of CPU time: the counters say so, and the sums of ticks stay right. */
Test(coverage, words_at_their_end_spoil_no_sum, .init = setup)
{
    struct arena *a = arena_new(0);
    struct counts r;
    struct counts_shares spread;
    struct share shares[2] = {{0}};
    uint64_t ticks, calls;
    counters(0);
    upload_bin(&upload, COLLECTOR_CPU_NS, SUM_MAX - 1);
    upload_histogram(&upload, 1, 0x1000, 0x1400, 0x400, 1000);
    upload_bin(&upload, 1, 7000);
    struct rollup_sum *s = rollup_sum_new(a, ROLLUP_ALL);
    for (uint32_t i = 0; i < 3; i++) {
        cr_assert_eq(rollup_sum_add_upload(s, &upload.counts, i, i % 2, NULL), PROFD_OK);
    }
    cr_assert_eq(rollup_sum_finish(s, &r, &spread, NULL), PROFD_OK);
    counts_totals(&r, &ticks, &calls);
    cr_assert(!r.saturated && ticks == 21000 && calls == 0 && r.histogram_count == 2 && r.bin_ticks[0] == SUM_MAX);
    struct profile p = {.counts = r};
    struct coverage c;
    coverage_make(&p, &c);
    cr_assert(c.saturated && c.counters[COLLECTOR_CPU_NS] == SUM_MAX);
    cr_assert(!share_add_counts(shares, &upload.counts) && shares[0].nanoseconds == 0 &&
              shares[1].nanoseconds == UINT64_C(7000000000));
    cr_assert(!share_add_counts(shares, &r) && shares[0].nanoseconds == 0);
    arena_free(a);
}

/* A sum of one build keeps the counters of the processes that loaded it. */
Test(coverage, narrowing_keeps_the_words, .init = setup)
{
    struct arena *a = arena_new(0);
    counters(0);
    upload_bin(&upload, COLLECTOR_CPU_NS, 500);
    upload_histogram(&upload, 0, 0x1000, 0x1400, 0x400, 1000);
    upload_bin(&upload, 1, 7);
    upload_histogram(&upload, 1, 0x1000, 0x1400, 0x400, 1000);
    upload_bin(&upload, 2, 9);
    struct counts r, out;
    struct counts_shares spread;
    struct rollup_sum *s = rollup_sum_new(a, ROLLUP_ALL), *alone = rollup_sum_new(a, ROLLUP_PLAIN);
    cr_assert_eq(rollup_sum_add_upload(s, &upload.counts, 1, 3, NULL), PROFD_OK);
    cr_assert_eq(rollup_sum_finish(s, &r, &spread, NULL), PROFD_OK);
    const uint32_t map[] = {COUNTS_NOWHERE, 0};
    for (int twice = 0; twice < 2; twice++) {
        cr_assert_eq(rollup_sum_add_mapped(alone, &r, NULL, map, 2, true, NULL), PROFD_OK);
    }
    cr_assert_eq(rollup_sum_finish(alone, &out, NULL, NULL), PROFD_OK);
    cr_assert(out.histogram_count == 2 && collector_is_dimension(out.histograms[0].dimension) &&
              out.histograms[0].build == 0);
    cr_assert(out.bin_ticks[out.histograms[0].first] == 1000 && out.bin_ticks[out.histograms[1].first] == 18);
    arena_free(a);
}
