/* /api/v1/versions: the versions of each program, by the label `version`, in the order in which they appeared. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/sum.h"
#include "query/handlers.h"
#include "query/options.h"
#include "query/query.h"
#include "query/set.h"
#include "render/render.h"
#include "store/store.h"

struct versions {
    struct job *job;
    struct options options;
    struct version_row *programs; /* id and name only */
    struct version_row *rows;
    uint32_t program_count, program_capacity, count, capacity;
    uint32_t program; /* of which uploads are read */
    struct set known; /* build-id NUL version NUL */
    bool failed;
};

static bool take_build(void *context, const struct build_row *row)
{
    struct versions *v = context;
    if (!row->is_program) {
        return true;
    }
    struct version_row *grown =
        arena_extend(v->job->arena, v->programs, v->program_count, &v->program_capacity, sizeof *grown);
    if (grown == NULL) {
        v->failed = true;
        return false;
    }
    v->programs = grown;
    grown[v->program_count++] = (struct version_row){.build_id = job_copy(v->job, row->build_id.text, &v->failed),
                                                     .program = job_copy(v->job, row->name, &v->failed)};
    return !v->failed;
}

static const char *find_version(const struct store_row *row)
{
    for (size_t i = 0; i < row->label_count; i++) {
        if (strcmp(row->labels[i].name, "version") == 0) {
            return row->labels[i].value;
        }
    }
    return "";
}

/* The row of a version of the program that is read. */
static enum profd_status find_row(struct versions *v, const char *version, struct version_row **out)
{
    const struct version_row *program = &v->programs[v->program];
    uint32_t number = 0;
    bool added = false;
    struct buffer key;
    buffer_init(&key, 65536);
    buffer_add(&key, program->build_id, strlen(program->build_id) + 1);
    buffer_add(&key, version, strlen(version) + 1);
    enum profd_status status = key.failed ? PROFD_NO_MEMORY : set_add(&v->known, key.data, key.size, &number, &added);
    buffer_done(&key);
    if (status != PROFD_OK) {
        return status;
    }
    if (added) {
        struct version_row *grown = arena_extend(v->job->arena, v->rows, v->count, &v->capacity, sizeof *grown);
        if (grown == NULL) {
            return PROFD_NO_MEMORY;
        }
        v->rows = grown;
        grown[v->count] = *program;
        grown[v->count++].version = job_copy(v->job, version, &v->failed);
    }
    *out = &v->rows[number];
    return v->failed ? PROFD_NO_MEMORY : PROFD_OK;
}

static enum profd_status take_upload(void *context, const struct store_row *row, struct profd_error *e)
{
    struct version_row *r;
    bool saturated = false;
    enum profd_status status = find_row(context, find_version(row), &r);
    if (status != PROFD_OK) {
        return profd_error_set(e, status, "no memory for a list of versions");
    }
    r->first = r->uploads == 0 || row->start < r->first ? row->start : r->first;
    r->last = r->uploads == 0 || row->end > r->last ? row->end : r->last;
    sum_add(&r->uploads, row->uploads, &saturated);
    return PROFD_OK;
}

static int compare_rows(const void *left, const void *right)
{
    const struct version_row *a = left, *b = right;
    int order = strcmp(a->program, b->program);
    order = order != 0 ? order : (a->first > b->first) - (a->first < b->first);
    order = order != 0 ? order : strcmp(a->version, b->version);
    return order != 0 ? order : strcmp(a->build_id, b->build_id);
}

static enum profd_status read_programs(struct versions *v, struct profd_error *e)
{
    struct store *s = v->job->store;
    enum profd_status status = store_each_build(s, &v->options.visible, "", SIZE_MAX / 2, take_build, v, e);
    for (v->program = 0; status == PROFD_OK && !v->failed && v->program < v->program_count; v->program++) {
        const struct store_filter filter = {.build_id = v->programs[v->program].build_id,
                                            .as_program = true,
                                            .matcher_count = v->options.matcher_count,
                                            .matchers = v->options.matchers};
        status = store_each_upload(s, &v->options.visible, &filter, take_upload, v, e);
        if (status == PROFD_OK) {
            status = store_pattern_judge(&filter, e);
        }
    }
    return status == PROFD_OK && v->failed ? profd_no_memory(e) : status;
}

enum profd_status versions_list(struct job *job, struct profd_error *e)
{
    const struct query_request *r = job->request;
    struct versions v = {.job = job};
    unsigned long long limit, skip = 0;
    bool fresh = false;
    char next[24];
    enum profd_status status = job_parse_page(job, &limit, e);
    if (status == PROFD_OK) {
        status = params_parse_number(job->params, "cursor", 0, UINT32_MAX, &skip, e);
    }
    if (status == PROFD_OK) {
        status = options_parse(job->params, &r->scope, r->http, r->now, false, job->arena, &v.options, e);
    }
    if (status == PROFD_OK) {
        status = job_set_list_etag(job, &fresh, e);
    }
    if (status != PROFD_OK || fresh) {
        return status;
    }
    set_init(&v.known, job->arena);
    status = read_programs(&v, e);
    if (status == PROFD_OK) {
        if (v.count > 0) {
            qsort(v.rows, v.count, sizeof *v.rows, compare_rows);
        }
        const size_t first = skip < v.count ? (size_t)skip : v.count;
        const size_t n = v.count - first < limit ? v.count - first : (size_t)limit;
        (void)snprintf(next, sizeof next, "%zu", first + n);
        render_versions(n > 0 ? v.rows + first : NULL, n, first + n < v.count ? next : NULL, &job->answer->body);
    }
    return status;
}
