/* /api/v1/labels and /api/v1/labels/{name}/values */
#include <string.h>

#include "query/handlers.h"
#include "query/query.h"
#include "render/render.h"
#include "store/store.h"

/* Rows of the store, copied as they come; a page of values begins after a value and ends early. */
struct label_page {
    struct job *job;
    const char *name, *after; /* only values of this name, and greater ones; NULL: all */
    size_t stop;              /* rows that are enough; 0: all */
    struct label_row *rows;
    size_t count, capacity;
    bool failed;
};

static bool grow(struct label_page *page)
{
    size_t capacity = page->capacity == 0 ? 256 : 2 * page->capacity;
    struct label_row *rows = ARENA_ARRAY(page->job->arena, capacity, struct label_row);
    if (rows == NULL) {
        page->failed = true;
        return false;
    }
    if (page->count > 0) {
        memcpy(rows, page->rows, page->count * sizeof *rows);
    }
    page->rows = rows;
    page->capacity = capacity;
    return true;
}

static bool take_label(void *context, const struct label_row *row)
{
    struct label_page *page = context;
    if (page->name != NULL && strcmp(row->name, page->name) != 0) {
        return strcmp(row->name, page->name) < 0;
    }
    if (page->after != NULL && strcmp(row->value, page->after) <= 0) {
        return true;
    }
    if (page->count == page->capacity && !grow(page)) {
        return false;
    }
    bool same = page->count > 0 && strcmp(page->rows[page->count - 1].name, row->name) == 0;
    struct label_row *copy = &page->rows[page->count++];
    copy->name = same ? page->rows[page->count - 2].name : job_copy(page->job, row->name, &page->failed);
    copy->value = job_copy(page->job, page->name != NULL ? row->value : "", &page->failed);
    copy->uploads = row->uploads;
    return !page->failed && page->count != page->stop;
}

static enum profd_status gather(struct label_page *page, bool *fresh, struct profd_error *e)
{
    struct job *job = page->job;
    const struct store_scope *scope = &job->request->scope;
    const char *build = params_find(job->params, "build_id");
    struct buildid id;
    enum profd_status status = PROFD_OK;
    if (build != NULL) {
        status = store_find_build(job->store, scope, build, &id, e);
    }
    if (status == PROFD_OK) {
        status = job_set_list_etag(job, fresh, e);
    }
    if (status == PROFD_OK && !*fresh) {
        status = store_each_label(job->store, scope, build != NULL ? id.text : NULL, take_label, page, e);
    }
    return status == PROFD_OK && page->failed ? profd_error_set(e, PROFD_NO_MEMORY, "no memory for the labels")
                                              : status;
}

enum profd_status labels_list(struct job *job, struct profd_error *e)
{
    bool fresh = false;
    struct label_page page = {.job = job};
    enum profd_status status = gather(&page, &fresh, e);
    if (status == PROFD_OK && !fresh) {
        render_labels(page.rows, page.count, &job->answer->body);
    }
    return status;
}

enum profd_status labels_list_values(struct job *job, struct profd_error *e)
{
    bool fresh = false;
    unsigned long long limit;
    enum profd_status status = job_parse_page(job, &limit, e);
    if (status != PROFD_OK) {
        return status;
    }
    struct label_page page = {.job = job, .name = job->params->segments[3], .stop = limit + 1};
    page.after = params_find(job->params, "cursor");
    status = gather(&page, &fresh, e);
    if (status == PROFD_OK && !fresh) {
        bool more = page.count > limit;
        size_t n = more ? limit : page.count;
        render_values(page.rows, n, more ? page.rows[n - 1].value : NULL, &job->answer->body);
    }
    return status;
}
