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

/* Builds of programs that one answer reads; one takes a tenth of a millisecond or more. */
#define PROGRAMS_A_PAGE 2000u

struct versions {
    struct job *job;
    struct options options;
    struct version_row *programs; /* id and name only */
    struct version_row *rows;
    uint32_t program_count, program_capacity, count, capacity;
    uint32_t program; /* of which uploads are read */
    struct set known; /* build-id NUL version NUL */
    struct buffer key;
};

static bool take_build(void *context, const struct build_row *row)
{
    struct versions *v = context;
    ARENA_BOUNDARY(v->job->arena, false);
    if (!row->is_program) {
        return true;
    }
    v->programs = arena_extend(v->job->arena, v->programs, v->program_count, &v->program_capacity, sizeof *v->programs);
    v->programs[v->program_count++] =
        (struct version_row){.build_id = job_copy(v->job, row->build_id.text), .program = job_copy(v->job, row->name)};
    return true;
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
static struct version_row *find_row(struct versions *v, const char *version)
{
    const struct version_row *program = &v->programs[v->program];
    bool added = false;
    v->key.size = 0;
    buffer_add(&v->key, program->build_id, strlen(program->build_id) + 1);
    buffer_add(&v->key, version, strlen(version) + 1);
    const uint32_t number = set_add(&v->known, v->key.data, v->key.size, &added);
    if (added) {
        v->rows = arena_extend(v->job->arena, v->rows, v->count, &v->capacity, sizeof *v->rows);
        v->rows[v->count] = *program;
        v->rows[v->count++].version = job_copy(v->job, version);
    }
    return &v->rows[number];
}

static enum profd_status take_upload(void *context, const struct store_row *row, struct profd_error *e)
{
    struct versions *v = context;
    bool saturated = false;
    ARENA_BOUNDARY(v->job->arena, profd_no_memory(e));
    struct version_row *r = find_row(v, find_version(row));
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
                                        .metadata = true,
                                        .matcher_count = v->options.matcher_count,
                                        .matchers = v->options.matchers};
    TRY(store_each_upload(s, &v->options.visible, &filter, take_upload, v, e));
    return store_pattern_judge(&filter, e);
}

/* Reads builds of programs from that place on, until there are enough rows or PROGRAMS_A_PAGE builds were read; builds
 * of one name are read together, because their rows are sorted together. *next: the place to go on with. */
static enum profd_status read_programs(struct versions *v, unsigned long long first, unsigned long long rows,
                                       uint32_t *next, struct profd_error *e)
{
    enum profd_status status = PROFD_OK;
    if (v->program_count > 0) {
        qsort(v->programs, v->program_count, sizeof *v->programs, compare_programs);
    }
    v->program = first < v->program_count ? (uint32_t)first : v->program_count;
    for (uint32_t n = 0; status == PROFD_OK && v->program < v->program_count; n++, v->program++) {
        if (n > 0 && (v->count >= rows || n >= PROGRAMS_A_PAGE) &&
            strcmp(v->programs[v->program].program, v->programs[v->program - 1].program) != 0) {
            break;
        }
        status = read_program(v, e);
    }
    *next = v->program;
    return status;
}

/* A cursor is the place of a program among all by name, and the number of its rows that were shown already. */
static enum profd_status parse_cursor(const struct params *p, unsigned long long place[2], struct profd_error *e)
{
    const char *text = params_find(p, "cursor");
    place[0] = place[1] = 0;
    if (text == NULL) {
        return PROFD_OK;
    }
    const size_t first = strspn(text, "0123456789");
    const size_t second = text[first] == '-' ? strspn(text + first + 1, "0123456789") : 0;
    if (first > 0 && second > 0 && strlen(text) == first + 1 + second && strlen(text) < 20) {
        place[0] = strtoull(text, NULL, 10);
        place[1] = strtoull(text + first + 1, NULL, 10);
        return PROFD_OK;
    }
    return profd_error_set(e, PROFD_BAD_QUERY, "cursor=%.100s is not that of a page of versions", text);
}

static void show_rows(struct versions *v, unsigned long long skip, unsigned long long limit, uint32_t next)
{
    char cursor[48];
    if (v->count > 0) {
        qsort(v->rows, v->count, sizeof *v->rows, compare_rows);
    }
    const size_t first = skip < v->count ? (size_t)skip : v->count;
    const size_t n = v->count - first < limit ? v->count - first : (size_t)limit;
    size_t shown = 0;
    if (first + n < v->count) { /* on with the program of this row, and its rows that were shown */
        const char *name = v->rows[first + n].program;
        for (next = 0; strcmp(v->programs[next].program, name) != 0;) {
            next++;
        }
        while (shown < first + n && strcmp(v->rows[first + n - shown - 1].program, name) == 0) {
            shown++;
        }
    }
    (void)snprintf(cursor, sizeof cursor, "%u-%zu", next, shown);
    render_versions(n > 0 ? v->rows + first : NULL, n, next < v->program_count ? cursor : NULL, &v->job->answer->body);
}

enum profd_status versions_list(struct job *job, struct profd_error *e)
{
    const struct query_request *r = job->request;
    struct versions v = {.job = job};
    unsigned long long limit, place[2];
    uint32_t next;
    bool fresh = false;
    enum profd_status status = job_parse_page(job, &limit, e);
    if (status == PROFD_OK) {
        status = parse_cursor(job->params, place, e);
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
    buffer_init_arena(&v.key, job->arena);
    status = store_each_build(job->store, &v.options.visible, "", SIZE_MAX / 2, take_build, &v, e);
    arena_continue(job->arena);
    if (status == PROFD_OK) {
        status = read_programs(&v, place[0], place[1] + limit, &next, e);
    }
    if (status == PROFD_OK) {
        show_rows(&v, place[1], limit, next);
    }
    return status;
}
