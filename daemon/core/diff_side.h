/* One side of a comparison: self time, total time and calls of every function, calls of every arc, and each of these
 * numbers once more without each of the 16 random groups of processes. */
#ifndef PROFD_CORE_DIFF_SIDE_H
#define PROFD_CORE_DIFF_SIDE_H

#include <stdint.h>

#include "core/arena.h"
#include "core/random_groups.h"
#include "core/report.h"
#include "core/shares.h"
#include "proto/status.h"

/* A number as k values: [0] of all processes, [1 + g] of those that are not in group g. */
#define DIFF_VALUES (RANDOM_GROUPS + 1)

/* What to read. The report's request decides cycles and owners; its clones are folded. */
struct diff_side_request {
    const struct report_request *report;
    const struct shares *shares; /* of report->profile */
    const struct random_groups *processes;
};

/* Function i's values stand at [i·DIFF_VALUES]. */
struct diff_side {
    uint32_t function_count;
    struct report_function *functions; /* kind, names, build, address, size and file only; by (build, address) */
    double *self, *total;              /* seconds; total as in a report: time of callees flows along one graph */
    double *measured; /* likewise total, of stacks; NULL where they do not cover REPORT_TIME_COVERAGE of the ticks,
                         or their random groups are not known */
    double *calls;    /* its own calls of itself included */
    double *ticks;    /* [i]: in self */
    uint16_t *tick_groups, *call_groups; /* [i]: bit g is set if group g brought ticks, or calls */
    uint32_t arc_count;                  /* arcs with calls, ascending by (from, to) */
    uint32_t *from, *to;                 /* functions */
    uint64_t *arc_calls;                 /* value k at [k·arc_step + arc] */
    size_t arc_step;
    uint16_t *arc_groups;          /* [arc] */
    uint16_t groups;               /* those with any ticks, calls or processes */
    double seconds[DIFF_VALUES];   /* of all samples of the dimension */
    double processes[DIFF_VALUES]; /* of known groups */
    double processes_unknown;      /* of groups that are not known: calls per process then have no interval */
    uint64_t ticks_total;
    double per_tick; /* samples that a tick stands for, as in struct report_ticks */
    const char *dimension;
    const char *const *builds; /* ids of the functions' builds, one more for what is outside: "" */
    const char *const *build_names;
    const struct object *const *objects; /* of the builds; NULL where unknown */
    uint32_t build_count;
};

/* The side lives in the arena. What is needed meanwhile is taken from scratch, which is not reset.
 * O(17 · (functions + arcs + bins)) and the searches of a report. Errors as report_build. */
enum profd_status diff_side_make(struct arena *a, struct arena *scratch, const struct diff_side_request *request,
                                 struct diff_side *out, struct profd_error *e);

#endif
