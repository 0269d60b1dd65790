/* What was sampled of a program: bins, stacks, counters, and the order in which they stand. */
#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>

#include "proto/limits.h"
#include "record/record_internal.h"

static struct arena *arena;
static struct ticks tally;

static void setup(void)
{
    arena = arena_new(0);
    cr_assert_eq(tally_init(&tally, arena, 7, 99, NULL), PROFD_OK);
}

static void teardown(void)
{
    tally_done(&tally);
    arena_free(arena);
}

TestSuite(tally, .init = setup, .fini = teardown);

static struct counts_frame frame(uint32_t build, uint64_t address, uint8_t kind)
{
    return (struct counts_frame){.build = build, .address = address, .kind = kind};
}

static bool add(const struct counts_frame *frames, uint32_t n)
{
    return tally_add(&tally, frames, n);
}

static void make(struct counts *c)
{
    struct tally_range ranges[LIMIT_BUILDS];
    for (uint32_t i = 0; i < tally.build_count; i++) {
        ranges[i] = (struct tally_range){0x1000, 0x9000};
    }
    cr_assert_eq(tally_make_counts(&tally, ranges, c, NULL), PROFD_OK);
}

Test(tally, ticks_and_stacks)
{
    const struct counts_frame main_f[] = {frame(7, 0x2000, COUNTS_NODE_RETURN), frame(3, 0x3000, COUNTS_NODE_PC)};
    const struct counts_frame main_g[] = {frame(7, 0x2000, COUNTS_NODE_RETURN), frame(7, 0x2500, COUNTS_NODE_PC)};
    struct counts c;
    cr_assert(add(main_f, 2) && add(main_g, 2) && add(main_g, 2));
    tally.counters[COLLECTOR_SAMPLED_NS] = 30;
    make(&c);
    cr_assert_eq(tally.build_count, 2);
    cr_assert_eq(tally.builds[0], 7, "the program is the first build");
    cr_assert_eq(c.histogram_count, 3);
    cr_assert(c.histograms[0].build == 0 && c.histograms[0].low == 0x1000 && c.histograms[0].bins == 0x8000);
    cr_assert(c.bin_index[0] == 0x1500 && c.bin_ticks[0] == 2);
    cr_assert(c.histograms[1].build == 1 && c.bin_index[1] == 0x2000 && c.bin_ticks[1] == 1);
    cr_assert(collector_is_dimension(c.histograms[2].dimension) && c.bin_index[2] == COLLECTOR_SAMPLED_NS);
    cr_assert(c.tree_count == 1 && c.node_count == 3 && c.trees[0].rate == 99);
    cr_assert(c.node_depth[0] == 0 && c.node_ticks[0] == 0 && c.node_address[0] == 0x2000);
    cr_assert(c.node_build[1] == 0 && c.node_ticks[1] == 2 && c.node_build[2] == 1 && c.node_ticks[2] == 1);
    counts_done(&c);
}

Test(tally, ticks_of_every_stack_add_up_when_the_tree_is_full)
{
    struct counts_frame f[2] = {frame(7, 0x2000, COUNTS_NODE_RETURN), frame(7, 0, COUNTS_NODE_PC)};
    const uint32_t n = LIMIT_STACK_NODES + 5000;
    struct counts c;
    uint64_t ticks = 0, in_bins = 0;
    struct tally_range range = {0, UINT32_MAX};
    for (uint32_t i = 0; i < n; i++) {
        f[1].address = i;
        cr_assert(add(f, 2));
    }
    cr_assert_eq(tally_make_counts(&tally, &range, &c, NULL), PROFD_OK);
    for (uint32_t i = 0; i < c.node_count; i++) {
        ticks += c.node_ticks[i];
    }
    for (uint32_t i = 0; i < c.bin_count; i++) {
        in_bins += c.bin_ticks[i];
    }
    cr_assert_leq(c.node_count, LIMIT_STACK_NODES);
    cr_assert_eq(ticks, n);
    cr_assert_eq(in_bins, n);
    counts_done(&c);
}

Test(tally, a_build_of_more_than_a_histogram_holds)
{
    const struct counts_frame near[] = {frame(7, 0x2000, COUNTS_NODE_PC)};
    const struct counts_frame far[] = {frame(7, 0x2000 + (uint64_t)LIMIT_HISTOGRAM_BINS, COUNTS_NODE_PC)};
    const struct tally_range range = {0x1000, 0x3000 + (uint64_t)LIMIT_HISTOGRAM_BINS};
    struct counts c;
    cr_assert(add(near, 1) && add(far, 1));
    cr_assert_eq(tally_make_counts(&tally, &range, &c, NULL), PROFD_OK);
    cr_assert_eq(c.histogram_count, 3);
    cr_assert(c.histograms[0].bins == LIMIT_HISTOGRAM_BINS && c.histograms[1].bins == 0x2000);
    cr_assert(c.histograms[1].low == c.histograms[0].high && c.bin_index[1] == 0x1000);
    counts_done(&c);
}

Test(tally, builds_beyond_the_limit_are_outside)
{
    for (uint32_t i = 0; i < LIMIT_BUILDS - 1; i++) {
        const struct counts_frame f[] = {frame(100 + i, 0x2000, COUNTS_NODE_PC)};
        cr_assert(add(f, 1));
    }
    const struct counts_frame caller[] = {frame(9000, 0x2000, COUNTS_NODE_RETURN), frame(7, 0x2000, COUNTS_NODE_PC)};
    const struct counts_frame leaf[] = {frame(9000, 0x2000, COUNTS_NODE_PC)};
    struct counts c;
    cr_assert(add(caller, 2), "the caller is outside");
    cr_assert_not(add(leaf, 1), "a tick needs a histogram");
    make(&c);
    cr_assert_eq(c.node_build[c.node_count - 2], COUNTS_NOWHERE);
    cr_assert_eq(c.node_address[c.node_count - 2], COUNTS_FRAME_OUTSIDE);
    counts_done(&c);
}
