/* /api/v1/labels and /api/v1/labels/{name}/values */
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

struct counting {
    struct arena *arena;
    struct set pairs; /* name NUL value NUL */
    struct buffer key;
    uint64_t *uploads;
    uint32_t capacity;
};

static enum profd_status take_row(void *context, const struct store_row *row, struct profd_error *e)
{
    struct counting *c = context;
    ARENA_BOUNDARY(c->arena, profd_no_memory(e));
    for (size_t i = 0; i < row->label_count; i++) {
        bool added, saturated = false;
        c->key.size = 0;
        buffer_add(&c->key, row->labels[i].name, strlen(row->labels[i].name) + 1);
        buffer_add(&c->key, row->labels[i].value, strlen(row->labels[i].value) + 1);
        const uint32_t number = set_add(&c->pairs, c->key.data, c->key.size, &added);
        c->uploads = arena_extend(c->arena, c->uploads, number, &c->capacity, sizeof *c->uploads);
        sum_add(&c->uploads[number], row->uploads, &saturated);
    }
    return PROFD_OK;
}

static int row_compare(const void *left, const void *right)
{
    const struct label_row *a = left, *b = right;
    int names = strcmp(a->name, b->name);
    return names != 0 ? names : strcmp(a->value, b->value);
}

/* Label pairs of what the filter selects: uploads in a window, or with other labels. The store keeps only those of all
 * uploads. Ascending by name and value, in the arena. O(rows · labels). */
static enum profd_status labels_count(struct store *s, const struct store_scope *scope,
                                      const struct store_filter *filter, struct arena *a, struct label_row **rows,
                                      size_t *count, struct profd_error *e)
{
    struct counting c = {.arena = a};
    set_init(&c.pairs, a);
    buffer_init_arena(&c.key, a);
    TRY(store_each_upload(s, scope, filter, take_row, &c, e));
    TRY(store_pattern_judge(filter, e));
    struct label_row *out = ARENA_ARRAY(a, c.pairs.count, struct label_row);
    for (uint32_t i = 0; i < c.pairs.count; i++) {
        const char *name = c.pairs.keys[i].bytes;
        out[i] = (struct label_row){name, name + strlen(name) + 1, c.uploads[i]};
    }
    if (c.pairs.count > 0) {
        qsort(out, c.pairs.count, sizeof *out, row_compare);
    }
    *rows = out;
    *count = c.pairs.count;
    return PROFD_OK;
}

/* Rows of the store, copied as they come; a page of values begins after a value and ends early. */
struct label_page {
    struct job *job;
    const char *name, *after; /* only values of this name, and greater ones; NULL: all */
    size_t stop;              /* rows that are enough; 0: all */
    struct label_row *rows;
    size_t count;
    uint32_t capacity;
};

static bool take_label(void *context, const struct label_row *row)
{
    struct label_page *page = context;
    ARENA_BOUNDARY(page->job->arena, false);
    if (page->name != NULL && strcmp(row->name, page->name) != 0) {
        return strcmp(row->name, page->name) < 0;
    }
    if (page->after != NULL && strcmp(row->value, page->after) <= 0) {
        return true;
    }
    page->rows = arena_extend(page->job->arena, page->rows, (uint32_t)page->count, &page->capacity, sizeof *page->rows);
    bool same = page->count > 0 && strcmp(page->rows[page->count - 1].name, row->name) == 0;
    struct label_row *copy = &page->rows[page->count++];
    copy->name = same ? page->rows[page->count - 2].name : job_copy(page->job, row->name);
    copy->value = job_copy(page->job, page->name != NULL ? row->value : "");
    copy->uploads = row->uploads;
    return page->count != page->stop;
}

static struct store_filter make_filter(const struct options *o, const char *id)
{
    return (struct store_filter){.build_id = id,
                                 .since = o->since,
                                 .until = o->until,
                                 .metadata = true,
                                 .matcher_count = o->matcher_count,
                                 .matchers = o->matchers};
}

/* The labels of the uploads that the options select. */
static enum profd_status gather_some(struct label_page *page, const struct options *o, const char *id,
                                     struct profd_error *e)
{
    struct label_row *rows = NULL;
    size_t n = 0;
    const struct store_filter filter = make_filter(o, id);
    enum profd_status status = labels_count(page->job->store, &o->visible, &filter, page->job->arena, &rows, &n, e);
    for (size_t i = 0; status == PROFD_OK && i < n && take_label(page, &rows[i]); i++) {
    }
    return status;
}

/* Validated by the state of all builds, and by the window and its edges: relative times are compared as they were
 * meant. */
static enum profd_status set_tag(struct job *job, const struct options *o, const char *id, bool *fresh,
                                 struct profd_error *e)
{
    struct store_epoch epoch;
    int64_t window[4] = {o->since, o->until, 0, 0};
    TRY(store_epoch_all(job->store, &job->request->scope, &epoch, e));
    if (id != NULL && (o->since != 0 || o->until != 0)) {
        const struct store_filter filter = make_filter(o, id);
        TRY(store_get_range(job->store, &o->visible, &filter, &window[2], &window[3], e));
    }
    *fresh = job_set_etag(job, window, sizeof window, &epoch);
    return PROFD_OK;
}

static enum profd_status gather(struct label_page *page, bool *fresh, struct profd_error *e)
{
    struct job *job = page->job;
    const struct query_request *r = job->request;
    const char *build = params_find(job->params, "build_id");
    /* True if only some uploads are meant. */
    bool narrowed = false;
    for (size_t i = 0; i < job->params->count; i++) {
        const char *name = job->params->items[i].name;
        narrowed |= strcmp(name, "since") == 0 || strcmp(name, "until") == 0 || strcmp(name, "match") == 0 ||
                    strcmp(name, "uid") == 0 || strncmp(name, "label.", 6) == 0;
    }
    struct buildid id;
    struct options o;
    enum profd_status status = options_parse(job->params, &r->scope, r->http, r->now, false, job->arena, &o, e);
    if (status == PROFD_OK && build != NULL) {
        status = store_find_build(job->store, &o.visible, build, &id, e);
    } else if (status == PROFD_OK && narrowed) {
        status = profd_error_set(e, PROFD_BAD_QUERY,
                                 "labels of selected uploads can be listed for one build only; name it with build_id=");
    }
    if (status == PROFD_OK) {
        status = set_tag(job, &o, build != NULL ? id.text : NULL, fresh, e);
    }
    if (status == PROFD_OK && !*fresh) {
        status = narrowed
                     ? gather_some(page, &o, id.text, e)
                     : store_each_label(job->store, &r->scope, build != NULL ? id.text : NULL, take_label, page, e);
    }
    arena_continue(job->arena);
    return status;
}

enum profd_status labels_list(struct job *job, struct profd_error *e)
{
    bool fresh = false;
    unsigned long long limit = 0;
    struct label_page page = {.job = job};
    TRY(job_parse_whole(job, &limit, e));
    TRY(gather(&page, &fresh, e));
    if (!fresh) {
        const char *after = params_find(job->params, "cursor");
        size_t from = 0, to;
        while (after != NULL && from < page.count && strcmp(page.rows[from].name, after) <= 0) {
            from++;
        }
        to = from;
        for (unsigned long long names = 0; to < page.count; to++) {
            names += to == from || strcmp(page.rows[to].name, page.rows[to - 1].name) != 0;
            if (names > limit) {
                break;
            }
        }
        render_labels(page.rows + from, to - from, to < page.count ? page.rows[to - 1].name : NULL, &job->answer->body);
    }
    return PROFD_OK;
}

enum profd_status labels_list_values(struct job *job, struct profd_error *e)
{
    bool fresh = false;
    unsigned long long limit;
    TRY(job_parse_page(job, &limit, e));
    struct label_page page = {.job = job, .name = job->params->segments[3], .stop = limit + 1};
    page.after = params_find(job->params, "cursor");
    TRY(gather(&page, &fresh, e));
    if (!fresh) {
        bool more = page.count > limit;
        size_t n = more ? limit : page.count;
        render_values(page.rows, n, more ? page.rows[n - 1].value : NULL, &job->answer->body);
    }
    return PROFD_OK;
}
