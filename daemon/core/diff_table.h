/* What a comparison finds, metric by metric. */
#ifndef PROFD_CORE_DIFF_TABLE_H
#define PROFD_CORE_DIFF_TABLE_H

#include <stdbool.h>
#include <stdint.h>

#include "core/diff_stat.h"

/* time-per-process and all-calls-per-process: CPU time and calls of all functions together, for each process that
 * began; their tables have one row. self and total: shares of all time. time-per-call: self seconds per call.
 * calls-per-parent: calls along an arc per call of the caller. A function's calls include those of itself. */
#define DIFF_METRICS(X)                                                                                                \
    X(PROCESS_TIME, "time-per-process")                                                                                \
    X(PROCESS_CALLS, "all-calls-per-process")                                                                          \
    X(SELF, "self")                                                                                                    \
    X(TOTAL, "total")                                                                                                  \
    X(TIME, "time-per-call")                                                                                           \
    X(CALLS, "calls-per-process")                                                                                      \
    X(PARENT, "calls-per-parent")
enum diff_metric {
#define X(name, text) DIFF_##name,
    DIFF_METRICS(X)
#undef X
        DIFF_METRIC_COUNT
};
/* Static; NULL beyond the last. */
const char *diff_metric_name(enum diff_metric metric);

enum diff_verdict {
    DIFF_CHANGED,          /* q ≤ fdr */
    DIFF_CONSTANT_CHANGED, /* the same in every group of each side, and different: no p */
    DIFF_ONLY_A, /* self, total: a function that B does not have, or that has enough ticks in A for a test and no tick
                    in B. calls-per-parent: an arc between functions that both sides have */
    DIFF_ONLY_B,
    DIFF_UNCERTAIN, /* the interval does not hold 0, but q > fdr: among that many tests this may be chance. Or one side
                       has enough ticks for a test, and the other has fewer although the time of both is enough */
    DIFF_SAME,      /* the interval holds 0 */
    DIFF_CONSTANT,  /* the same number in every group of both sides */
    DIFF_TOO_FEW,   /* samples, calls or groups for a test */
    DIFF_VERDICTS
};
const char *diff_verdict_name(enum diff_verdict verdict);

/* What is missing before the increase that is planned for can be found, or before there can be a test. */
enum diff_needs {
    DIFF_NEEDS_NOTHING,
    DIFF_NEEDS_DATA,      /* the multiple `needed` of the data of both sides */
    DIFF_NEEDS_PROCESSES, /* with calls or ticks of it, in more groups */
    DIFF_NEEDS_TOO_MUCH,  /* more than the request's multiple: the processes differ too much, or it is too small */
    DIFF_NEEDS
};
const char *diff_needs_name(enum diff_needs needs);

struct diff_item {
    uint32_t row;    /* of the match: the function; of an arc the callee; match.row_count: all functions together */
    uint32_t caller; /* of an arc; else DIFF_NONE (core/diff_match.h) */
    enum diff_verdict verdict;
    double ratio[2]; /* as measured; the estimate is without the common factor */
    double ticks[2]; /* of the function's self time */
    double share;    /* of the function in the time of the side where it is larger; for self and time-per-call its self
                        time, else its total time */
    bool estimated;  /* estimate holds something: CHANGED, SAME, some UNCERTAIN and the two CONSTANT */
    struct diff_estimate estimate;
    double q; /* where there is a p */
    double
        testable;  /* with this multiple of the data it has ticks for a test; 0: its test needs none, or it has none */
    double needed; /* the multiple of the data that finds the increase that is planned for (core/diff_plan.h) */
    enum diff_needs needs;
};

/* What all functions of a metric have in common: a slower machine, more work for each process. */
struct diff_common {
    uint32_t functions; /* it was computed from; 0: there is none, and nothing below */
    struct diff_estimate estimate;
};

struct diff_table {
    bool made;           /* it was asked for and can be computed */
    const char *why_not; /* a sentence, if it was asked for and cannot; of self and total the items are those of one
                            side if the groups are too few */
    uint32_t count;
    struct diff_item *items; /* changed ones first; among equals by effect on the time, largest first */
    uint32_t counts[DIFF_VERDICTS];
    uint32_t tests; /* items with a p */
    struct diff_common common;
    double visible; /* median over the tested items: the smallest increase (logarithm) that would have been seen */
};

#endif
