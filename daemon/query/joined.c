/* /api/v1/functions: the functions of all programs with matching uploads, joined by name. */
#include <inttypes.h>
#include <nettle/sha2.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "query/handlers.h"
#include "query/joined_sum.h"
#include "query/subreport.h"
#include "query/query.h"
#include "query/work.h"

struct program {
    struct buildid id;
    const char *name;
    int64_t first_seen, last_seen;
};

struct asking {
    struct job *job;
    struct options options;
    unsigned long long limit, skip;
    const char *name; /* only functions with this text in their name; NULL: all */
    struct program *programs;
    uint32_t count, capacity;
    bool failed;
};

static enum profd_status no_memory(struct profd_error *e)
{
    return profd_error_set(e, PROFD_NO_MEMORY, "no memory to join functions");
}

/* Programs, if the window can hold anything of them. */
static bool take_build(void *context, const struct build_row *row)
{
    struct asking *q = context;
    const struct options *o = &q->options;
    if (!row->is_program || (o->until > 0 && row->first_seen >= o->until) ||
        (o->since > 0 && row->last_seen < o->since - INT64_C(3600000000000))) {
        return true;
    }
    struct program *grown = arena_extend(q->job->arena, q->programs, q->count, &q->capacity, sizeof *grown);
    if (grown == NULL) {
        q->failed = true;
        return false;
    }
    q->programs = grown;
    grown[q->count++] = (struct program){.id = row->build_id,
                                         .name = job_copy(q->job, row->name, &q->failed),
                                         .first_seen = row->first_seen,
                                         .last_seen = row->last_seen};
    return !q->failed;
}

static struct work work_of(const struct asking *q, const struct program *p)
{
    return (struct work){.options = q->options,
                         .id = p->id,
                         .name = p->name,
                         .is_program = true,
                         .first_seen = p->first_seen,
                         .last_seen = p->last_seen,
                         .scope = OPTIONS_SCOPE_PROGRAM};
}

/* Digest of the window. Where its edges come to lie depends on the program, so the digest covers the edges of each. */
static enum profd_status find_edges(struct asking *q, uint8_t digest[SHA256_DIGEST_SIZE], struct profd_error *e)
{
    struct sha256_ctx sha;
    enum profd_status status = PROFD_OK;
    bool moved;
    const int64_t window[2] = {q->options.since, q->options.until};
    sha256_init(&sha);
    sha256_update(&sha, sizeof window, (const uint8_t *)window);
    for (uint32_t i = 0; status == PROFD_OK && i < q->count && (q->options.since > 0 || q->options.until > 0); i++) {
        struct work w = work_of(q, &q->programs[i]);
        status = work_check_edges(q->job, &w, &moved, e);
        int64_t edges[2] = {w.used_since, w.used_until};
        sha256_update(&sha, sizeof edges, (const uint8_t *)edges);
    }
    sha256_digest(&sha, SHA256_DIGEST_SIZE, digest);
    return status;
}

static enum profd_status set_tag(struct asking *q, bool *fresh, struct profd_error *e)
{
    uint8_t digest[SHA256_DIGEST_SIZE];
    struct store_epoch epoch;
    enum profd_status status = store_epoch_all(q->job->store, &q->job->request->scope, &epoch, e);
    if (status == PROFD_OK) {
        status = store_each_build(q->job->store, &q->options.visible, "", SIZE_MAX / 2, take_build, q, e);
    }
    if (status == PROFD_OK && q->failed) {
        status = no_memory(e);
    }
    if (status == PROFD_OK) {
        status = find_edges(q, digest, e);
    }
    if (status != PROFD_OK) {
        return status;
    }
    *fresh = job_set_etag(q->job, digest, sizeof digest, &epoch);
    return status;
}

static void widen(int64_t *since, int64_t *until, const struct work *w, bool first)
{
    *since = first || w->used_since < *since ? w->used_since : *since;
    *until = first || w->used_until > *until ? w->used_until : *until;
}

static enum profd_status add_programs(struct asking *q, struct subreport *subreport, struct joined *j, int64_t edges[2],
                                      struct profd_error *e)
{
    enum profd_status status = PROFD_OK;
    for (uint32_t i = 0; status == PROFD_OK && i < q->count; i++) {
        struct work w = work_of(q, &q->programs[i]);
        status = subreport_load(subreport, &w, e);
        const struct provenance *from = &w.load.provenance;
        if (status != PROFD_OK || from->uploads == 0) {
            continue;
        }
        widen(&edges[0], &edges[1], &w, j->rest.programs == 0);
        j->rest.programs++;
        j->rest.uploads += from->uploads;
        j->rest.processes += from->processes;
        j->rest.inexact |= from->inexact;
        status = subreport_make(subreport, &w, e);
        if (status == PROFD_OK) {
            status = joined_add(j, w.report, subreport->job.arena, e);
        }
    }
    return status;
}

static int by_sort(const void *left, const void *right, void *context)
{
    const struct joined_row *a = left, *b = right;
    uint32_t sort = *(const uint32_t *)context;
    double x = sort == RENDER_SORT_TOTAL ? a->total : a->self, y = sort == RENDER_SORT_TOTAL ? b->total : b->self;
    int by_calls = a->calls > b->calls ? -1 : a->calls < b->calls;
    int by_time = x > y ? -1 : x < y ? 1 : a->self > b->self ? -1 : a->self < b->self;
    int order = sort == RENDER_SORT_CALLS && by_calls != 0 ? by_calls : by_time != 0 ? by_time : by_calls;
    if (order == 0) {
        order = strcmp(a->name, b->name);
    }
    return order != 0 ? order : strcmp(a->file, b->file);
}

static void show(struct asking *q, struct joined *j, const int64_t edges[2])
{
    static const char *const SORTS[] = {"", "self", "total", "calls"};
    uint32_t n = 0;
    char next[24] = "";
    for (uint32_t i = 0; i < j->names.count; i++) {
        if (q->name == NULL || strstr(j->rows[i].name, q->name) != NULL) {
            j->rows[n++] = j->rows[i];
        }
    }
    if (n > 0) {
        qsort_r(j->rows, n, sizeof *j->rows, by_sort, &q->options.show.sort);
    }
    size_t first = q->skip < n ? (size_t)q->skip : n, count = n - first < q->limit ? n - first : (size_t)q->limit;
    if (first + count < n) {
        snprintf(next, sizeof next, "%zu", first + count);
    }
    const struct render_joined out = {.rows = count > 0 ? j->rows + first : NULL,
                                      .row_count = count,
                                      .names = n,
                                      .next = next[0] != '\0' ? next : NULL,
                                      .sort = SORTS[q->options.show.sort],
                                      .dimension = subreport_dimension(&q->options),
                                      .rest = &j->rest,
                                      .since = edges[0],
                                      .until = edges[1],
                                      .short_names = q->options.show.short_names,
                                      .arena = q->job->arena};
    render_joined(&out, &q->job->answer->body);
}

static enum profd_status parse(struct asking *q, struct profd_error *e)
{
    const struct query_request *r = q->job->request;
    const struct params *p = q->job->params;
    const char *sort = params_find(p, "sort");
    enum profd_status status = job_parse_page(q->job, &q->limit, e);
    if (status == PROFD_OK) {
        status = params_parse_number(p, "cursor", 0, UINT32_MAX, &q->skip, e);
    }
    if (status == PROFD_OK) {
        status = options_parse(p, &r->scope, r->http, r->now, false, q->job->arena, &q->options, e);
    }
    if (status == PROFD_OK && sort != NULL && q->options.show.sort == RENDER_SORT_INDEX) {
        status = profd_error_set(e, PROFD_BAD_QUERY, "sort=%s is none of: self, total, calls", sort);
    }
    if (q->options.show.sort == RENDER_SORT_INDEX) {
        q->options.show.sort = RENDER_SORT_SELF;
    }
    q->name = params_find(p, "name");
    if (status == PROFD_OK && q->name != NULL && q->name[0] == '\0') {
        status = profd_error_set(e, PROFD_BAD_QUERY, "name= must say what to search for");
    }
    return status;
}

enum profd_status joined_list(struct job *job, struct profd_error *e)
{
    struct asking q = {.job = job};
    bool fresh = false;
    int64_t edges[2] = {0, 0};
    struct joined j;
    struct subreport subreport;
    enum profd_status status = parse(&q, e);
    if (status == PROFD_OK) {
        status = set_tag(&q, &fresh, e);
    }
    if (status != PROFD_OK || fresh) {
        return status;
    }
    joined_init(&j, job->arena);
    status = subreport_init(&subreport, job, e);
    if (status == PROFD_OK) {
        status = add_programs(&q, &subreport, &j, edges, e);
    }
    subreport_done(&subreport);
    if (status == PROFD_OK) {
        show(&q, &j, edges);
    }
    return status;
}
