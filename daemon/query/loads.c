/* /api/v1/load: CPU time by steps, and values of labels, of all builds with uploads in a window. One answer for the
 * small pictures of a whole list. */
#include <stdlib.h>
#include <string.h>

#include "core/report_dimension.h"
#include "query/groups_sum.h"
#include "query/handlers.h"
#include "query/query.h"
#include "query/steps.h"
#include "query/work.h"
#include "render/render.h"
#include "store/store.h"

#define STEPS_USUAL 24
#define STEPS_MOST 400u /* of a row */
#define VALUES_MOST 32u /* of a label in a row */

struct loads {
    struct job *job;
    struct groups_request request; /* step and labels of all */
    int64_t begin;                 /* of the first step */
    size_t step_count;
    unsigned long long limit;
    const char **ids; /* builds of the page, and one more if there is one */
    size_t id_count;
    struct load_row *rows;
    size_t row_count;
};

static bool take_build(void *context, const struct build_row *row)
{
    struct loads *l = context;
    ARENA_BOUNDARY(l->job->arena, false);
    l->ids[l->id_count++] = job_copy(l->job, row->build_id.text);
    return true;
}

static int compare_texts(const void *a, const void *b)
{
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

/* The different values of a label that are not empty, ascending, ended by NULL. */
static const char *const *find_values(struct loads *l, const struct group_row *rows, size_t n, size_t label)
{
    const char **values = ARENA_ARRAY(l->job->arena, n + 1, const char *);
    size_t count = 0, kept = 0;
    for (size_t i = 0; i < n; i++) {
        if (rows[i].values[label][0] != '\0') {
            values[count++] = rows[i].values[label];
        }
    }
    qsort(values, count, sizeof *values, compare_texts);
    for (size_t i = 0; i < count && kept < VALUES_MOST; i++) {
        if (kept == 0 || strcmp(values[kept - 1], values[i]) != 0) {
            values[kept++] = values[i];
        }
    }
    values[kept] = NULL;
    return values;
}

static void add_row(struct loads *l, const char *id, const char *dimension, const struct group_row *rows, size_t n)
{
    struct load_row *out = &l->rows[l->row_count];
    const char *const **values = ARENA_ARRAY(l->job->arena, l->request.label_count + 1, const char *const *);
    *out = (struct load_row){.build_id = id, .dimension = dimension, .values = values};
    out->seconds = ARENA_ARRAY(l->job->arena, l->step_count + 1, double);
    memset(out->seconds, 0, (l->step_count + 1) * sizeof *out->seconds);
    for (size_t i = 0; i < n; i++) {
        const int64_t at = (rows[i].time - l->begin) / l->request.step;
        if (rows[i].time < l->begin) {
            continue; /* rows of whole steps: of one before the first */
        }
        out->seconds[at < (int64_t)l->step_count ? (size_t)at : l->step_count - 1] += rows[i].seconds;
        out->hosts = rows[i].hosts > out->hosts ? rows[i].hosts : out->hosts;
    }
    for (size_t k = 0; k < l->request.label_count; k++) {
        values[k] = find_values(l, rows, n, k);
    }
    l->row_count += n > 0;
}

static enum profd_status add_build(struct loads *l, const char *id, struct profd_error *e)
{
    struct work w;
    struct group_row *rows = NULL;
    size_t n = 0;
    const char *dimension = REPORT_DIMENSION_USUAL;
    struct groups_request r = l->request;
    TRY(work_find(l->job, l->job->params, id, false, &w, e));
    w.options.since = w.options.since > l->begin ? w.options.since : l->begin;
    TRY(steps_find_span(&w, r.step, &r.begin, &r.end, e));
    if (r.begin >= r.end) {
        return PROFD_OK;
    }
    r.scope = w.options.visible;
    r.filter = work_make_filter(&w);
    r.dimension = w.options.dimension;
    r.alone = w.scope != OPTIONS_SCOPE_PROGRAM;
    TRY(groups_add_up(&r, l->job->arena, &rows, &n, &dimension, e));
    add_row(l, id, dimension, rows, n);
    return PROFD_OK;
}

/* The window as whole steps: the last day, if nothing is said. */
static enum profd_status find_steps(struct loads *l, int64_t resolved[3], struct profd_error *e)
{
    struct job *job = l->job;
    const struct query_request *q = job->request;
    struct options o;
    const int64_t step = l->request.step;
    TRY(options_parse(job->params, &q->scope, q->http, q->now, false, job->arena, &o, e));
    const int64_t until = o.until > 0 ? o.until : q->now + 1;
    const int64_t since = o.since > 0 ? o.since : until - (STEPS_USUAL - 1) * step;
    l->begin = since - since % step;
    const int64_t steps = until > l->begin ? (until - l->begin + step - 1) / step : 0;
    if (steps < 1 || steps > STEPS_MOST) {
        return profd_error_set(e, PROFD_BAD_QUERY,
                               "%lld steps, which is not between 1 and %u; use another step= or time range",
                               (long long)steps, STEPS_MOST);
    }
    l->step_count = (size_t)steps;
    resolved[0] = l->begin;
    resolved[1] = steps;
    resolved[2] = o.until;
    return PROFD_OK;
}

static enum profd_status parse(struct loads *l, struct buildid *after, bool *fresh, struct profd_error *e)
{
    struct job *job = l->job;
    int64_t resolved[3] = {0};
    struct store_epoch epoch;
    const char *cursor = params_find(job->params, "cursor");
    TRY(job_parse_page(job, &l->limit, e));
    if (cursor != NULL && buildid_parse(cursor, strlen(cursor), after, NULL) != PROFD_OK) {
        return profd_error_set(e, PROFD_BAD_QUERY, "cursor=%s is not a cursor from a list", cursor);
    }
    TRY(steps_parse(job, STEPS_HOUR, &l->request.step, e));
    if (l->request.step < STEPS_HOUR) {
        return profd_error_set(e, PROFD_BAD_QUERY, "step=%s is shorter than 1h", params_find(job->params, "step"));
    }
    TRY(groups_parse_labels(job->params, &l->request, e));
    TRY(find_steps(l, resolved, e));
    TRY(store_epoch_all(job->store, &job->request->scope, &epoch, e));
    *fresh = job_set_etag(job, resolved, sizeof resolved, &epoch);
    return PROFD_OK;
}

enum profd_status loads_list(struct job *job, struct profd_error *e)
{
    struct loads l = {.job = job, .request = {.store = job->store}, .limit = LIMIT_PAGE_DEFAULT};
    struct buildid after = {""};
    bool fresh = false;
    enum profd_status status = parse(&l, &after, &fresh, e);
    if (status != PROFD_OK || fresh) {
        return status;
    }
    l.ids = ARENA_ARRAY(job->arena, l.limit + 1, const char *);
    l.rows = ARENA_ARRAY(job->arena, l.limit + 1, struct load_row);
    status = store_each_build(job->store, &job->request->scope, after.text, l.limit + 1, take_build, &l, e);
    arena_continue(job->arena);
    const size_t n = l.id_count > l.limit ? (size_t)l.limit : l.id_count;
    for (size_t i = 0; status == PROFD_OK && i < n; i++) {
        status = add_build(&l, l.ids[i], e);
    }
    if (status == PROFD_OK) {
        const struct render_loads loads = {l.request.labels, l.request.label_count,
                                           l.request.step,   l.begin,
                                           l.step_count,     l.rows,
                                           l.row_count,      l.id_count > n ? l.ids[n - 1] : NULL};
        render_loads(&loads, &job->answer->body);
    }
    return status;
}
