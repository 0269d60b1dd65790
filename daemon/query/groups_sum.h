/* Uploads added up by the values of labels. */
#ifndef PROFD_QUERY_GROUPS_SUM_H
#define PROFD_QUERY_GROUPS_SUM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/arena.h"
#include "core/rows.h"
#include "proto/status.h"
#include "query/params.h"
#include "store/store.h"

#define GROUPS_LABELS 3 /* that one question may group by */

struct groups_request {
    struct store *store;
    struct store_scope scope;
    struct store_filter filter;
    const char *dimension; /* of the samples; NULL: the usual one, as for a report (core/report.h) */
    bool alone;            /* ticks and calls of the filter's build only, as in load.h */
    const char *labels[GROUPS_LABELS];
    size_t label_count;
    int64_t step;       /* ns, of GROUPS_STEPS; 0: none, and nothing below is looked at */
    int64_t begin, end; /* with steps: where data can be; begin < end */
};

/* by= of the parameters into r->labels. BAD_QUERY if one is no name of a label or given twice, if there are too many,
 * and if there is none and no step either. */
enum profd_status groups_parse_labels(const struct params *p, struct groups_request *r, struct profd_error *e);

/* Rows by ascending time and values, without those that have no uploads. If steps are shorter than an hour, an hourly
 * sum or a wider slice of a live process becomes a row of its own width, at its beginning. Everything lives in the
 * arena. *dimension: that of the seconds of all rows. LIMIT if a label pattern could not be decided; BAD_QUERY naming
 * the existing dimensions if the requested one is not among them. */
enum profd_status groups_add_up(const struct groups_request *request, struct arena *a, struct group_row **rows,
                                size_t *count, const char **dimension, struct profd_error *e);

#endif
