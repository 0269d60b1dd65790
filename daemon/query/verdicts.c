/* /api/v1/verdicts: what the watch list says of new versions. */
#include <inttypes.h>
#include <nettle/sha2.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "query/handlers.h"
#include "query/query.h"
#include "query/when.h"
#include "render/render.h"
#include "store/store.h"

struct verdicts {
    struct job *job;
    unsigned long long limit, skip; /* rows of the page, and before it */
    int64_t since, until;
    struct verdict_row *rows;
    uint32_t count, capacity;
    struct sha256_ctx sha;
    bool failed;
};

static bool take_row(void *context, const struct store_watch_row *row)
{
    struct verdicts *v = context;
    if (row->changed < v->since || (v->until > 0 && row->changed >= v->until)) {
        return true;
    }
    struct verdict_row *rows = arena_extend(v->job->arena, v->rows, v->count, &v->capacity, sizeof *rows);
    if (rows == NULL) {
        v->failed = true;
        return false;
    }
    v->rows = rows;
    rows[v->count++] =
        (struct verdict_row){.changed = row->changed, .document = job_copy(v->job, row->document, &v->failed)};
    sha256_update(&v->sha, sizeof row->changed, (const uint8_t *)&row->changed);
    sha256_update(&v->sha, strlen(row->document) + 1, (const uint8_t *)row->document);
    return !v->failed;
}

static int compare_rows(const void *left, const void *right)
{
    const struct verdict_row *a = left, *b = right;
    return a->changed != b->changed ? (a->changed < b->changed) - (a->changed > b->changed)
                                    : strcmp(a->document, b->document);
}

static enum profd_status parse(struct verdicts *v, bool *annotations, struct profd_error *e)
{
    const struct params *p = v->job->params;
    const char *format = params_find(p, "format");
    if (!v->job->request->scope.all) {
        return profd_error_set(e, PROFD_FORBIDDEN,
                               "verdicts are of the data of all users; only users who may read all profiles may read "
                               "them");
    }
    *annotations = format != NULL && strcmp(format, "annotations") == 0;
    if (format != NULL && !*annotations && strcmp(format, "json") != 0) {
        return profd_error_set(e, PROFD_BAD_QUERY, "format=%.80s is none of: json, annotations", format);
    }
    enum profd_status status = job_parse_whole(v->job, &v->limit, e);
    if (status == PROFD_OK) {
        status = params_parse_number(p, "cursor", 0, UINT32_MAX, &v->skip, e);
    }
    if (status != PROFD_OK) {
        return status;
    }
    return when_parse_window(params_find(p, "since"), params_find(p, "until"), v->job->request->now, &v->since,
                             &v->until, e);
}

/* The page that was asked for. */
static void render_page(const struct verdicts *v, bool annotations)
{
    struct buffer *out = &v->job->answer->body;
    const uint32_t from = v->skip < v->count ? (uint32_t)v->skip : v->count;
    const bool more = v->count - from > v->limit;
    const uint32_t n = more ? (uint32_t)v->limit : v->count - from;
    char next[24] = "";
    (void)snprintf(next, sizeof next, "%" PRIu32, from + n);
    if (annotations) {
        render_annotations(v->rows + from, n, out);
    } else {
        render_verdicts(v->rows + from, n, more ? next : NULL, out);
    }
}

enum profd_status verdicts_list(struct job *job, struct profd_error *e)
{
    struct verdicts v = {.job = job};
    struct store_epoch epoch;
    uint8_t digest[SHA256_DIGEST_SIZE];
    bool annotations = false;
    enum profd_status status = parse(&v, &annotations, e);
    sha256_init(&v.sha);
    if (status == PROFD_OK) {
        status = store_epoch_all(job->store, &job->request->scope, &epoch, e);
    }
    if (status == PROFD_OK) {
        status = store_each_watch_row(job->store, STORE_WATCH_VERDICT, take_row, &v, e);
    }
    if (status == PROFD_OK && v.failed) {
        status = profd_no_memory(e);
    }
    sha256_digest(&v.sha, sizeof digest, digest);
    if (status != PROFD_OK || job_set_etag(job, digest, sizeof digest, &epoch)) {
        return status;
    }
    if (v.count > 0) {
        qsort(v.rows, v.count, sizeof *v.rows, compare_rows);
    }
    render_page(&v, annotations);
    return status;
}
