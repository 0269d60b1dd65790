/* Lists of what is stored: builds, labels, versions, hosts, live processes; and the description of the interface. */
#include <nettle/sha2.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "proto/sum.h"
#include "proto/hex.h"
#include "query/query_internal.h"
#include "store/labels.h"

/* /api/v1/builds and /api/v1/builds/{id} */

static bool take_build(void *context, const struct build_row *row)
{
    struct list_page *list = context;
    ARENA_BOUNDARY(list->job->arena, false);
    struct build_row *copy = list_add(list);
    if (copy) {
        *copy = *row;
        copy->name = job_copy(list->job, row->name);
        copy->note = job_copy(list->job, row->note);
    }
    return copy;
}

enum profd_status builds_list(struct job *job, struct profd_error *e)
{
    struct list_page list;
    struct buildid after = {""};
    TRY(list_begin(job, RENDER_BUILDS, sizeof(struct build_row), &list, e));
    TRY(list_parse_build_cursor(&list, &after, e));
    TRY(job_set_list_etag(job, e));
    TRY(store_each_build(job->store, &job->request->scope, after.text, list.limit + 1, take_build, &list, e));
    arena_continue(job->arena);
    const struct build_row *rows = list.rows;
    list_show(&list, list.more ? rows[list.count - 1].build_id.text : NULL);
    return PROFD_OK;
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
    d->row = *row;
    d->row.name = job_copy(d->job, row->name);
    d->row.note = job_copy(d->job, row->note);
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

enum profd_status builds_show(struct job *job, struct profd_error *e)
{
    const struct store_scope *scope = &job->request->scope;
    struct buildid id;
    TRY(store_find_build(job->store, scope, job->params->segments[PARAMS_BUILD], &id, e));
    TRY(job_set_list_etag(job, e));
    struct build_detail d = {.job = job};
    d.labels = ARENA_ARRAY(job->arena, LIMIT_PAGE, struct label_row);
    d.companions = ARENA_ARRAY(job->arena, LIMIT_PAGE, const char *);
    d.names = ARENA_ARRAY(job->arena, LIMIT_PAGE, const char *);
    TRY(store_get_build(job->store, scope, id.text, take_row, &d, e));
    TRY(store_each_label(job->store, scope, id.text, take_label, &d, e));
    TRY(store_each_companion(job->store, scope, id.text, take_companion, &d, e));

    /* How many contents of the id may name functions for this asker. A reader of everything sees also what hosts name,
     * a tenant only what is its own. */
    const uint32_t uid = scope->all ? STORE_TENANT : scope->uid;
    const struct store_senders of = {
        .uids = &uid, .uid_count = 1, .seen = store_scope_has_tenants(scope) ? scope : NULL};
    struct store_naming naming = {.variants = 0};
    uint8_t *bytes = NULL;
    size_t size;
    const enum profd_status status = store_get_object(job->store, &of, id.text, &bytes, &size, &naming, e);
    if (status && status != PROFD_NOT_FOUND) {
        return status;
    }
    free(bytes);
    arena_continue(job->arena);
    render_build(&d.row, d.labels, d.label_count, d.companions, d.names, d.companion_count,
                 status ? 0 : naming.variants, &job->answer->body);
    return PROFD_OK;
}

/* /api/v1/labels and /api/v1/labels/{name}/values */

struct label_counts {
    struct arena *arena;
    struct set pairs; /* name NUL value NUL */
    struct buffer key;
    uint64_t *uploads;
    uint32_t capacity;
};

static enum profd_status count_row(void *context, const struct store_row *row, struct profd_error *e)
{
    struct label_counts *c = context;
    ARENA_BOUNDARY(c->arena, profd_no_memory(e));
    for (size_t i = 0; i < row->label_count; i++) {
        bool added;
        c->key.size = 0;
        buffer_add(&c->key, row->labels[i].name, strlen(row->labels[i].name) + 1);
        buffer_add(&c->key, row->labels[i].value, strlen(row->labels[i].value) + 1);
        const uint32_t number = set_add(&c->pairs, c->key.data, c->key.size, &added);
        c->uploads = arena_extend(c->arena, c->uploads, number, &c->capacity, sizeof *c->uploads);
        sum_saturate(&c->uploads[number], row->uploads);
    }
    return PROFD_OK;
}

static int compare_pairs_of_labels(const void *left, const void *right)
{
    const struct label_row *a = left, *b = right;
    int names = strcmp(a->name, b->name);
    return names != 0 ? names : strcmp(a->value, b->value);
}

/* Rows of the store, copied as they come; a page of values begins after a value and ends early. */
struct label_page {
    struct list_page list;
    const char *name; /* only values of this name, greater than the cursor; NULL: all names, without values */
};

static bool take_pair(void *context, const struct label_row *row)
{
    struct label_page *page = context;
    struct list_page *list = &page->list;
    ARENA_BOUNDARY(list->job->arena, false);
    if (page->name && strcmp(row->name, page->name) != 0) {
        return strcmp(row->name, page->name) < 0;
    }
    if (page->name && list->cursor && strcmp(row->value, list->cursor) <= 0) {
        return true;
    }
    struct label_row *copy = list_add(list);
    if (copy) {
        const bool same = list->count > 1 && strcmp(copy[-1].name, row->name) == 0;
        copy->name = same ? copy[-1].name : job_copy(list->job, row->name);
        copy->value = job_copy(list->job, page->name ? row->value : "");
        copy->uploads = row->uploads;
    }
    return copy;
}

/* The labels of all uploads, which the store counts, or of those that the parameters select. These are counted here:
 * O(rows · labels). They come in ascending order of name and value. */
static enum profd_status gather_labels(struct label_page *page, struct profd_error *e)
{
    struct job *job = page->list.job;
    const struct query_request *r = job->request;
    const char *build = params_find(job->params, "build_id");
    bool narrowed = false; /* only some uploads are meant */
    for (size_t i = 0; i < job->params->count; i++) {
        const char *name = job->params->items[i].name;
        narrowed |= strcmp(name, "since") == 0 || strcmp(name, "until") == 0 || strcmp(name, "match") == 0 ||
                    strcmp(name, "uid") == 0 || strncmp(name, "label.", 6) == 0;
    }
    struct buildid id;
    struct options o;
    TRY(options_parse(job->params, &r->scope, r->http, r->now, false, job->arena, &o, e));
    if (build) {
        TRY(store_find_build(job->store, &o.visible, build, &id, e));
    } else if (narrowed) {
        return profd_error_set(e, PROFD_BAD_QUERY,
                               "labels of selected uploads can be listed for one build only; name it with build_id=");
    }

    /* The tag is of the state of all builds, the window and its edges: relative times are compared as they were meant.
     */
    const struct store_filter filter = {.build_id = build ? id.text : NULL,
                                        .since = o.since,
                                        .until = o.until,
                                        .metadata = true,
                                        .matcher_count = o.matcher_count,
                                        .matchers = o.matchers};
    struct store_epoch epoch;
    int64_t window[4] = {o.since, o.until, 0, 0};
    TRY(store_epoch_all(job->store, &r->scope, &epoch, e));
    if (build && (o.since != 0 || o.until != 0)) {
        TRY(store_get_range(job->store, &o.visible, &filter, &window[2], &window[3], e));
    }
    TRY(job_set_etag(job, window, sizeof window, &epoch));
    if (!narrowed) {
        TRY(store_each_label(job->store, &r->scope, filter.build_id, take_pair, page, e));
        arena_continue(job->arena);
        return PROFD_OK;
    }

    struct label_counts c = {.arena = job->arena};
    set_init(&c.pairs, job->arena);
    buffer_init_arena(&c.key, job->arena);
    TRY(store_each_upload(job->store, &o.visible, &filter, count_row, &c, e));
    TRY(store_pattern_judge(&filter, e));
    struct label_row *rows = ARENA_ARRAY(job->arena, c.pairs.count, struct label_row);
    for (uint32_t i = 0; i < c.pairs.count; i++) {
        const char *name = c.pairs.keys[i].bytes;
        rows[i] = (struct label_row){name, name + strlen(name) + 1, c.uploads[i]};
    }
    if (c.pairs.count > 0) {
        qsort(rows, c.pairs.count, sizeof *rows, compare_pairs_of_labels);
    }
    for (uint32_t i = 0; i < c.pairs.count && take_pair(page, &rows[i]); i++) {
    }
    arena_continue(job->arena);
    return PROFD_OK;
}

enum profd_status labels_list(struct job *job, struct profd_error *e)
{
    unsigned long long limit = 0; /* all names, unless a limit is given */
    TRY(params_parse_number(job->params, "limit", 0, UINT32_MAX, &limit, e));
    struct list_page names = {.job = job,
                              .kind = RENDER_LABELS,
                              .size = sizeof(struct label_name_row),
                              .limit = limit == 0 ? UINT32_MAX : limit,
                              .cursor = params_find(job->params, "cursor")};
    struct label_page all = {.list = {.job = job, .size = sizeof(struct label_row), .limit = UINT32_MAX}};
    TRY(gather_labels(&all, e));
    const struct label_row *rows = all.list.rows;
    struct label_name_row *name = NULL;
    for (uint32_t i = 0; i < all.list.count && !names.more; i++) {
        if (names.cursor && strcmp(rows[i].name, names.cursor) <= 0) {
            continue;
        }
        if (!name || strcmp(rows[i].name, name->name) != 0) {
            name = list_add(&names);
        }
        if (name) {
            name->name = rows[i].name;
            name->values++;
            sum_saturate(&name->uploads, rows[i].uploads);
        }
    }
    const struct label_name_row *page = names.rows;
    list_show(&names, names.more ? page[names.count - 1].name : NULL);
    return PROFD_OK;
}

enum profd_status labels_list_values(struct job *job, struct profd_error *e)
{
    struct label_page page = {.name = job->params->segments[3]};
    TRY(list_begin(job, RENDER_VALUES, sizeof(struct label_row), &page.list, e));
    TRY(gather_labels(&page, e));
    const struct label_row *rows = page.list.rows;
    list_show(&page.list, page.list.more ? rows[page.list.count - 1].value : NULL);
    return PROFD_OK;
}

/* /api/v1/versions: the versions of each program, by the label `version`, in the order in which they appeared. */

/* Builds of programs that one answer reads; one takes a tenth of a millisecond or more. */
#define PROGRAMS_A_PAGE 2000u

struct versions {
    struct list_page list;
    const char *wanted;           /* a program's path, or the last part of it; NULL: all */
    struct version_row *programs; /* id and name only */
    uint32_t program_count, program_capacity;
    uint32_t program; /* whose uploads are read */
    struct set known; /* build-id NUL version NUL */
    struct buffer key;
};

static bool take_program(void *context, const struct build_row *row)
{
    struct versions *v = context;
    struct job *job = v->list.job;
    ARENA_BOUNDARY(job->arena, false);
    const char *slash = v->wanted && !strchr(v->wanted, '/') ? strrchr(row->name, '/') : NULL;
    if (!row->is_program || (v->wanted && strcmp(slash ? slash + 1 : row->name, v->wanted) != 0)) {
        return true;
    }
    v->programs = arena_extend(job->arena, v->programs, v->program_count, &v->program_capacity, sizeof *v->programs);
    v->programs[v->program_count++] = (struct version_row){
        .build_id = job_copy(job, row->build_id.text), .program = job_copy(job, row->name), .version = ""};
    return true;
}

static enum profd_status take_upload(void *context, const struct store_row *row, struct profd_error *e)
{
    struct versions *v = context;
    const char *version = row_find_label(row, "version");
    bool added = false;
    ARENA_BOUNDARY(v->list.job->arena, profd_no_memory(e));
    const struct version_row *program = &v->programs[v->program];
    v->key.size = 0;
    buffer_add(&v->key, program->build_id, strlen(program->build_id) + 1);
    buffer_add(&v->key, version, strlen(version) + 1);
    const uint32_t number = set_add(&v->known, v->key.data, v->key.size, &added);
    if (added) {
        struct version_row *fresh = list_add(&v->list);
        *fresh = *program;
        fresh->version = job_copy(v->list.job, version);
    }
    struct version_row *r = (struct version_row *)v->list.rows + number;
    r->first = r->uploads == 0 || row->start < r->first ? row->start : r->first;
    r->last = r->uploads == 0 || row->end > r->last ? row->end : r->last;
    sum_saturate(&r->uploads, row->uploads);
    return PROFD_OK;
}

static int compare_versions(const void *left, const void *right)
{
    const struct version_row *a = left, *b = right;
    int order = strcmp(a->program, b->program);
    order = order != 0 ? order : (a->first > b->first) - (a->first < b->first);
    order = order != 0 ? order : strcmp(a->version, b->version);
    return order != 0 ? order : strcmp(a->build_id, b->build_id);
}

/* A cursor is the place of a program among all by name, and the number of its rows that were shown already. */
enum profd_status versions_list(struct job *job, struct profd_error *e)
{
    const struct query_request *r = job->request;
    struct versions v = {.wanted = params_find(job->params, "program")};
    struct options o;
    unsigned long long skip = 0;
    TRY(list_begin(job, RENDER_VERSIONS, sizeof(struct version_row), &v.list, e));
    const unsigned long long limit = v.list.limit;
    const char *cursor = v.list.cursor;
    if (cursor) {
        const size_t first = strspn(cursor, "0123456789");
        const size_t second = cursor[first] == '-' ? strspn(cursor + first + 1, "0123456789") : 0;
        FAIL_IF(first == 0 || second == 0 || strlen(cursor) != first + 1 + second || strlen(cursor) >= 20, e,
                PROFD_BAD_QUERY, "cursor=%.100s is not that of a page of versions", cursor);
        skip = strtoull(cursor + first + 1, NULL, 10);
    }
    const unsigned long long place = cursor ? strtoull(cursor, NULL, 10) : 0;
    TRY(options_parse(job->params, &r->scope, r->http, r->now, false, job->arena, &o, e));
    TRY(job_set_list_etag(job, e));
    set_init(&v.known, job->arena);
    buffer_init_arena(&v.key, job->arena);
    TRY(store_each_build(job->store, &o.visible, "", SIZE_MAX / 2, take_program, &v, e));
    arena_continue(job->arena);

    /* Builds of one name are read together, because their rows are sorted together. */
    if (v.program_count > 0) {
        qsort(v.programs, v.program_count, sizeof *v.programs, compare_versions);
    }
    v.list.limit = UINT32_MAX;
    v.program = place < v.program_count ? (uint32_t)place : v.program_count;
    for (uint32_t n = 0; v.program < v.program_count; n++, v.program++) {
        if (n > 0 && (v.list.count >= skip + limit || n >= PROGRAMS_A_PAGE) &&
            strcmp(v.programs[v.program].program, v.programs[v.program - 1].program) != 0) {
            break;
        }
        const struct store_filter filter = {.build_id = v.programs[v.program].build_id,
                                            .as_program = true,
                                            .metadata = true,
                                            .matcher_count = o.matcher_count,
                                            .matchers = o.matchers};
        TRY(store_each_upload(job->store, &o.visible, &filter, take_upload, &v, e));
        TRY(store_pattern_judge(&filter, e));
    }

    struct version_row *rows = v.list.rows;
    if (v.list.count > 0) {
        qsort(rows, v.list.count, sizeof *rows, compare_versions);
    }
    const size_t end = list_cut(&v.list, skip, limit);
    uint32_t next = v.program;
    size_t shown = 0;
    if (v.list.more) { /* the next page begins with the program of the row behind this one */
        for (next = 0; strcmp(v.programs[next].program, rows[end].program) != 0;) {
            next++;
        }
        while (shown < end && strcmp(rows[end - shown - 1].program, rows[end].program) == 0) {
            shown++;
        }
    }
    list_show(&v.list, next < v.program_count ? arena_format(job->arena, "%u-%zu", next, shown) : NULL);
    return PROFD_OK;
}

/* /api/v1/hosts: the hosts of a centre, and how far each lags behind. */

static bool take_host(void *context, const struct store_fleet_host *h)
{
    struct list_page *list = context;
    struct job *job = list->job;
    const int64_t now = job->request->now;
    char identity[2 * STORE_HOST_SIZE + 1];
    ARENA_BOUNDARY(job->arena, false);
    if (!store_scope_has(&job->request->scope, h->uid)) {
        return true;
    }
    (void)hex_put(identity, h->host, STORE_HOST_SIZE);
    if (list->cursor) { /* rows begin behind the host with this identity */
        list->cursor = strcmp(list->cursor, identity) == 0 ? NULL : list->cursor;
        return true;
    }
    struct fleet_row *row = list_add(list);
    if (row) {
        *row = (struct fleet_row){.name = job_copy(job, h->name),
                                  .identity = job_copy(job, identity),
                                  .tenant = job_copy(job, h->tenant),
                                  .machine = job_copy(job, h->machine),
                                  .version = job_copy(job, h->version),
                                  .first = h->first,
                                  .last = h->last,
                                  .delivered = h->delivered,
                                  .restored = h->restored,
                                  .two_machines = h->copied,
                                  .lag = now > h->last ? now - h->last : 0};
    }
    return row;
}

enum profd_status hosts_list(struct job *job, struct profd_error *e)
{
    struct list_page list;
    TRY(list_begin(job, RENDER_HOSTS, sizeof(struct fleet_row), &list, e));
    TRY(store_each_host(job->store, take_host, &list, e));
    arena_continue(job->arena);
    if (list.cursor) {
        return profd_error_set(e, PROFD_BAD_QUERY,
                               "cursor=%.80s is not a cursor from this list, or its host is gone; start again without "
                               "cursor=",
                               list.cursor);
    }
    const struct fleet_row *rows = list.rows;
    list_show(&list, list.more ? rows[list.count - 1].identity : NULL);
    return PROFD_OK;
}

/* /api/v1/processes: the live processes, as they were found on the loop. */

#define INSTANCE 16
#define CURSOR (2 * INSTANCE + 12)

/* The place in the list: an order that does not change while pages are asked for. */
static void processes_format_place(const struct process_row *row, char out[CURSOR])
{
    char *end = hex_put(out, row->instance, INSTANCE);

    snprintf(end, (size_t)(out + CURSOR - end), "-%u", row->uid);
}

static int processes_compare(const void *x, const void *y)
{
    const struct process_row *a = x, *b = y;
    const int by_instance = memcmp(a->instance, b->instance, INSTANCE);
    char one[CURSOR], other[CURSOR];

    if (by_instance) {
        return by_instance;
    }
    processes_format_place(a, one);
    processes_format_place(b, other);
    return strcmp(one, other);
}

enum profd_status processes_list(struct job *job, struct profd_error *e)
{
    const struct query_request *r = job->request;
    const struct params *p = job->params;
    const bool has_pid = params_find(p, "pid"), has_uid = params_find(p, "uid");
    struct list_page list;
    struct store_matcher matchers[LIMIT_MATCHERS];
    size_t matcher_count = 0;
    unsigned long long pid = 0, uid = 0;
    char place[CURSOR];
    FAIL_IF(!r->processes, e, PROFD_NOT_FOUND, "there is no resource at %.100s; write it without escapes", r->target);
    TRY(params_parse_number(p, "pid", 0, UINT32_MAX, &pid, e));
    TRY(params_parse_number(p, "uid", 0, UINT32_MAX, &uid, e));
    TRY(list_begin(job, RENDER_PROCESSES, sizeof(struct process_row), &list, e));
    TRY(options_parse_matchers(p, job->arena, matchers, &matcher_count, e));
    const char *cursor = list.cursor ? list.cursor : "";
    if (list.cursor &&
        (strlen(cursor) >= sizeof place || strspn(cursor, "0123456789abcdef") != (size_t)(2 * INSTANCE))) {
        return profd_error_set(e, PROFD_BAD_QUERY, "cursor=%.100s is not a cursor from a list", cursor);
    }

    const unsigned long long limit = list.limit;
    struct buffer labels; /* as matchers take them */
    buffer_init_arena(&labels, job->arena);
    list.limit = UINT32_MAX;
    for (size_t i = 0; i < r->process_count; i++) {
        const struct process_row *row = &r->processes[i];
        processes_format_place(row, place);
        if ((has_pid && row->pid != pid) || (has_uid && row->uid != uid) || strcmp(place, cursor) <= 0) {
            continue;
        }
        labels.size = 0;
        for (size_t k = 0; matcher_count > 0 && k < row->label_count; k++) {
            buffer_add(&labels, row->labels[k].name, strlen(row->labels[k].name) + 1);
            buffer_add(&labels, row->labels[k].value, strlen(row->labels[k].value) + 1);
        }
        if (labels_match(labels.data ? labels.data : "", labels.size, matchers, matcher_count)) {
            *(struct process_row *)list_add(&list) = *row;
        }
    }
    const struct store_filter filter = {.matchers = matchers, .matcher_count = matcher_count};
    TRY(store_pattern_judge(&filter, e));
    struct process_row *rows = list.rows;
    if (list.count > 0) {
        qsort(rows, list.count, sizeof *rows, processes_compare);
    }
    const size_t end = list_cut(&list, 0, limit);
    if (list.more) {
        processes_format_place(&rows[end - 1], place);
    }
    job->answer->content_type = "application/json; charset=utf-8";
    list_show(&list, list.more ? place : NULL);
    return PROFD_OK;
}

/* /openapi.json: schema/openapi.json as it was at build time. */

extern const unsigned char embed_schema_openapi_json[];
extern const size_t embed_schema_openapi_json_size;

enum profd_status openapi_show(struct job *job, struct profd_error *e)
{
    static const struct store_epoch none = {.number = 0}; /* it depends on no stored data */
    struct sha256_ctx sha;
    uint8_t digest[SHA256_DIGEST_SIZE];
    (void)e;
    sha256_init(&sha);
    sha256_update(&sha, embed_schema_openapi_json_size, embed_schema_openapi_json);
    sha256_digest(&sha, sizeof digest, digest);
    TRY(job_set_etag(job, (const char *)digest, sizeof digest, &none));
    buffer_add(&job->answer->body, embed_schema_openapi_json, embed_schema_openapi_json_size);
    return PROFD_OK;
}
