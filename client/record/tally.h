/* What was sampled of one program: ticks at addresses, and stacks. Pure. */
#ifndef PROFD_CLIENT_RECORD_TALLY_H
#define PROFD_CLIENT_RECORD_TALLY_H

#include <stdbool.h>
#include <stdint.h>

#include "core/arena.h"
#include "core/table.h"
#include "proto/collector.h"
#include "proto/counts_stacks.h"

struct tally_bin;

struct tally {
    struct arena *arena;
    struct table bin_table, build_table;
    struct tally_bin *bins;
    struct counts_stacks *stacks;
    uint32_t *builds; /* those that occur, the program first: an index here is a build's number in the counts */
    uint32_t rate, bin_count, bin_capacity, build_count, build_capacity;
    uint64_t counters[COLLECTOR_COUNTERS_MAX]; /* added by the caller */
};

/* An empty tally of that program, which has a number that the caller chose. rate: of the ticks. Its memory is the
 * arena's, which must not be reset before tally_done. */
enum profd_status tally_init(struct tally *t, struct arena *a, uint32_t program, uint32_t rate, struct profd_error *e);
void tally_done(struct tally *t);

/* Counts a tick: n frames, the outermost caller's return address first, the program counter last; n is 1 to
 * LIMIT_STACK_DEPTH. Their builds are numbers that the caller chose, or COUNTS_NOWHERE as counts.h has it; that of the
 * program counter is a build. A frame of a build beyond LIMIT_BUILDS is outside. False: no memory, or the program
 * counter's build is beyond that; nothing was counted. O(n). */
bool tally_add(struct tally *t, const struct counts_frame *frames, uint32_t n);

/* [low, high) of a build's link-time addresses. */
struct tally_range {
    uint64_t low, high;
};
/* Makes the counts: histograms of bins of one byte of each build, the counters, and the stacks. ranges[i] is that of
 * t->builds[i]; every program counter must be in its range. O(n log n). */
enum profd_status tally_make_counts(const struct tally *t, const struct tally_range *ranges, struct counts *out,
                                    struct profd_error *e);

#endif
