/* Sorted runs and how two become one. Private to core/rollup*. */
#ifndef PROFD_CORE_ROLLUP_MERGE_H
#define PROFD_CORE_ROLLUP_MERGE_H

#include <stdbool.h>
#include <stdint.h>

#include "core/arena.h"
#include "core/rollup.h"
#include "core/rollup_plan.h"
#include "proto/sort.h"
#include "proto/limits.h"

#define ROLLUP_NODES_MOST (4 * LIMIT_STACK_NODES) /* of a run, so that the memory of a sum is bounded */

struct rollup_rows {
    uint32_t histograms, bins, arcs, trees, nodes;
};

/* A rollup with or without (NULL) its spread. Its arrays are taken from the arena and used again when it is given back.
 */
struct rollup_run {
    struct counts r;
    struct counts_shares s;
    struct rollup_rows capacity; /* how many rows the arrays hold */
    struct rollup_run *next;     /* of those given back */
};

struct rollup_runs {
    struct arena *arena;
    bool spread;   /* runs have one */
    uint32_t most; /* arcs and bins of a run; one with more than twice as many is cut. 0: without limit */
    struct rollup_run *spare;
    struct rollup_plan plan;
    struct sort_item *items; /* for sorting an upload: twice item_capacity of them */
    size_t item_capacity;
};

/* Ensures capacity for sorting n rows. */
void rollup_runs_reserve(struct rollup_runs *runs, uint32_t n);

/* An empty run with capacity for that many rows. */
struct rollup_run *rollup_run_take(struct rollup_runs *runs, const struct rollup_rows *rows);
void rollup_run_give(struct rollup_runs *runs, struct rollup_run *run);
/* A run of its own with the content of another. */
struct rollup_run *rollup_run_copy(struct rollup_runs *runs, const struct rollup_run *from);

/* The sum of two runs, which stay as they are; folded to LIMIT_STACK_NODES if it has ROLLUP_NODES_MOST. O(rows of
 * both). */
struct rollup_run *rollup_run_merge(struct rollup_runs *runs, const struct rollup_run *a, const struct rollup_run *b);

/* Cuts a run, which may be given back for another, as rollup_sum_limit says, if it has more than `times` the arcs and
 * bins, or histograms, that it may have. O(rows). */
struct rollup_run *rollup_run_cut(struct rollup_runs *runs, struct rollup_run *run, uint32_t times);

/* Runs that wait to be merged, each more than twice as long as the one above it, so that 34 would do. */
struct rollup_stack {
    struct rollup_run *runs[64];
    uint32_t depth;
};

/* Puts a run on the stack, after those on top that are not more than twice as long were merged with it: runs of the
 * same keys are added up at once, runs of different keys pairwise by size. own: it may be given back; else it is
 * copied. */
void rollup_stack_push(struct rollup_stack *s, struct rollup_runs *runs, struct rollup_run *run, bool own);
/* What is on the stack becomes one run, an empty one if there is nothing. */
struct rollup_run *rollup_stack_close(struct rollup_stack *s, struct rollup_runs *runs);

#endif
