/* /api/v1/versions: the versions of each program, by the label `version`, in the order in which they appeared. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "core/buffer.h"
#include "core/sum.h"
#include "query/handlers.h"
#include "query/options.h"
#include "query/query.h"
#include "query/set.h"
#include "render/render.h"
#include "store/store.h"

#define PROGRAMS_A_PAGE                                                                                                \
    2000u /* builds of programs that one answer reads; one takes a tenth of a millisecond or more                      \
           */

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

static int compare_programs(const void *left, const void *right)
{
    const struct version_row *a = left, *b = right;
    const int order = strcmp(a->program, b->program);
    return order != 0 ? order : strcmp(a->build_id, b->build_id);
}

static enum profd_status read_program(struct versions *v, struct profd_error *e)
{
    struct store *s = v->job->store;
    const struct store_filter filter = {.build_id = v->programs[v->program].build_id,
                                        .as_program = true,
                                        .matcher_count = v->options.matcher_count,
                                        .matchers = v->options.matchers};
    enum profd_status status = store_each_upload(s, &v->options.visible, &filter, take_upload, v, e);
    return status == PROFD_OK ? store_pattern_judge(&filter, e) : status;
}

/* Reads builds of programs from that name on, until there are enough rows or PROGRAMS_A_PAGE builds were read; builds
 * of one name are read together, because their rows are sorted together. *next: the name to go on with, or NULL. */
static enum profd_status read_programs(struct versions *v, const char *name, unsigned long long rows, const char **next,
                                       struct profd_error *e)
{
    enum profd_status status = PROFD_OK;
    uint32_t first = 0;
    if (v->program_count > 0) {
        qsort(v->programs, v->program_count, sizeof *v->programs, compare_programs);
    }
    while (first < v->program_count && strcmp(v->programs[first].program, name) < 0) {
        first++;
    }
    *next = NULL;
    for (v->program = first; status == PROFD_OK && v->program < v->program_count; v->program++) {
        const char *at = v->programs[v->program].program;
        if (v->program > first && (v->count >= rows || v->program - first >= PROGRAMS_A_PAGE) &&
            strcmp(at, v->programs[v->program - 1].program) != 0) {
            *next = at;
            break;
        }
        status = read_program(v, e);
    }
    return status == PROFD_OK && v->failed ? profd_no_memory(e) : status;
}

/* A cursor is the number of rows of a program that were shown already, and its name. */
static enum profd_status parse_cursor(const struct params *p, unsigned long long *skip, const char **name,
                                      struct profd_error *e)
{
    const char *text = params_find(p, "cursor");
    char *end = NULL;
    *skip = 0;
    *name = "";
    if (text == NULL) {
        return PROFD_OK;
    }
    errno = 0;
    *skip = strtoull(text, &end, 10);
    if (text[0] < '0' || text[0] > '9' || *end != ':' || errno != 0) {
        return profd_error_set(e, PROFD_BAD_QUERY, "cursor=%.100s is not that of a page of versions", text);
    }
    *name = end + 1;
    return PROFD_OK;
}

static enum profd_status show_rows(struct versions *v, unsigned long long skip, unsigned long long limit,
                                   const char *next, struct profd_error *e)
{
    struct buffer cursor;
    if (v->count > 0) {
        qsort(v->rows, v->count, sizeof *v->rows, compare_rows);
    }
    const size_t first = skip < v->count ? (size_t)skip : v->count;
    const size_t n = v->count - first < limit ? v->count - first : (size_t)limit;
    unsigned long long shown = 0;
    if (first + n < v->count) {
        next = v->rows[first + n].program;
        for (size_t i = first + n; i > 0 && strcmp(v->rows[i - 1].program, next) == 0; i--) {
            shown++;
        }
    }
    buffer_init(&cursor, 65536);
    buffer_add_u64(&cursor, shown, 0);
    buffer_add_text(&cursor, ":");
    buffer_add(&cursor, next != NULL ? next : "", next != NULL ? strlen(next) + 1 : 1);
    enum profd_status status = cursor.failed ? profd_no_memory(e) : PROFD_OK;
    if (status == PROFD_OK) {
        render_versions(n > 0 ? v->rows + first : NULL, n, next != NULL ? cursor.data : NULL, &v->job->answer->body);
    }
    buffer_done(&cursor);
    return status;
}

enum profd_status versions_list(struct job *job, struct profd_error *e)
{
    const struct query_request *r = job->request;
    struct versions v = {.job = job};
    unsigned long long limit, skip = 0;
    const char *name, *next;
    bool fresh = false;
    enum profd_status status = job_parse_page(job, &limit, e);
    if (status == PROFD_OK) {
        status = parse_cursor(job->params, &skip, &name, e);
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
    status = store_each_build(job->store, &v.options.visible, "", SIZE_MAX / 2, take_build, &v, e);
    if (status == PROFD_OK && v.failed) {
        status = profd_no_memory(e);
    }
    if (status == PROFD_OK) {
        status = read_programs(&v, name, skip + limit, &next, e);
    }
    return status == PROFD_OK ? show_rows(&v, skip, limit, next, e) : status;
}
