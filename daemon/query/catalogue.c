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
    struct buildid after = {""};
    const char *cursor = params_find(job->params, "cursor");
    TRY(job_parse_page(job, &limit, e));
    if (cursor && buildid_parse(cursor, strlen(cursor), &after, NULL)) {
        return profd_error_set(e, PROFD_BAD_QUERY, "cursor=%s is not a cursor from a list", cursor);
    }
    TRY(job_set_list_etag(job, e));
    struct build_page page = {job, ARENA_ARRAY(job->arena, limit + 1, struct build_row), 0};
    TRY(store_each_build(job->store, &job->request->scope, after.text, limit + 1, take_build, &page, e));
    arena_continue(job->arena);
    bool more = page.count > limit;
    size_t n = more ? limit : page.count;
    render_builds(page.rows, n, more ? page.rows[n - 1].build_id.text : NULL, &job->answer->body);
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
    if (!status) {
        *variants = naming.variants;
        free(bytes);
    }
    return status == PROFD_NOT_FOUND ? PROFD_OK : status;
}

enum profd_status builds_show(struct job *job, struct profd_error *e)
{
    const struct store_scope *scope = &job->request->scope;
    struct buildid id;
    uint32_t variants = 0;
    TRY(store_find_build(job->store, scope, job->params->segments[PARAMS_BUILD], &id, e));
    TRY(job_set_list_etag(job, e));
    struct build_detail d = {.job = job};
    d.labels = ARENA_ARRAY(job->arena, LIMIT_PAGE, struct label_row);
    d.companions = ARENA_ARRAY(job->arena, LIMIT_PAGE, const char *);
    d.names = ARENA_ARRAY(job->arena, LIMIT_PAGE, const char *);
    TRY(store_get_build(job->store, scope, id.text, take_row, &d, e));
    TRY(store_each_label(job->store, scope, id.text, take_label, &d, e));
    TRY(store_each_companion(job->store, scope, id.text, take_companion, &d, e));
    TRY(count_variants(job, id.text, &variants, e));
    arena_continue(job->arena);
    render_build(&d.row, d.labels, d.label_count, d.companions, d.names, d.companion_count, variants,
                 &job->answer->body);
    return PROFD_OK;
}

/* /api/v1/labels and /api/v1/labels/{name}/values */

struct counting {
    struct arena *arena;
    struct set pairs; /* name NUL value NUL */
    struct buffer key;
    uint64_t *uploads;
    uint32_t capacity;
};

static enum profd_status count_row(void *context, const struct store_row *row, struct profd_error *e)
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

static int compare_pairs_of_labels(const void *left, const void *right)
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
    TRY(store_each_upload(s, scope, filter, count_row, &c, e));
    TRY(store_pattern_judge(filter, e));
    struct label_row *out = ARENA_ARRAY(a, c.pairs.count, struct label_row);
    for (uint32_t i = 0; i < c.pairs.count; i++) {
        const char *name = c.pairs.keys[i].bytes;
        out[i] = (struct label_row){name, name + strlen(name) + 1, c.uploads[i]};
    }
    if (c.pairs.count > 0) {
        qsort(out, c.pairs.count, sizeof *out, compare_pairs_of_labels);
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

static bool take_pair(void *context, const struct label_row *row)
{
    struct label_page *page = context;
    ARENA_BOUNDARY(page->job->arena, false);
    if (page->name && strcmp(row->name, page->name) != 0) {
        return strcmp(row->name, page->name) < 0;
    }
    if (page->after && strcmp(row->value, page->after) <= 0) {
        return true;
    }
    page->rows = arena_extend(page->job->arena, page->rows, (uint32_t)page->count, &page->capacity, sizeof *page->rows);
    bool same = page->count > 0 && strcmp(page->rows[page->count - 1].name, row->name) == 0;
    struct label_row *copy = &page->rows[page->count++];
    copy->name = same ? page->rows[page->count - 2].name : job_copy(page->job, row->name);
    copy->value = job_copy(page->job, page->name ? row->value : "");
    copy->uploads = row->uploads;
    return page->count != page->stop;
}

static struct store_filter make_labels_filter(const struct options *o, const char *id)
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
    const struct store_filter filter = make_labels_filter(o, id);
    TRY(labels_count(page->job->store, &o->visible, &filter, page->job->arena, &rows, &n, e));
    for (size_t i = 0; i < n && take_pair(page, &rows[i]); i++) {
    }
    return PROFD_OK;
}

/* Validated by the state of all builds, and by the window and its edges: relative times are compared as they were
 * meant. */
static enum profd_status set_labels_tag(struct job *job, const struct options *o, const char *id, struct profd_error *e)
{
    struct store_epoch epoch;
    int64_t window[4] = {o->since, o->until, 0, 0};
    TRY(store_epoch_all(job->store, &job->request->scope, &epoch, e));
    if (id && (o->since != 0 || o->until != 0)) {
        const struct store_filter filter = make_labels_filter(o, id);
        TRY(store_get_range(job->store, &o->visible, &filter, &window[2], &window[3], e));
    }
    return job_set_etag(job, window, sizeof window, &epoch);
}

static enum profd_status gather_labels(struct label_page *page, struct profd_error *e)
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
    TRY(options_parse(job->params, &r->scope, r->http, r->now, false, job->arena, &o, e));
    if (build) {
        TRY(store_find_build(job->store, &o.visible, build, &id, e));
    } else if (narrowed) {
        return profd_error_set(e, PROFD_BAD_QUERY,
                               "labels of selected uploads can be listed for one build only; name it with build_id=");
    }
    TRY(set_labels_tag(job, &o, build ? id.text : NULL, e));
    TRY(narrowed ? gather_some(page, &o, id.text, e)
                 : store_each_label(job->store, &r->scope, build ? id.text : NULL, take_pair, page, e));
    arena_continue(job->arena);
    return PROFD_OK;
}

enum profd_status labels_list(struct job *job, struct profd_error *e)
{
    unsigned long long limit = 0, names = 0;
    struct label_page page = {.job = job};
    const char *after = params_find(job->params, "cursor");
    size_t from = 0, to;
    TRY(job_parse_whole(job, &limit, e));
    TRY(gather_labels(&page, e));
    while (after && from < page.count && strcmp(page.rows[from].name, after) <= 0) {
        from++;
    }
    for (to = from; to < page.count; to++) {
        names += to == from || strcmp(page.rows[to].name, page.rows[to - 1].name) != 0;
        if (names > limit) {
            break;
        }
    }
    render_labels(page.rows + from, to - from, to < page.count ? page.rows[to - 1].name : NULL, &job->answer->body);
    return PROFD_OK;
}

enum profd_status labels_list_values(struct job *job, struct profd_error *e)
{
    unsigned long long limit;
    TRY(job_parse_page(job, &limit, e));
    struct label_page page = {.job = job, .name = job->params->segments[3], .stop = limit + 1};
    page.after = params_find(job->params, "cursor");
    TRY(gather_labels(&page, e));
    bool more = page.count > limit;
    size_t n = more ? limit : page.count;
    render_values(page.rows, n, more ? page.rows[n - 1].value : NULL, &job->answer->body);
    return PROFD_OK;
}

/* /api/v1/versions: the versions of each program, by the label `version`, in the order in which they appeared. */

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

static bool take_program(void *context, const struct build_row *row)
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

/* The row of a version of the program that is read. */
static struct version_row *find_version_row(struct versions *v, const char *version)
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
    struct version_row *r = find_version_row(v, row_find_label(row, "version"));
    r->first = r->uploads == 0 || row->start < r->first ? row->start : r->first;
    r->last = r->uploads == 0 || row->end > r->last ? row->end : r->last;
    sum_add(&r->uploads, row->uploads, &saturated);
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

static int compare_programs(const void *left, const void *right)
{
    const struct version_row *a = left, *b = right;
    const int order = strcmp(a->program, b->program);
    return order != 0 ? order : strcmp(a->build_id, b->build_id);
}

/* Reads builds of programs from that place on, until there are enough rows or PROGRAMS_A_PAGE builds were read; builds
 * of one name are read together, because their rows are sorted together. *next: the place to go on with. */
static enum profd_status read_programs(struct versions *v, unsigned long long first, unsigned long long rows,
                                       uint32_t *next, struct profd_error *e)
{
    if (v->program_count > 0) {
        qsort(v->programs, v->program_count, sizeof *v->programs, compare_programs);
    }
    v->program = first < v->program_count ? (uint32_t)first : v->program_count;
    for (uint32_t n = 0; v->program < v->program_count; n++, v->program++) {
        if (n > 0 && (v->count >= rows || n >= PROGRAMS_A_PAGE) &&
            strcmp(v->programs[v->program].program, v->programs[v->program - 1].program) != 0) {
            break;
        }
        const struct store_filter filter = {.build_id = v->programs[v->program].build_id,
                                            .as_program = true,
                                            .metadata = true,
                                            .matcher_count = v->options.matcher_count,
                                            .matchers = v->options.matchers};
        TRY(store_each_upload(v->job->store, &v->options.visible, &filter, take_upload, v, e));
        TRY(store_pattern_judge(&filter, e));
    }
    *next = v->program;
    return PROFD_OK;
}

/* A cursor is the place of a program among all by name, and the number of its rows that were shown already. */
static enum profd_status parse_versions_cursor(const struct params *p, unsigned long long place[2],
                                               struct profd_error *e)
{
    const char *text = params_find(p, "cursor");
    place[0] = place[1] = 0;
    if (!text) {
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

static void show_versions(struct versions *v, unsigned long long skip, unsigned long long limit, uint32_t next)
{
    char cursor[48];
    if (v->count > 0) {
        qsort(v->rows, v->count, sizeof *v->rows, compare_versions);
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
    uint32_t next = 0;
    TRY(job_parse_page(job, &limit, e));
    TRY(parse_versions_cursor(job->params, place, e));
    TRY(options_parse(job->params, &r->scope, r->http, r->now, false, job->arena, &v.options, e));
    TRY(job_set_list_etag(job, e));
    set_init(&v.known, job->arena);
    buffer_init_arena(&v.key, job->arena);
    TRY(store_each_build(job->store, &v.options.visible, "", SIZE_MAX / 2, take_program, &v, e));
    arena_continue(job->arena);
    TRY(read_programs(&v, place[0], place[1] + limit, &next, e));
    show_versions(&v, place[1], limit, next);
    return PROFD_OK;
}

/* /api/v1/hosts: the hosts of a centre, and how far each lags behind. */

struct hosts {
    struct job *job;
    const char *cursor; /* rows begin behind the host of this identity; NULL: with the first one */
    struct fleet_row *rows;
    uint32_t count, capacity;
    unsigned long long limit;
    bool more;
};

static bool take_host(void *context, const struct store_fleet_host *h)
{
    struct hosts *list = context;
    struct job *job = list->job;
    char identity[2 * STORE_HOST_SIZE + 1];
    ARENA_BOUNDARY(job->arena, false);
    if (!store_scope_has(&job->request->scope, h->uid)) {
        return true;
    }
    (void)hex_put(identity, h->host, STORE_HOST_SIZE);
    if (list->cursor) {
        list->cursor = strcmp(list->cursor, identity) == 0 ? NULL : list->cursor;
        return true;
    }
    if (list->count == list->limit) {
        list->more = true;
        return false;
    }
    list->rows = arena_extend(job->arena, list->rows, list->count, &list->capacity, sizeof *list->rows);
    list->rows[list->count++] = (struct fleet_row){.name = job_copy(job, h->name),
                                                   .identity = job_copy(job, identity),
                                                   .tenant = job_copy(job, h->tenant),
                                                   .machine = job_copy(job, h->machine),
                                                   .version = job_copy(job, h->version),
                                                   .first = h->first,
                                                   .last = h->last,
                                                   .delivered = h->delivered,
                                                   .restored = h->restored,
                                                   .two_machines = h->copied};
    return true;
}

enum profd_status hosts_list(struct job *job, struct profd_error *e)
{
    struct hosts list = {.job = job, .cursor = params_find(job->params, "cursor"), .limit = LIMIT_PAGE_DEFAULT};
    TRY(job_parse_page(job, &list.limit, e));
    TRY(store_each_host(job->store, take_host, &list, e));
    arena_continue(job->arena);
    if (list.cursor) {
        return profd_error_set(e, PROFD_BAD_QUERY,
                               "cursor=%.80s is not a cursor from this list, or its host is gone; start again without "
                               "cursor=",
                               params_find(job->params, "cursor"));
    }
    render_hosts(list.rows, list.count, job->request->now, list.more ? list.rows[list.count - 1].identity : NULL,
                 &job->answer->body);
    return PROFD_OK;
}

/* /api/v1/processes: the live processes, as they were found on the loop. */

#define INSTANCE 16
#define CURSOR (2 * INSTANCE + 12)

struct process_query {
    struct job *job;
    bool has_pid, has_uid;
    uint32_t pid, uid;
    unsigned long long limit;
    size_t matcher_count;
    struct store_matcher matchers[LIMIT_MATCHERS];
    char cursor[CURSOR];
};

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

static enum profd_status processes_parse_number(const struct params *p, const char *name, bool *has, uint32_t *out,
                                                struct profd_error *e)
{
    unsigned long long n = 0;
    enum profd_status status = params_parse_number(p, name, 0, UINT32_MAX, &n, e);

    *has = params_find(p, name);
    *out = (uint32_t)n;
    return status;
}

static enum profd_status processes_parse(struct process_query *q, struct profd_error *e)
{
    const struct params *p = q->job->params;
    const char *cursor = params_find(p, "cursor");
    TRY(processes_parse_number(p, "pid", &q->has_pid, &q->pid, e));
    TRY(processes_parse_number(p, "uid", &q->has_uid, &q->uid, e));
    TRY(job_parse_page(q->job, &q->limit, e));
    TRY(options_parse_matchers(p, q->job->arena, q->matchers, &q->matcher_count, e));
    if (cursor &&
        (strlen(cursor) >= sizeof q->cursor || strspn(cursor, "0123456789abcdef") != (size_t)(2 * INSTANCE))) {
        return profd_error_set(e, PROFD_BAD_QUERY, "cursor=%.100s is not a cursor from a list", cursor);
    }
    memcpy(q->cursor, cursor ? cursor : "", cursor ? strlen(cursor) + 1 : 1);
    return PROFD_OK;
}

/* The labels as matchers take them. */
static bool processes_match(const struct process_query *q, const struct process_row *row)
{
    struct buffer text;
    bool match;

    buffer_init(&text, 2 * LIMIT_LABEL_BYTES);
    for (size_t i = 0; i < row->label_count; i++) {
        buffer_add(&text, row->labels[i].name, strlen(row->labels[i].name) + 1);
        buffer_add(&text, row->labels[i].value, strlen(row->labels[i].value) + 1);
    }
    match = labels_match(text.data ? text.data : "", text.size, q->matchers, q->matcher_count);
    buffer_done(&text);
    return match;
}

static bool processes_select(const struct process_query *q, const struct process_row *row)
{
    char place[CURSOR];

    if ((q->has_pid && row->pid != q->pid) || (q->has_uid && row->uid != q->uid)) {
        return false;
    }
    if (*q->cursor) {
        processes_format_place(row, place);
        if (strcmp(place, q->cursor) <= 0) {
            return false;
        }
    }
    return !q->matcher_count || processes_match(q, row);
}

enum profd_status processes_list(struct job *job, struct profd_error *e)
{
    const struct query_request *r = job->request;
    struct process_query q = {.job = job};
    size_t count = 0;
    char next[CURSOR] = "";
    if (!r->processes) {
        return profd_error_set(e, PROFD_NOT_FOUND, "there is no resource at %.100s; write it without escapes",
                               r->target);
    }
    TRY(processes_parse(&q, e));
    struct process_row *rows = ARENA_ARRAY(job->arena, r->process_count + 1, struct process_row);
    for (size_t i = 0; i < r->process_count; i++) {
        if (processes_select(&q, &r->processes[i])) {
            rows[count++] = r->processes[i];
        }
    }
    const struct store_filter filter = {.matchers = q.matchers, .matcher_count = q.matcher_count};
    TRY(store_pattern_judge(&filter, e));
    qsort(rows, count, sizeof *rows, processes_compare);
    const size_t n = count < q.limit ? count : (size_t)q.limit;
    if (n < count) {
        processes_format_place(&rows[n - 1], next);
    }
    job->answer->content_type = "application/json; charset=utf-8";
    render_processes(rows, n, *next ? next : NULL, &job->answer->body);
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
