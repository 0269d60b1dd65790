/* The comparison of two sides: what changed, and whether it is real. schema/spread.md says what the groups are. */
#ifndef PROFD_CORE_DIFF_H
#define PROFD_CORE_DIFF_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/arena.h"
#include "core/report.h"
#include "core/spread.h"
#include "proto/status.h"

/* One side of a comparison: self time, total time and calls of every function, calls of every arc, and each of these
 * numbers once more without each of the 16 random groups of processes. */

/* A number as k values: [0] of all processes, [1 + g] of those that are not in group g. */
#define DIFF_VALUES (RANDOM_GROUPS + 1)

/* What to read. The report's request decides cycles and owners; its clones are folded. */
struct diff_side_request {
    const struct report_request *report;
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

/* Comparison of two ratios by the logarithm, with the delete-one-group jackknife.
 *
 * A ratio R = Σx/Σy of a side is known as the logarithms ℓ of all values (core/diff.h): of all processes, and
 * without each group. Its variance is (m − 1)/m · Σ(ℓ(g) − mean)² over the m groups of the side. It has m − 1 degrees
 * of freedom if each group is as likely to deviate as the others. A group with more of x deviates more, so m is
 * replaced by Kish's number of groups of equal weight: (Σ x_g)² / Σ x_g². Sides of different builds have different
 * processes: variances are added, with the degrees of freedom of Welch and Satterthwaite. Two windows or label sets of
 * one build may share processes, which stay in their group: the differences by group are taken as one sample. */

#define DIFF_GROUPS_LEAST 12u   /* below, there is no test */
#define DIFF_SAMPLES_LEAST 150u /* of a function on each side if nothing had changed, for tests of its time */
#define DIFF_CONFIDENCE 0.95
#define DIFF_ALONE_LEAST 0.01          /* share of what is on one side only and stands before all other changes */
#define DIFF_POWER 0.84162123357291442 /* normal quantile of 80 % */
#define DIFF_ROUNDING 1e-9             /* logarithms that differ by less are equal: rounding */

/* ln(x/y) of all values. */
struct diff_logs {
    double of[DIFF_VALUES];
    double freedom; /* of its variance, ≥ 1 */
};

/* Returns false if x or y is 0, because there is no logarithm then. */
bool diff_stat_logs(const double x[DIFF_VALUES], const double y[DIFF_VALUES], struct diff_logs *out);

/* Standard error and interval of a difference of logarithms. */
struct diff_estimate {
    double log;       /* ln(R_B / R_A) */
    double error;     /* standard error; 0: constant in all groups of both sides */
    double freedom;   /* degrees of freedom, ≤ 30 */
    double low, high; /* of log, 95 % */
    double p;         /* two-sided; 1 or 0 where error is 0 */
    double visible;   /* the smallest increase, as a logarithm, that is found in 80 % of cases (core/diff.h) */
};

/* Compares two sides. groups[s] is the mask of the side's groups, at least two. O(groups). */
void diff_stat_compare(const struct diff_logs *a, const struct diff_logs *b, const uint16_t groups[2], bool paired,
                       struct diff_estimate *out);

/* Computes low and high for another confidence, in (0, 1), from error and freedom. */
void diff_stat_set_confidence(struct diff_estimate *x, double confidence);

/* The size, in standard errors, that a change must have so that a test with p ≤ level finds it in 80 % of cases.
 *
 * T = (d + Z) / r, where r² is the jackknife's variance over the true one, about χ²/ν with a standard deviation of
 * 1/√(2ν): T > t holds in a part Φ((d − t (1 − 1/4ν)) / √(1 + t²/2ν)) of cases (Abramowitz and Stegun 26.7.10). d is
 * counted in errors that are estimated as well, by an independent r: it varies by d/√(2ν). So
 *     d = t (1 − 1/4ν) + z √(1 + (t² + d²)/2ν),   z = Φ⁻¹(0.8),
 * a quadratic equation. The error is that of the difference from the common factor, so that factor's error is in it,
 * and what processes differ by. */
double diff_stat_effect(double freedom, double level);

/* q[i] of p[i], by Benjamini and Hochberg: the least rate of false discoveries at which i is one. order: scratch of 2n
 * items. O(n). */
struct sort_item;
void diff_stat_discover(const double *p, double *q, size_t n, struct sort_item *order);

/* The number of groups in a mask. */
unsigned diff_stat_count(uint32_t groups);

/* What a comparison finds, metric by metric. */

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
                       has enough ticks for a test, and the other has fewer although the time of both is enough. Or,
                       of self and total, one side has none, and the other enough ticks in too few groups */
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
    uint32_t caller; /* of an arc; else DIFF_NONE (core/diff.h) */
    enum diff_verdict verdict;
    double ratio[2]; /* as measured; the estimate is without the common factor */
    double ticks[2]; /* of the function's self time */
    double share;    /* of the function in the time of the side where it is larger; for self and time-per-call its self
                        time, else its total time */
    double seconds[2]; /* of the same time, for each process of the side; 0 where no process is known to have begun */
    bool few[2];       /* fewer groups of processes of the side have ticks, or calls, of it than a test needs */
    bool estimated;    /* estimate holds something: CHANGED, SAME, some UNCERTAIN and the two CONSTANT */
    struct diff_estimate estimate;
    double q; /* where there is a p */
    double
        testable;  /* with this multiple of the data it has ticks for a test; 0: its test needs none, or it has none */
    double needed; /* the multiple of the data that finds the increase that is planned for (core/diff.h) */
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
    struct diff_item *items; /* changed ones first, then uncertain ones; among equals by effect, largest first: of
                                shares, seconds for each process; of others the part of the time that came or went */
    uint32_t counts[DIFF_VERDICTS];
    uint32_t tests; /* items with a p */
    struct diff_common common;
    double visible; /* median over the tested items: the smallest increase (logarithm) that would have been seen */
};

/* Which functions of two sides are the same: name and file, then the name without what the compiler appends.
 *
 * Two functions have the same name if their objects do, and their raw names without clone suffixes (.isra, .part,
 * .constprop, .cold, .lto_priv, .llvm and what follows). Of one name, those of the same file are one row: its clones.
 * Files of the two sides are the same if they are equal; else those are paired that have most names of directories
 * before the base name in common, the base name itself at least. Then one that remains on each side is the same
 * function if a file is not known, or if no other functions have the name. Functions without names are the same only if
 * build and address are. At last, a function that only one side has is one that only the other has, renamed, if both
 * have the same code (elf/elf_code.c) and no other function of the object has it on either side. A side has the
 * functions of its symbol tables, those without ticks and calls among them. */

#define DIFF_NONE UINT32_MAX

/* A function of the comparison. Its members on side s are member[s][first[s] … first[s] + count[s]). */
struct diff_row {
    uint32_t first[2], count[2]; /* 0: the side has no tick and no call of it */
    bool renamed;                /* it has two names, and the same code */
    bool idle;                   /* seen on one side only, and the other has it, too, by its symbol table; or it is a
                                    class of addresses, which is neither new nor gone */
    bool inlined; /* seen on one side only; the debug information of the other's other build has inlined copies */
};

struct diff_match {
    uint32_t row_count;
    struct diff_row *rows;
    uint32_t *member[2]; /* functions of the side, in the order of rows */
    uint32_t *row_of[2]; /* of each function of the side */
};

/* programs[s]: build-id of the side's own build, which has the same name on both sides whatever its file is called.
 * Everything lives in the arena. O((n + symbols) log n) comparisons of numbers. */
void diff_match_make(struct arena *a, const struct diff_side *const sides[2], const char *const programs[2],
                     struct diff_match *out);

/* Returns whether a side's build has inlined copies of a row's function, as far as its debug information is known.
 * Calls of such copies are not counted. O(builds · log names). */
bool diff_match_has_inlined(const struct diff_match *m, const struct diff_side *const sides[2],
                            const char *const programs[2], uint32_t row, uint32_t side);

/* The comparison of two sides: what changed, and whether it is real (schema/spread.md says what the groups are). */

#define DIFF_DATA_MOST 100.0 /* times what is there; a larger multiple is no plan */

enum diff_judgement { DIFF_BELOW, DIFF_ABOVE, DIFF_UNKNOWN };

struct diff_request {
    const struct diff_side *sides[2]; /* before, after */
    const char *programs[2];          /* build-ids */
    bool paired;                      /* group by group: a process or a pair of them may be on both sides */
    bool sampled[2];                  /* not all calls of the side were counted: its numbers of calls say nothing */
    bool metrics[DIFF_METRIC_COUNT];
    double fdr;        /* in (0, 1) */
    double confidence; /* of intervals, in (0, 1); 0: DIFF_CONFIDENCE. Where it is given, a visible change is
                          one with an interval without 0; else one that is found as the only one among the tests */
    uint32_t watch_count;
    const char *const *watch; /* only these functions, by name, are tested; those of arcs are callees */
    bool judge;               /* by this threshold: an increase of the metric by more than this fraction */
    enum diff_metric judge_metric;
    double threshold;
    double most_data; /* no larger multiple of the data is named as missing */
};

struct diff {
    const struct diff_side *sides[2];
    bool measured[2]; /* row_total has the times of stacks */
    struct diff_match match;
    struct diff_table tables[DIFF_METRIC_COUNT];
    uint32_t only_count[2]; /* functions that one side has, by self time, largest first; no classes of addresses */
    uint32_t *only[2];      /* rows */
    double *row_self[2], *row_total[2],
        *row_calls[2]; /* [row·DIFF_VALUES]; behind the last row that of all functions */
    bool *watched;     /* of each of the request's names: a row has it */
    enum diff_judgement judgement;
    uint32_t above, unknown; /* items, of the judged metric */
};

/* The function of a row as it is shown: that of the side after, where there is one. NULL: all functions together. */
const struct report_function *diff_function(const struct diff *d, uint32_t row);

/* Everything lives in the arena; the sides must outlive it. Deterministic. O(n log n). */
void diff_make(struct arena *a, const struct diff_request *request, struct diff *out);

#define DIFF_COMMON_LEAST 5u /* functions from which a common factor is computed: fewer do not stand for the others */

/* Which change would have been found, and with how much data another one would be. */

struct diff_plan_request {
    double fdr, confidence; /* as those of core/diff.h */
    double log;             /* the increase that is planned for, as a logarithm; 0: none */
    double most;            /* as most_data */
    bool few_groups;        /* a side has fewer than a test needs */
};

/* Sets what is visible, in the table and its tested items, and what all items need. One changed function of n tested
 * ones is found if its p ≤ fdr / n. With more data more functions have ticks enough for a test, so n grows with the
 * plan: as many are counted as the table's ticks promise, and up to a fifth more. O(n log n). */
void diff_plan_make(struct arena *a, const struct diff_plan_request *r, struct diff_table *t);

#endif
