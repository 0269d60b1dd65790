/* /api/v1/functions: the functions of all programs with matching uploads, joined by name. */
#include <nettle/sha2.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "proto/sum.h"
#include "core/watch_list.h"
#include "query/query_internal.h"

#define FILES_MOST 64u /* of one name in one report */

struct named_file {
    uint32_t name;
    const char *file;
};

void joined_files_init(struct joined_files *x, struct arena *a)
{
    *x = (struct joined_files){.arena = a};
    set_init(&x->names, a);
}

/* The last n parts of a path; all of it if it has no more. */
static const char *path_end(const char *path, uint32_t n)
{
    const char *at = path + strlen(path);
    for (; at > path; at--) {
        if (at[-1] == '/' && n-- <= 1) {
            break;
        }
    }
    return at;
}

/* The last part of a path. */
static const char *joined_files_base(const char *path)
{
    return path_end(path, 1);
}

/* How many parts at the end of two paths are equal. */
static uint32_t path_common(const char *a, const char *b)
{
    size_t i = strlen(a), j = strlen(b);
    uint32_t n = 0;
    while (i > 0 && j > 0 && a[i - 1] == b[j - 1]) {
        n += a[i - 1] == '/';
        i--;
        j--;
    }
    return n + ((i == 0 || a[i - 1] == '/') && (j == 0 || b[j - 1] == '/') && (i > 0 || j > 0 || a[0] != '/'));
}

static int file_compare(const void *left, const void *right)
{
    const struct named_file *a = left, *b = right;
    return a->name != b->name ? (a->name < b->name ? -1 : 1) : strcmp(a->file, b->file);
}

/* Of n files of one name, each once. */
static uint32_t find_parts(const struct named_file *files, uint32_t n)
{
    uint32_t most = 0;
    for (uint32_t i = 0; n <= FILES_MOST && i < n; i++) {
        for (uint32_t k = i + 1; k < n; k++) {
            uint32_t common = path_common(files[i].file, files[k].file);
            most = common > most ? common : most;
        }
    }
    return n > FILES_MOST ? UINT32_MAX : most + 1;
}

void joined_files_add(struct joined_files *x, const struct report *r, struct arena *scratch)
{
    uint32_t n = 0, kept = 0;
    struct named_file *files = ARENA_ARRAY(scratch, (size_t)r->function_count + 1, struct named_file);
    for (uint32_t i = 0; i < r->function_count; i++) {
        const struct report_function *f = &r->functions[i];
        bool added;
        if (f->kind != REPORT_FUNCTION || !f->file || f->file[0] == '\0') {
            continue;
        }
        struct named_file *file = &files[n++];
        file->file = f->file;
        file->name = set_add(&x->names, f->name, strlen(f->name) + 1, &added);
        if (added) {
            x->parts = arena_extend(x->arena, x->parts, file->name, &x->capacity, sizeof *x->parts);
            x->parts[file->name] = 1;
        }
    }
    qsort(files, n, sizeof *files, file_compare);
    for (uint32_t i = 0; i < n; i++) {
        if (kept == 0 || file_compare(&files[kept - 1], &files[i]) != 0) {
            files[kept++] = files[i];
        }
    }
    for (uint32_t i = 0, end; i < kept; i = end) {
        for (end = i + 1; end < kept && files[end].name == files[i].name;) {
            end++;
        }
        uint32_t parts = find_parts(files + i, end - i);
        x->parts[files[i].name] = parts > x->parts[files[i].name] ? parts : x->parts[files[i].name];
    }
}

static void add_row(struct joined_row *to, const struct joined_row *from)
{
    bool saturated = false;
    to->self += from->self;
    to->total += from->total;
    sum_add(&to->calls, from->calls, &saturated);
    sum_add(&to->self_calls, from->self_calls, &saturated);
    to->programs += from->programs;
    to->builds += from->builds;
    to->file = path_end(to->file, path_common(to->file, from->file));
}

void joined_files_merge(const struct joined_files *x, struct joined_row *rows, uint32_t *count)
{
    struct set ends;
    struct buffer key;
    uint32_t kept = 0, number = 0, *place = ARENA_ARRAY(x->arena, (size_t)*count + 1, uint32_t);
    set_init(&ends, x->arena);
    buffer_init_arena(&key, x->arena);
    for (uint32_t i = 0; i < *count; i++) {
        const struct joined_row *row = &rows[i];
        bool added = true;
        uint32_t name;
        if (row->file[0] != '\0' && set_find(&x->names, row->name, strlen(row->name) + 1, &name)) {
            const char *end = path_end(row->file, x->parts[name]);
            key.size = 0;
            buffer_add(&key, row->name, strlen(row->name) + 1);
            buffer_add(&key, row->object, strlen(row->object) + 1);
            buffer_add_text(&key, end);
            number = set_add(&ends, key.data, key.size, &added);
            if (added) {
                place[number] = kept;
            }
        }
        if (added) {
            rows[kept++] = *row;
        } else {
            add_row(&rows[place[number]], row);
        }
    }
    *count = kept;
}

/* Functions of many reports, joined by name. */

/* Two functions are the same if they have one demangled name and one file, where the symbol table names one, as it does
 * for what a file keeps to itself; files may differ in their directories (joined_files_merge). If a build has two such,
 * none of that name in it is joined. */
struct joined {
    struct arena *arena;
    struct set names; /* name NUL file NUL */
    struct joined_files files;
    struct joined_row *rows;
    uint32_t capacity;
    struct set places;    /* (name, build): how many builds a name is of */
    struct set unnamed;   /* builds without names */
    struct set ambiguous; /* names that were left out somewhere */
    struct buffer key;
    struct joined_rest rest;
};

#define NOT_JOINED UINT32_MAX

static void joined_init(struct joined *j, struct arena *a)
{
    *j = (struct joined){.arena = a};
    set_init(&j->names, a);
    joined_files_init(&j->files, a);
    set_init(&j->places, a);
    set_init(&j->unnamed, a);
    set_init(&j->ambiguous, a);
    buffer_init_arena(&j->key, a);
}

/* name NUL file NUL, preceded by a build's number if there is one. */
static uint32_t add_key(struct set *to, struct buffer *key, const struct report_function *f, const uint32_t *build,
                        bool *added)
{
    const char *file = f->file ? f->file : "";
    key->size = 0;
    if (build) {
        buffer_add(key, build, sizeof *build);
    }
    buffer_add(key, f->name, strlen(f->name) + 1);
    buffer_add(key, file, strlen(file) + 1);
    return set_add(to, key->data, key->size, added);
}

/* Is it something that a report has to show: an entry, or with time? */
static bool is_shown(const struct report_function *f)
{
    return f->index != 0 || f->self > 0;
}

/* A function may be in several builds of one report, like an inline function in libraries: it is counted once per
 * program. */
static void add_named(struct joined *j, const struct report *r, const struct report_function *f, struct set *seen)
{
    bool added, in_program, in_place;
    const uint32_t number = add_key(&j->names, &j->key, f, NULL, &added);
    if (added) {
        const char *file = f->file ? f->file : "", *object = joined_files_base(r->build_names[f->build]);
        j->rows = arena_extend(j->arena, j->rows, number, &j->capacity, sizeof *j->rows);
        j->rows[number] = (struct joined_row){.name = arena_copy(j->arena, f->name, strlen(f->name)),
                                              .file = arena_copy(j->arena, file, strlen(file)),
                                              .object = arena_copy(j->arena, object, strlen(object))};
    }
    set_add(seen, &number, sizeof number, &in_program);
    j->key.size = 0;
    buffer_add(&j->key, &number, sizeof number);
    buffer_add_text(&j->key, r->builds[f->build]);
    set_add(&j->places, j->key.data, j->key.size, &in_place);
    struct joined_row *row = &j->rows[number];
    bool saturated = false;
    row->self += f->self;
    row->total += f->self + f->children;
    sum_add(&row->calls, f->calls, &saturated);
    sum_add(&row->self_calls, f->self_calls, &saturated);
    row->programs += in_program;
    row->builds += in_place;
}

/* How many functions of the report have each function's build, name and file. */
static void count_twins(const struct report *r, struct arena *scratch, struct buffer *key, uint32_t **place,
                        uint32_t **counts)
{
    struct set twins;
    bool added;
    set_init(&twins, scratch);
    *place = ARENA_ARRAY(scratch, (size_t)r->function_count + 1, uint32_t);
    *counts = ARENA_ARRAY(scratch, (size_t)r->function_count + 1, uint32_t);
    for (uint32_t i = 0; i < r->function_count; i++) {
        (*place)[i] = NOT_JOINED;
        if (r->functions[i].kind == REPORT_FUNCTION) {
            (*place)[i] = add_key(&twins, key, &r->functions[i], &r->functions[i].build, &added);
            (*counts)[(*place)[i]]++;
        }
    }
}

static void add_functions(struct joined *j, const struct report *r, struct arena *scratch)
{
    uint32_t *place, *counts;
    struct set seen;
    count_twins(r, scratch, &j->key, &place, &counts);
    set_init(&seen, scratch);
    for (uint32_t i = 0; i < r->function_count; i++) {
        const struct report_function *f = &r->functions[i];
        if (!is_shown(f)) {
            continue;
        }
        if (f->kind == REPORT_ADDRESS || f->kind == REPORT_UNKNOWN) {
            bool added = false;
            const char *id = f->build < r->build_count ? r->builds[f->build] : "";
            set_add(&j->unnamed, id, strlen(id) + 1, &added);
            j->rest.unnamed_builds += added;
            j->rest.unnamed_functions++;
            j->rest.unnamed_seconds += f->self;
        } else if (f->kind != REPORT_FUNCTION) {
            j->rest.other_seconds += f->self;
        } else if (counts[place[i]] > 1) {
            bool added = false;
            add_key(&j->ambiguous, &j->key, f, NULL, &added);
            j->rest.ambiguous_names += added;
            j->rest.ambiguous_functions++;
            j->rest.ambiguous_seconds += f->self;
        } else {
            add_named(j, r, f, &seen);
        }
    }
}

/* Adds one program's report, with the times that it shows. scratch: what only this call needs. O(functions) expected.
 */
static void joined_add(struct joined *j, const struct report *r, struct arena *scratch)
{
    bool saturated = false;
    add_functions(j, r->shown, scratch);
    joined_files_add(&j->files, r->shown, scratch);
    j->rest.seconds += r->total;
    sum_add(&j->rest.ticks, r->ticks, &saturated);
    sum_add(&j->rest.calls, r->calls, &saturated);
}

/* A report of a program takes a quarter of a millisecond or more. */
#define PROGRAMS_MOST 2000u

struct program {
    struct buildid id;
    const char *name;
    int64_t first_seen, last_seen;
    uint64_t nanoseconds;
};

struct asking {
    struct job *job;
    struct options options;
    unsigned long long limit, skip;
    const char *name; /* only functions with this text in their name; NULL: all */
    struct program *programs;
    uint32_t count, left, capacity; /* left: they have less CPU time than the others, and are not read */
};

/* Programs, if the window can hold anything of them. */
static bool take_build(void *context, const struct build_row *row)
{
    struct asking *q = context;
    const struct options *o = &q->options;
    ARENA_BOUNDARY(q->job->arena, false);
    if (!row->is_program || (o->until > 0 && row->first_seen >= o->until) ||
        (o->since > 0 && row->last_seen < o->since - INT64_C(3600000000000))) {
        return true;
    }
    q->programs = arena_extend(q->job->arena, q->programs, q->count, &q->capacity, sizeof *q->programs);
    q->programs[q->count++] = (struct program){.id = row->build_id,
                                               .name = job_copy(q->job, row->name),
                                               .first_seen = row->first_seen,
                                               .last_seen = row->last_seen,
                                               .nanoseconds = row->nanoseconds};
    return true;
}

static int by_time_and_id(const void *left, const void *right)
{
    const struct program *a = left, *b = right;
    const int order = (a->nanoseconds < b->nanoseconds) - (a->nanoseconds > b->nanoseconds);
    return order != 0 ? order : strcmp(a->id.text, b->id.text);
}

/* The order decides how times are rounded. */
static int by_id(const void *left, const void *right)
{
    return strcmp(((const struct program *)left)->id.text, ((const struct program *)right)->id.text);
}

static struct work work_of(const struct asking *q, const struct program *p)
{
    return (struct work){.options = q->options,
                         .id = p->id,
                         .name = p->name,
                         .is_program = true,
                         .first_seen = p->first_seen,
                         .last_seen = p->last_seen,
                         .scope = OPTIONS_SCOPE_PROGRAM,
                         .without_errors = true};
}

/* Digest of the window. Where its edges come to lie depends on the program, so the digest covers the edges of each. */
static enum profd_status find_edges(struct asking *q, uint8_t digest[SHA256_DIGEST_SIZE], struct profd_error *e)
{
    struct sha256_ctx sha;
    bool moved;
    const int64_t window[2] = {q->options.since, q->options.until};
    sha256_init(&sha);
    sha256_update(&sha, sizeof window, (const uint8_t *)window);
    for (uint32_t i = 0; i < q->count && (q->options.since > 0 || q->options.until > 0); i++) {
        struct work w = work_of(q, &q->programs[i]);
        TRY(work_check_edges(q->job, &w, &moved, e));
        int64_t edges[2] = {w.used_since, w.used_until};
        sha256_update(&sha, sizeof edges, (const uint8_t *)edges);
    }
    sha256_digest(&sha, SHA256_DIGEST_SIZE, digest);
    return PROFD_OK;
}

static enum profd_status set_tag(struct asking *q, struct profd_error *e)
{
    uint8_t digest[SHA256_DIGEST_SIZE];
    struct store_epoch epoch;
    TRY(store_epoch_all(q->job->store, &q->job->request->scope, &epoch, e));
    TRY(store_each_build(q->job->store, &q->options.visible, "", SIZE_MAX / 2, take_build, q, e));
    arena_continue(q->job->arena);
    if (q->count > PROGRAMS_MOST) {
        qsort(q->programs, q->count, sizeof *q->programs, by_time_and_id);
        q->left = q->count - PROGRAMS_MOST;
        q->count = PROGRAMS_MOST;
        qsort(q->programs, q->count, sizeof *q->programs, by_id);
    }
    TRY(find_edges(q, digest, e));
    return job_set_etag(q->job, digest, sizeof digest, &epoch);
}

static void widen(int64_t *since, int64_t *until, const struct work *w, bool first)
{
    *since = first || w->used_since < *since ? w->used_since : *since;
    *until = first || w->used_until > *until ? w->used_until : *until;
}

static enum profd_status add_programs(struct asking *q, struct subreport *subreport, struct joined *j, int64_t edges[2],
                                      struct profd_error *e)
{
    for (uint32_t i = 0; i < q->count; i++) {
        struct work w = work_of(q, &q->programs[i]);
        TRY(subreport_load(subreport, &w, e));
        const struct provenance *from = &w.load.provenance;
        if (from->uploads == 0) {
            continue;
        }
        widen(&edges[0], &edges[1], &w, j->rest.programs == 0);
        j->rest.programs++;
        j->rest.uploads += from->uploads;
        j->rest.processes += from->processes;
        j->rest.inexact |= from->inexact;
        TRY(subreport_make(subreport, &w, e));
        joined_add(j, w.report, subreport->job.arena);
    }
    return PROFD_OK;
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

/* Is it one of watch=, if there are any, and does it have the text of name=? */
static bool is_wanted(const struct asking *q, const char *name)
{
    const struct params *p = q->job->params;
    bool any = false, wanted = false;
    for (size_t i = 0; i < p->count; i++) {
        if (strcmp(p->items[i].name, "watch") == 0) {
            any = true;
            wanted |= watch_list_means(p->items[i].value, name);
        }
    }
    return (wanted || !any) && (!q->name || strstr(name, q->name) != NULL);
}

static void show(struct asking *q, struct joined *j, const int64_t edges[2])
{
    static const char *const SORTS[] = {"", "self", "total", "calls"};
    uint32_t n = 0, all = j->names.count;
    char next[24] = "";
    joined_files_merge(&j->files, j->rows, &all);
    for (uint32_t i = 0; i < all; i++) {
        if (is_wanted(q, j->rows[i].name)) {
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
    TRY(job_parse_page(q->job, &q->limit, e));
    TRY(params_parse_number(p, "cursor", 0, UINT32_MAX, &q->skip, e));
    TRY(options_parse(p, &r->scope, r->http, r->now, false, q->job->arena, &q->options, e));
    if (sort && q->options.show.sort == RENDER_SORT_INDEX) {
        return profd_error_set(e, PROFD_BAD_QUERY, "sort=%s is none of: self, total, calls", sort);
    }
    if (q->options.show.sort == RENDER_SORT_INDEX) {
        q->options.show.sort = RENDER_SORT_SELF;
    }
    q->name = params_find(p, "name");
    if (q->name && q->name[0] == '\0') {
        return profd_error_set(e, PROFD_BAD_QUERY, "name= must say what to search for");
    }
    return PROFD_OK;
}

enum profd_status joined_list(struct job *job, struct profd_error *e)
{
    struct asking q = {.job = job};
    int64_t edges[2] = {0, 0};
    struct joined j;
    struct subreport subreport;
    TRY(parse(&q, e));
    TRY(set_tag(&q, e));
    joined_init(&j, job->arena);
    j.rest.programs_left = q.left;
    subreport_init(&subreport, job);
    TRY(add_programs(&q, &subreport, &j, edges, e));
    show(&q, &j, edges);
    return PROFD_OK;
}
