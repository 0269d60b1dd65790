/* /api/v1/builds/{id}/groups: uploads by the values of labels, by time, or both. */
#include "query/groups_sum.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "core/report_dimension.h"
#include "query/handlers.h"
#include "query/query.h"
#include "query/steps.h"
#include "query/work.h"
#include "render/render.h"

#define SECOND INT64_C(1000000000)

/* The cursor of a page: time, width and values of its last row. Backslashes and slashes in values are escaped by
 * backslashes. */
static const char *make_cursor(const struct group_row *row, size_t labels, struct arena *a)
{
    size_t size = 64;
    for (size_t i = 0; i < labels; i++) {
        size += 1 + 2 * strlen(row->values[i]);
    }
    char *cursor = arena_take(a, size), *p = cursor;
    p += snprintf(p, 64, "%" PRId64 ".%" PRId64, row->time / SECOND, row->width / SECOND);
    for (size_t i = 0; i < labels; i++) {
        *p++ = '/';
        for (const char *c = row->values[i]; *c != '\0'; c++) {
            if (*c == '/' || *c == '\\') {
                *p++ = '\\';
            }
            *p++ = *c;
        }
    }
    return cursor;
}

/* The first row after the cursor's. There are few rows compared with the uploads that were read for them. */
static enum profd_status find_page(const struct job *job, const struct group_row *rows, size_t n, size_t labels,
                                   size_t *first, struct profd_error *e)
{
    const char *cursor = params_find(job->params, "cursor");
    *first = 0;
    for (size_t i = 0; cursor != NULL && i < n; i++) {
        const char *other = make_cursor(&rows[i], labels, job->arena);
        if (strcmp(cursor, other) == 0) {
            *first = i + 1;
            return PROFD_OK;
        }
    }
    return cursor == NULL ? PROFD_OK
                          : profd_error_set(e, PROFD_BAD_QUERY,
                                            "cursor=%s is not a cursor from this list, or its row no longer exists; "
                                            "start again without cursor=",
                                            cursor);
}

static enum profd_status show(struct job *job, const struct groups_request *r, struct work *w, size_t limit,
                              struct profd_error *e)
{
    struct group_row *rows = NULL;
    size_t n = 0, first;
    const char *next = NULL, *dimension = r->dimension != NULL ? r->dimension : REPORT_DIMENSION_USUAL;
    bool moved = r->step == 0 || r->begin < r->end;
    while (moved) {
        TRY(groups_add_up(r, job->arena, &rows, &n, &dimension, e));
        TRY(work_check_edges(job, w, &moved, e));
    }
    TRY(find_page(job, rows, n, r->label_count, &first, e));
    size_t count = n - first < limit ? n - first : limit;
    if (first + count < n) {
        next = make_cursor(&rows[first + count - 1], r->label_count, job->arena);
    }
    const struct render_groups groups = {r->labels,     r->label_count, r->step,
                                         w->used_since, w->used_until,  count > 0 ? rows + first : NULL,
                                         count,         next,           dimension};
    render_groups(&groups, &job->answer->body);
    return PROFD_OK;
}

enum profd_status groups_show(struct job *job, struct profd_error *e)
{
    struct work w;
    struct groups_request r = {.store = job->store};
    bool fresh = false;
    unsigned long long limit = LIMIT_PAGE_DEFAULT;
    TRY(job_parse_page(job, &limit, e));
    TRY(steps_parse(job, 0, &r.step, e));
    TRY(groups_parse_labels(job->params, &r, e));
    TRY(work_begin(job, false, &w, &fresh, e));
    if (fresh) {
        return PROFD_OK;
    }
    TRY(steps_find_span(&w, r.step, &r.begin, &r.end, e));
    r.scope = w.options.visible;
    r.filter = work_make_filter(&w);
    r.dimension = w.options.dimension;
    r.alone = w.scope != OPTIONS_SCOPE_PROGRAM;
    return show(job, &r, &w, limit, e);
}
