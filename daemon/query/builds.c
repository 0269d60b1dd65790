/* /api/v1/builds and /api/v1/builds/{id} */
#include <stdlib.h>
#include <string.h>

#include "query/handlers.h"
#include "query/query.h"
#include "render/render.h"
#include "store/store.h"

struct build_page {
    struct job *job;
    struct build_row *rows;
    size_t count;
};

static struct build_row copy_row(struct job *job, const struct build_row *row)
{
    struct build_row copy = *row;
    copy.name = job_copy(job, row->name);
    copy.note = job_copy(job, row->note);
    return copy;
}

static bool take_build(void *context, const struct build_row *row)
{
    struct build_page *page = context;
    ARENA_BOUNDARY(page->job->arena, false);
    page->rows[page->count++] = copy_row(page->job, row);
    return true;
}

enum profd_status builds_list(struct job *job, struct profd_error *e)
{
    unsigned long long limit;
    bool fresh;
    struct buildid after = {""};
    const char *cursor = params_find(job->params, "cursor");
    enum profd_status status = job_parse_page(job, &limit, e);
    if (status == PROFD_OK && cursor != NULL && buildid_parse(cursor, strlen(cursor), &after, NULL) != PROFD_OK) {
        status = profd_error_set(e, PROFD_BAD_QUERY, "cursor=%s is not a cursor from a list", cursor);
    }
    if (status == PROFD_OK) {
        status = job_set_list_etag(job, &fresh, e);
    }
    if (status != PROFD_OK || fresh) {
        return status;
    }
    struct build_page page = {job, ARENA_ARRAY(job->arena, limit + 1, struct build_row), 0};
    status = store_each_build(job->store, &job->request->scope, after.text, limit + 1, take_build, &page, e);
    arena_continue(job->arena);
    if (status == PROFD_OK) {
        bool more = page.count > limit;
        size_t n = more ? limit : page.count;
        render_builds(page.rows, n, more ? page.rows[n - 1].build_id.text : NULL, &job->answer->body);
    }
    return status;
}

/* What /builds/{id} gathers; lists stop at LIMIT_PAGE rows. */
struct build_detail {
    struct job *job;
    struct build_row row;
    struct label_row *labels;
    size_t label_count;
    const char **companions, **names;
    size_t companion_count;
};

static void take_row(void *context, const struct build_row *row)
{
    struct build_detail *d = context;
    ARENA_BOUNDARY(d->job->arena, );
    d->row = copy_row(d->job, row);
}

static bool take_label(void *context, const struct label_row *row)
{
    struct build_detail *d = context;
    ARENA_BOUNDARY(d->job->arena, false);
    if (d->label_count == LIMIT_PAGE) {
        return false;
    }
    struct label_row *copy = &d->labels[d->label_count++];
    copy->name = job_copy(d->job, row->name);
    copy->value = job_copy(d->job, row->value);
    copy->uploads = row->uploads;
    return true;
}

static bool take_companion(void *context, const char *companion, const char *name)
{
    struct build_detail *d = context;
    ARENA_BOUNDARY(d->job->arena, false);
    if (d->companion_count == LIMIT_PAGE) {
        return false;
    }
    d->companions[d->companion_count] = job_copy(d->job, companion);
    d->names[d->companion_count++] = job_copy(d->job, name);
    return true;
}

/* How many contents the id has that may name functions for this asker. */
static enum profd_status count_variants(struct job *job, const char *id, uint32_t *variants, struct profd_error *e)
{
    const struct store_scope *scope = &job->request->scope;
    const uint32_t uid = scope->all ? STORE_TENANT : scope->uid; /* a reader of everything sees what hosts name, too */
    const struct store_senders of = {.uids = &uid,
                                     .uid_count = 1,
                                     .seen = store_scope_has_tenants(scope) ? scope : NULL}; /* a tenant sees its own */
    struct store_naming naming;
    uint8_t *bytes = NULL;
    size_t size;
    enum profd_status status = store_get_object(job->store, &of, id, &bytes, &size, &naming, e);
    if (status == PROFD_OK) {
        *variants = naming.variants;
        free(bytes);
    }
    return status == PROFD_NOT_FOUND ? PROFD_OK : status;
}

static enum profd_status gather(struct build_detail *d, const char *id, uint32_t *variants, struct profd_error *e)
{
    struct store *s = d->job->store;
    const struct store_scope *scope = &d->job->request->scope;
    enum profd_status status = store_get_build(s, scope, id, take_row, d, e);
    if (status == PROFD_OK) {
        status = store_each_label(s, scope, id, take_label, d, e);
    }
    if (status == PROFD_OK) {
        status = store_each_companion(s, scope, id, take_companion, d, e);
    }
    if (status == PROFD_OK) {
        status = count_variants(d->job, id, variants, e);
    }
    arena_continue(d->job->arena);
    return status;
}

enum profd_status builds_show(struct job *job, struct profd_error *e)
{
    struct buildid id;
    bool fresh;
    uint32_t variants = 0;
    TRY(store_find_build(job->store, &job->request->scope, job->params->segments[PARAMS_BUILD], &id, e));
    TRY(job_set_list_etag(job, &fresh, e));
    if (fresh) {
        return PROFD_OK;
    }
    struct build_detail d = {.job = job};
    d.labels = ARENA_ARRAY(job->arena, LIMIT_PAGE, struct label_row);
    d.companions = ARENA_ARRAY(job->arena, LIMIT_PAGE, const char *);
    d.names = ARENA_ARRAY(job->arena, LIMIT_PAGE, const char *);
    TRY(gather(&d, id.text, &variants, e));
    render_build(&d.row, d.labels, d.label_count, d.companions, d.names, d.companion_count, variants,
                 &job->answer->body);
    return PROFD_OK;
}
