/* The comparison of two sides: what changed, and whether it is real (schema/spread.md says what the groups are). */
#ifndef PROFD_CORE_DIFF_H
#define PROFD_CORE_DIFF_H

#include <stdbool.h>
#include <stdint.h>

#include "core/arena.h"
#include "core/diff_match.h"
#include "core/diff_side.h"
#include "core/diff_table.h"
#include "proto/status.h"

#define DIFF_DATA_MOST 100.0 /* times what is there; a larger multiple is no plan */

enum diff_judgement { DIFF_BELOW, DIFF_ABOVE, DIFF_UNKNOWN };

struct diff_request {
    const struct diff_side *sides[2]; /* before, after */
    const char *programs[2];          /* build-ids */
    bool paired;                      /* processes may be on both sides: one build */
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
    uint32_t only_count[2]; /* functions that one side has, by self time, largest first */
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

#endif
