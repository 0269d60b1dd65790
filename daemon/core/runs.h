/* Sorted runs: sums in the making, and the one way in which two become one. The rows of a run are sorted as those of a
 * sum (proto/counts.h), so that runs merge without hashing. Private to core/rollup.c and core/upload_sum.c.
 * Memory is not tested: the arena has a boundary. */
#ifndef PROFD_CORE_RUNS_H
#define PROFD_CORE_RUNS_H

#include <stdbool.h>
#include <stdint.h>

#include "core/arena.h"
#include "proto/counts.h"
#include "proto/sum.h"

/* Counts with or without (NULL) their shares. Arrays are taken from the arena, and used again after runs_give. */
struct runs_run {
    struct counts r;
    struct counts_shares s;
    uint32_t capacity[COUNTS_KINDS];
    struct runs_run *next; /* of those given back */
};

/* Row k of a sum has row left[k] of the one run and row right[k] of the other; RUNS_NONE: that run has no such row. */
#define RUNS_NONE UINT32_MAX
struct runs_plan {
    uint32_t *left, *right;
    uint32_t *first; /* of a histogram or tree: its first bin or node */
    uint32_t n, capacity;
    bool fresh; /* a row is not in the left run */
};

struct runs {
    struct arena *arena;
    bool shared[COUNTS_KINDS]; /* runs have shares of these kinds of rows */
    uint32_t most;             /* arcs and bins of a run; one with more than twice as many is cut. 0: without limit */
    struct runs_run *spare;
    struct arena *scratch; /* the user's; NULL: not needed yet */
    struct runs_plan plan[COUNTS_KINDS];
};

/* Runs that wait to be merged, each more than twice as long as the one above it, so that 34 would do. */
struct runs_stack {
    struct runs_run *runs[64];
    uint32_t depth;
};

/* An empty run with capacity for that many rows of each kind. */
struct runs_run *runs_take(struct runs *runs, const uint32_t rows[COUNTS_KINDS]);
void runs_give(struct runs *runs, struct runs_run *run);

/* A run with the rows of another. All of them are shares of the group; COUNTS_GROUPS: the shares are those of from, or
 * 0 if it has none. O(rows). */
struct runs_run *runs_copy(struct runs *runs, const struct runs_run *from, uint32_t group);

/* Puts a run on the stack, after those on top that are not more than twice as long were merged with it: runs of the
 * same keys are added up at once, runs of different keys pairwise by size. A sum with more than twice the rows of
 * `most`, or 2 × LIMIT_STACK_NODES nodes, is cut or folded. own: the run may be changed or given back; else it is
 * copied. O(rows) for each merge. */
void runs_push(struct runs *runs, struct runs_stack *s, struct runs_run *run, bool own);

/* What is on the stack becomes one run, an empty one if there is nothing. */
struct runs_run *runs_close(struct runs *runs, struct runs_stack *s);
/* Cuts and folds a run, which may be given back for another, to `most` rows and LIMIT_STACK_NODES nodes. */
struct runs_run *runs_limit(struct runs *runs, struct runs_run *run);

/* One arc as a row. */
struct runs_arc {
    uint32_t from_build, to_build;
    uint64_t from, to, calls;
    struct counts_order order;
};

static inline bool runs_same_arc(const struct runs_arc *a, const struct runs_arc *b)
{
    return a->from == b->from && a->to == b->to && a->from_build == b->from_build && a->to_build == b->to_build;
}

static inline struct runs_arc runs_get_arc(const struct counts *r, uint32_t i)
{
    return (struct runs_arc){r->from_build[i], r->to_build[i], r->from[i],
                             r->to[i],         r->calls[i],    {r->commit[i], r->rank[i]}};
}

/* Adds an arc that does not come before the last one: to that one, if it is the same. The arrays have space for it. */
static inline void runs_add_arc(struct counts *r, const struct runs_arc *arc)
{
    struct runs_arc last = {.calls = 0};
    uint32_t at = r->arc_count - 1;
    if (r->arc_count > 0) {
        last = runs_get_arc(r, at);
    }
    if (r->arc_count == 0 || !runs_same_arc(&last, arc)) {
        last = *arc;
        last.calls = 0;
        at = r->arc_count++;
        r->from_build[at] = arc->from_build;
        r->to_build[at] = arc->to_build;
        r->from[at] = arc->from;
        r->to[at] = arc->to;
    }
    sum_add(&last.calls, arc->calls, &r->saturated);
    counts_order_lower(&last.order, arc->order);
    r->calls[at] = last.calls;
    r->commit[at] = last.order.commit;
    r->rank[at] = last.order.rank;
}

#endif
