/* /api/v1/builds/{id}/functions/{address}/series: one function over time, each step a report of its own. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "query/function.h"
#include "query/handlers.h"
#include "query/query.h"
#include "query/steps.h"
#include "query/subreport.h"
#include "query/work.h"

/* A whole report, computed for the sake of a part of it. */
static enum profd_status make_report(struct job *job, struct work *w, bool *fresh, struct profd_error *e)
{
    TRY(work_begin(job, false, w, fresh, e));
    if (*fresh) {
        return PROFD_OK;
    }
    TRY(work_load(job, w, false, e));
    TRY(work_find_objects(job, w, e));
    return work_build_report(job, w, e);
}

enum profd_status function_show(struct job *job, struct profd_error *e)
{
    struct work w;
    bool fresh = false;
    uint32_t found = 0;
    const char *build = params_find(job->params, "build_id");
    TRY(make_report(job, &w, &fresh, e));
    if (fresh) {
        return PROFD_OK;
    }
    struct render_input in = work_make_input(&w);
    in.show.limit = 0;
    build = build != NULL ? build : w.id.text;
    TRY(function_find(w.report, build, job->params->segments[5], &found, e));
    in.only = found + 1;
    return render_report(w.options.format, &in, job->arena, &job->answer->body, e);
}

/* Positions of matching functions after index after, in index order; *more: the limit cut them. */
static size_t find_functions(const struct report *r, const char *name, unsigned long long after, size_t limit,
                             uint32_t *found, bool *more)
{
    size_t n = 0;
    *more = false;
    for (uint32_t i = 0; i < r->order_count && !*more; i++) {
        uint32_t at = r->order[i];
        const struct report_function *f = at & REPORT_CYCLE ? NULL : &r->functions[at];
        if (f == NULL || f->index <= after || (strstr(f->name, name) == NULL && strstr(f->raw, name) == NULL)) {
            continue;
        }
        if (n == limit) {
            *more = true;
        } else {
            found[n++] = at;
        }
    }
    return n;
}

enum profd_status function_search(struct job *job, struct profd_error *e)
{
    struct work w;
    bool fresh = false, more;
    const char *name = params_find(job->params, "name");
    unsigned long long limit, after = 0;
    char next[16] = "";
    if (name == NULL || name[0] == '\0') {
        return profd_error_set(e, PROFD_BAD_QUERY, "name= must say what to search for");
    }
    TRY(job_parse_page(job, &limit, e));
    TRY(params_parse_number(job->params, "cursor", 0, UINT32_MAX, &after, e));
    TRY(make_report(job, &w, &fresh, e));
    if (fresh) {
        return PROFD_OK;
    }
    uint32_t *found = ARENA_ARRAY(job->arena, limit, uint32_t);
    size_t n = find_functions(w.report, name, after, limit, found, &more);
    if (more) {
        snprintf(next, sizeof next, "%" PRIu32, w.report->functions[found[n - 1]].index);
    }
    render_functions(w.report, found, n, more ? next : NULL, &job->answer->body);
    return PROFD_OK;
}

struct series {
    struct job *job;
    struct work *whole; /* the question: its window is the union of the steps */
    struct subreport subreport;
    const char *build; /* the function's */
    uint64_t address;
    int64_t step, begin, end;
    struct series_row *rows;
    uint32_t count, capacity;
    struct render_series head; /* what is known of the function so far */
};

/* What a report says of the function; zeros if the function is not in the report. */
static void describe(struct series *s, const struct work *w, struct series_row *row)
{
    const struct report *r = w->report;
    for (uint32_t i = 0; i < r->function_count; i++) {
        const struct report_function *f = &r->functions[i];
        if (!function_holds(r, f, s->build, s->address)) {
            continue;
        }
        row->self = f->self;
        row->children = f->children;
        row->calls = f->calls;
        row->self_calls = f->self_calls;
        row->cycle = f->cycle;
        if (f->measured != NULL) {
            row->is_measured = true;
            row->measured = *f->measured;
        }
        if (s->head.name == NULL) {
            s->head.name = arena_copy(s->job->arena, f->name, strlen(f->name));
            s->head.address = f->address;
        }
        return;
    }
}

/* The report of [since, until), at the resolution of the stored data: a row of *width from *time, if there is an
 * upload. */
static enum profd_status add_step(struct series *s, int64_t time, int64_t since, int64_t until, int64_t *used_until,
                                  struct profd_error *e)
{
    struct work w = *s->whole;
    w.options.since = since > 0 ? since : 1;
    w.options.until = until;
    TRY(subreport_load(&s->subreport, &w, e));
    *used_until = w.used_until > until ? w.used_until : until;
    if (w.load.provenance.uploads == 0) {
        return PROFD_OK;
    }
    TRY(subreport_make(&s->subreport, &w, e));
    struct series_row row = {.time = time,
                             .width = s->step,
                             .uploads = w.load.provenance.uploads,
                             .processes = w.load.provenance.processes,
                             .inexact = w.load.provenance.inexact,
                             .seconds = w.report->total,
                             .has_stacks = w.report->stacks != NULL,
                             .time_measured = w.report->time_measured};
    if (w.used_until > time + s->step ||
        w.used_since < time) { /* inside an hour that is one sum by now, or a slice of a live process */
        row.time = w.used_since;
        row.width = w.used_until - w.used_since;
    }
    describe(s, &w, &row);
    s->rows = arena_extend(s->job->arena, s->rows, s->count, &s->capacity, sizeof *s->rows);
    s->rows[s->count++] = row;
    return PROFD_OK;
}

/* Uploads may become sums while the steps are gone through; then edges move outward, and two steps may have counted one
 * upload. */
static enum profd_status add_up(struct series *s, struct profd_error *e)
{
    bool overlap = true;
    while (overlap) {
        s->count = 0;
        overlap = false;
        const struct options *o = &s->whole->options;
        int64_t used_until = 0;
        for (int64_t time = s->begin - s->begin % s->step; time < s->end; time += s->step) {
            int64_t since = time > o->since ? time : o->since, until = time + s->step;
            if (used_until > time) {
                since = used_until; /* its beginning is in the row before, with the rest of its hour or slice */
            }
            if (o->until > 0 && o->until < until) {
                until = o->until;
            }
            if (since < until) {
                TRY(add_step(s, time, since, until, &used_until, e));
            }
        }
        for (uint32_t i = 1; i < s->count; i++) {
            overlap |= s->rows[i].time < s->rows[i - 1].time + s->rows[i - 1].width;
        }
    }
    return PROFD_OK;
}

static enum profd_status show(struct series *s, struct profd_error *e)
{
    subreport_init(&s->subreport, s->job);
    if (s->begin < s->end) {
        struct work any = *s->whole;
        any.options.since = 1; /* a step is never all there is */
        TRY(work_load_ever(s->job, &any, &s->subreport.ever, e));
    }
    TRY(add_up(s, e));
    if (s->count > 0 && s->head.name == NULL) {
        return profd_error_set(e, PROFD_NOT_FOUND, "no function of build %s at 0x%" PRIx64 " is in these reports",
                               s->build, s->address);
    }
    s->head.rows = s->rows;
    s->head.row_count = s->count;
    s->head.build_id = s->build;
    s->head.dimension = subreport_dimension(&s->whole->options);
    s->head.step = s->step;
    s->head.since = s->whole->used_since;
    s->head.until = s->whole->used_until;
    s->head.address = s->head.name != NULL ? s->head.address : s->address;
    render_series(&s->head, &s->job->answer->body);
    return PROFD_OK;
}

/* The address of the function that the path names. */
static enum profd_status find_named(struct job *job, const char *build, uint64_t *address, bool *fresh,
                                    struct profd_error *e)
{
    struct work w;
    uint32_t found = 0;
    TRY(make_report(job, &w, fresh, e));
    if (!*fresh) {
        TRY(function_find(w.report, build != NULL ? build : w.id.text, job->params->segments[5], &found, e));
        *address = w.report->functions[found].address;
    }
    return PROFD_OK;
}

enum profd_status series_show(struct job *job, struct profd_error *e)
{
    struct work w;
    struct series s = {.job = job, .whole = &w};
    bool fresh = false;
    const char *build = params_find(job->params, "build_id");
    TRY(steps_parse(job, STEPS_HOUR, &s.step, e));
    if (!function_parse_address(job->params->segments[5], &s.address)) {
        TRY(find_named(job, build, &s.address, &fresh, e));
    }
    if (fresh) {
        return PROFD_OK;
    }
    TRY(work_begin(job, false, &w, &fresh, e));
    if (fresh) {
        return PROFD_OK;
    }
    TRY(steps_find_span(&w, s.step, &s.begin, &s.end, e));
    s.build = build != NULL ? build : w.id.text;
    return show(&s, e);
}
