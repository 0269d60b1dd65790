/* /api/v1/functions: the functions of all programs with matching uploads, joined by name. */
#include <inttypes.h>
#include <nettle/sha2.h>
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

    /* One part more than any two files of a name have in common. */
    for (uint32_t first = 0, end; first < kept; first = end) {
        uint32_t parts = 1, *most = &x->parts[files[first].name];
        for (end = first + 1; end < kept && files[end].name == files[first].name;) {
            end++;
        }
        for (uint32_t i = first; end - first <= FILES_MOST && i < end; i++) {
            for (uint32_t k = i + 1; k < end; k++) {
                const uint32_t common = path_common(files[i].file, files[k].file) + 1;
                parts = common > parts ? common : parts;
            }
        }
        parts = end - first > FILES_MOST ? UINT32_MAX : parts;
        *most = parts > *most ? parts : *most;
    }
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
            struct joined_row *to = &rows[place[number]];
            to->self += row->self;
            to->total += row->total;
            sum_saturate(&to->calls, row->calls);
            sum_saturate(&to->self_calls, row->self_calls);
            to->programs += row->programs;
            to->builds += row->builds;
            to->inexact |= row->inexact;
            for (uint32_t k = 0; k < x->steps; k++) {
                to->trend[k] += row->trend[k];
            }
            to->file = path_end(to->file, path_common(to->file, row->file));
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
    struct set left_out;  /* (program, build, name) of these */
    struct buffer key;
    struct joined_rest rest;
    uint32_t inexact; /* of the program that is being added */
};

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

/* What names a function that is left out of its program's rows, in every report of the program. */
static void make_left_out(struct joined *j, const struct report *r, const struct report_function *f, uint32_t program)
{
    j->key.size = 0;
    buffer_add(&j->key, &program, sizeof program);
    buffer_add(&j->key, r->builds[f->build], strlen(r->builds[f->build]) + 1);
    buffer_add(&j->key, f->name, strlen(f->name) + 1);
    buffer_add_text(&j->key, f->file ? f->file : "");
}

/* A function may be in several builds of one report, like an inline function in libraries: it is counted once per
 * program. */
static void add_named(struct joined *j, const struct report *r, const struct report_function *f, struct set *seen)
{
    bool added, in_program, in_place;
    const uint32_t number = add_key(&j->names, &j->key, f, NULL, &added);
    if (added) {
        const char *file = f->file ? f->file : "", *object = path_end(r->build_names[f->build], 1);
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
    row->self += f->self;
    row->total += f->self + f->children;
    sum_saturate(&row->calls, f->calls);
    sum_saturate(&row->self_calls, f->self_calls);
    row->programs += in_program;
    row->builds += in_place;
    row->inexact |= j->inexact;
}

/* Adds the report of the program of that number, with the times that it shows. scratch: what only this call needs.
 * O(functions) expected. */
static void joined_add(struct joined *j, const struct report *program, uint32_t number, struct arena *scratch)
{
    const struct report *r = program->shown;
    struct set twins, seen;
    bool added;
    /* Functions of one build, name and file share a number. place: the number of each function; counts: how many
     * functions have each number. */
    uint32_t *place = ARENA_ARRAY(scratch, (size_t)r->function_count + 1, uint32_t);
    uint32_t *counts = ARENA_ARRAY(scratch, (size_t)r->function_count + 1, uint32_t);
    set_init(&twins, scratch);
    set_init(&seen, scratch);
    for (uint32_t i = 0; i < r->function_count; i++) {
        if (r->functions[i].kind == REPORT_FUNCTION) {
            place[i] = add_key(&twins, &j->key, &r->functions[i], &r->functions[i].build, &added);
            counts[place[i]]++;
        }
    }
    for (uint32_t i = 0; i < r->function_count; i++) {
        const struct report_function *f = &r->functions[i];
        if (f->index == 0 && !(f->self > 0)) {
            continue; /* no report shows it: it is no entry, and has no time */
        }
        if (f->kind == REPORT_ADDRESS || f->kind == REPORT_UNKNOWN) {
            const char *id = f->build < r->build_count ? r->builds[f->build] : "";
            set_add(&j->unnamed, id, strlen(id) + 1, &added);
            j->rest.unnamed_builds += added;
            j->rest.unnamed_functions++;
            j->rest.unnamed_seconds += f->self;
        } else if (f->kind != REPORT_FUNCTION) {
            j->rest.other_seconds += f->self;
        } else if (counts[place[i]] > 1) {
            add_key(&j->ambiguous, &j->key, f, NULL, &added);
            j->rest.ambiguous_names += added;
            make_left_out(j, r, f, number);
            set_add(&j->left_out, j->key.data, j->key.size, &added);
            j->rest.ambiguous_functions++;
            j->rest.ambiguous_seconds += f->self;
        } else {
            add_named(j, r, f, &seen);
        }
    }
    joined_files_add(&j->files, r, scratch);
    j->rest.seconds += program->total;
    sum_saturate(&j->rest.ticks, program->ticks);
    sum_saturate(&j->rest.calls, program->calls);
}

/* Adds the self times of a step of that program to the rows that its whole time has made. */
static void joined_add_step(struct joined *j, const struct report *program, uint32_t number, uint32_t step)
{
    const struct report *r = program->shown;
    for (uint32_t i = 0; i < r->function_count; i++) {
        const struct report_function *f = &r->functions[i];
        uint32_t row;
        if (f->kind != REPORT_FUNCTION || !(f->self > 0)) {
            continue;
        }
        make_left_out(j, r, f, number);
        if (set_find(&j->left_out, j->key.data, j->key.size, &row)) {
            continue;
        }
        j->key.size = 0;
        buffer_add(&j->key, f->name, strlen(f->name) + 1);
        buffer_add(&j->key, f->file ? f->file : "", f->file ? strlen(f->file) + 1 : 1);
        if (set_find(&j->names, j->key.data, j->key.size, &row)) {
            j->rows[row].trend[step] += f->self;
        }
    }
}

/* A report of a program takes a quarter of a millisecond or more. */
#define PROGRAMS_MOST 2000u
#define STEPS_MOST 100u /* of a trend */

struct joining {
    struct programs programs;
    unsigned long long limit, skip;
    const char *name;    /* only functions with this text in their name; NULL: all */
    int64_t first, last; /* times of the uploads of all programs */
    int64_t step, begin; /* of the trends; step 0: there are none */
};

/* Programs, if the window can hold anything of them. */
static bool take_build(void *context, const struct build_row *row)
{
    struct programs *p = context;
    const struct options *o = &p->options;
    ARENA_BOUNDARY(p->job->arena, false);
    if (!row->is_program || (o->until > 0 && row->first_seen >= o->until) ||
        (o->since > 0 && row->last_seen < o->since - STEPS_HOUR)) {
        return true;
    }
    p->list = arena_extend(p->job->arena, p->list, p->count, &p->capacity, sizeof *p->list);
    const char *name = job_copy(p->job, row->name);
    p->list[p->count++] = (struct program){.id = row->build_id,
                                           .name = name,
                                           .base = path_end(name, 1),
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

struct report_work programs_work(const struct programs *p, uint32_t i)
{
    const struct program *of = &p->list[i];
    struct report_work w = {.options = p->options,
                            .id = of->id,
                            .name = of->name,
                            .is_program = true,
                            .first_seen = of->first_seen,
                            .last_seen = of->last_seen,
                            .scope = OPTIONS_SCOPE_PROGRAM,
                            .without_errors = true};
    for (size_t k = 0; k < w.options.matcher_count; k++) {
        struct store_matcher *m = &w.options.matchers[k];
        if (m->absent) {
            m->absent = strcmp(m->name, "build_id") == 0 ? of->id.text : of->base;
        }
    }
    return w;
}

/* Ends the search at the first row of a program. */
static enum profd_status stop(void *found, const struct store_row *row, struct profd_error *e)
{
    (void)row;
    *(bool *)found = true;
    return profd_error_set(e, PROFD_NOTHING, "found");
}

/* Keeps the programs with most CPU time of those that the matchers select, and counts the others of these. */
static enum profd_status keep_most(struct programs *p, struct profd_error *e)
{
    uint32_t kept = 0;
    qsort(p->list, p->count, sizeof *p->list, by_time_and_id);
    for (uint32_t i = 0; i < p->count; i++) {
        const struct report_work w = programs_work(p, i);
        struct store_filter filter = work_make_filter(&w);
        bool found = filter.matcher_count == 0;
        filter.metadata = true;
        if (!found) {
            const enum profd_status status =
                store_each_upload(p->job->store, &p->options.visible, &filter, stop, &found, e);
            TRY(status == PROFD_NOTHING ? PROFD_OK : status);
            TRY(store_pattern_judge(&filter, e));
        }
        if (found && kept < PROGRAMS_MOST) {
            p->list[kept++] = p->list[i];
        } else {
            p->left += found;
        }
    }
    p->count = kept;
    qsort(p->list, p->count, sizeof *p->list, by_id);
    return PROFD_OK;
}

enum profd_status programs_find(struct programs *p, struct profd_error *e)
{
    const int64_t window[2] = {p->options.since, p->options.until};
    struct programs_tag *tag = p->tag;
    bool moved;
    if (tag && !tag->begun) {
        tag->begun = true;
        sha256_init(&tag->sha);
        TRY(store_epoch_all(p->job->store, &p->job->request->scope, &tag->epoch, e));
    }
    TRY(store_each_build(p->job->store, &p->options.visible, "", SIZE_MAX / 2, take_build, p, e));
    arena_continue(p->job->arena);
    TRY(p->count > PROGRAMS_MOST ? keep_most(p, e) : PROFD_OK);
    if (!tag) {
        return PROFD_OK;
    }
    sha256_update(&tag->sha, sizeof window, (const uint8_t *)window);
    for (uint32_t i = 0; i < p->count && (window[0] > 0 || window[1] > 0); i++) {
        struct report_work w = programs_work(p, i);
        TRY(work_check_edges(p->job, &w, &moved, e));
        const int64_t edges[2] = {w.used_since, w.used_until};
        sha256_update(&tag->sha, sizeof edges, (const uint8_t *)edges);
    }
    return PROFD_OK;
}

enum profd_status programs_set_tag(struct job *job, struct programs_tag *tag)
{
    uint8_t digest[SHA256_DIGEST_SIZE];
    sha256_digest(&tag->sha, sizeof digest, digest);
    return job_set_etag(job, digest, sizeof digest, &tag->epoch);
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

/* What the steps of a program add to the trends. Sums of an hour or a day may reach into the next step. *moved: uploads
 * became sums meanwhile, and the steps may count one twice, or others than the report of the whole time. */
static enum profd_status add_steps(const struct joining *q, uint32_t number, struct subreport *s, struct joined *j,
                                   bool *moved, struct profd_error *e)
{
    const struct program *program = &q->programs.list[number];
    const struct options *o = &q->programs.options;
    int64_t used = program->used_since;
    for (uint32_t k = 0; k < j->files.steps; k++) {
        struct report_work w = programs_work(&q->programs, number);
        const int64_t time = q->begin + k * q->step, since = time > used ? time : used, until = time + q->step;
        w.options.since = since > 0 ? since : 1;
        w.options.until = o->until > 0 && o->until < until ? o->until : until;
        if (w.options.since >= w.options.until || until <= program->first_seen ||
            time > program->last_seen + STEPS_HOUR) {
            continue;
        }
        TRY(subreport_load(s, &w, e));
        *moved |= w.used_since < used || (o->until > 0 && w.used_until > program->used_until);
        used = w.used_until > w.options.until ? w.used_until : w.options.until;
        if (w.load.provenance.uploads == 0) {
            continue;
        }
        s->ever = w.load.profile; /* self times need no other arcs */
        TRY(subreport_make(s, &w, e));
        joined_add_step(j, w.report, number, k);
    }
    return PROFD_OK;
}

/* The trends of all rows, from the first step on that can have data. */
static enum profd_status add_trends(struct joining *q, struct subreport *s, struct joined *j, bool *moved,
                                    struct profd_error *e)
{
    const struct options *o = &q->programs.options;
    const int64_t since = o->since > q->first ? o->since : q->first;
    const int64_t until = o->until > 0 && o->until <= q->last ? o->until : q->last + 1;
    q->begin = since - since % q->step;
    const int64_t steps = until > q->begin ? (until - q->begin + q->step - 1) / q->step : 0;
    FAIL_IF(steps > STEPS_MOST, e, PROFD_BAD_QUERY,
            "%" PRId64 " steps, the limit is %u; use a longer step= or a shorter time range", steps, STEPS_MOST);
    j->files.steps = (uint32_t)steps;
    for (uint32_t i = 0; i < j->names.count; i++) {
        j->rows[i].trend = ARENA_ARRAY(j->arena, (size_t)steps + 1, double);
    }
    for (uint32_t i = 0; i < q->programs.count && !*moved; i++) {
        TRY(add_steps(q, i, s, j, moved, e));
    }
    return PROFD_OK;
}

static void show(struct joining *q, struct joined *j, const int64_t edges[2])
{
    static const char *const SORTS[] = {"", "self", "total", "calls"};
    struct job *job = q->programs.job;
    struct options *o = &q->programs.options;
    const struct params *p = job->params;
    uint32_t n = 0, all = j->names.count;
    joined_files_merge(&j->files, j->rows, &all);
    for (uint32_t i = 0; i < all; i++) {
        const char *name = j->rows[i].name;
        bool any = false, watched = false; /* functions named by watch=, if there are any */
        for (size_t k = 0; k < p->count; k++) {
            if (strcmp(p->items[k].name, "watch") == 0) {
                any = true;
                watched |= watch_list_means(p->items[k].value, name);
            }
        }
        if ((watched || !any) && (!q->name || strstr(name, q->name) != NULL)) {
            j->rows[n++] = j->rows[i];
        }
    }
    if (n > 0) {
        qsort_r(j->rows, n, sizeof *j->rows, by_sort, &o->show.sort);
    }
    struct list_page page = {.size = sizeof *j->rows, .rows = j->rows, .count = n};
    const size_t end = list_cut(&page, q->skip, q->limit);
    const struct render_joined out = {.rows = page.rows,
                                      .row_count = page.count,
                                      .names = n,
                                      .next = page.more ? arena_format(job->arena, "%zu", end) : NULL,
                                      .sort = SORTS[o->show.sort],
                                      .dimension = subreport_dimension(o),
                                      .rest = &j->rest,
                                      .since = edges[0],
                                      .until = edges[1],
                                      .first = q->first,
                                      .last = q->last,
                                      .step = q->step,
                                      .begin = q->begin,
                                      .steps = j->files.steps,
                                      .short_names = o->show.short_names,
                                      .arena = job->arena};
    render_joined(&out, &job->answer->body);
}

enum profd_status joined_list(struct job *job, struct profd_error *e)
{
    const struct query_request *r = job->request;
    const char *sort = params_find(job->params, "sort");
    struct programs_tag tag = {.begun = false};
    struct joining q = {.programs = {.job = job, .tag = &tag}};
    struct programs *programs = &q.programs;
    uint32_t *by = &programs->options.show.sort;
    struct joined j;
    struct arena *arena = arena_new_child(job->arena, 0); /* of one attempt */
    struct subreport subreport;
    int64_t edges[2] = {0, 0};
    TRY(job_parse_page(job, &q.limit, e));
    TRY(params_parse_number(job->params, "cursor", 0, UINT32_MAX, &q.skip, e));
    TRY(options_parse(job->params, &r->scope, r->http, r->now, false, job->arena, &programs->options, e));
    FAIL_IF(sort && *by == RENDER_SORT_INDEX, e, PROFD_BAD_QUERY, "sort=%s is none of: self, total, calls", sort);
    *by = *by == RENDER_SORT_INDEX ? RENDER_SORT_SELF : *by;
    TRY(steps_parse(job, 0, &q.step, e));
    q.name = params_find(job->params, "name");
    FAIL_IF(q.name && q.name[0] == '\0', e, PROFD_BAD_QUERY, "name= must say what to search for");
    TRY(programs_find(programs, e));
    TRY(programs_set_tag(job, &tag));

    subreport_init(&subreport, job);
    for (bool moved = true; moved;) {
        moved = false;
        arena_reset(arena);
        j = (struct joined){.arena = arena, .rest.programs_left = programs->left};
        subreport.ever = NULL;
        set_init(&j.names, arena);
        set_init(&j.places, arena);
        set_init(&j.unnamed, arena);
        set_init(&j.ambiguous, arena);
        set_init(&j.left_out, arena);
        joined_files_init(&j.files, arena);
        buffer_init_arena(&j.key, arena);
        for (uint32_t i = 0; i < programs->count; i++) {
            struct report_work w = programs_work(programs, i);
            TRY(subreport_load(&subreport, &w, e));
            const struct provenance *from = &w.load.provenance;
            programs->list[i].used_since = w.used_since;
            programs->list[i].used_until = w.used_until;
            if (from->uploads == 0) {
                continue;
            }
            const bool first = j.rest.programs++ == 0;
            edges[0] = first || w.used_since < edges[0] ? w.used_since : edges[0];
            edges[1] = first || w.used_until > edges[1] ? w.used_until : edges[1];
            q.first = first || from->first < q.first ? from->first : q.first;
            q.last = first || from->last > q.last ? from->last : q.last;
            j.rest.uploads += from->uploads;
            j.rest.processes += from->processes;
            j.inexact = from->inexact;
            j.rest.inexact |= j.inexact;
            TRY(subreport_make(&subreport, &w, e));
            joined_add(&j, w.report, i, subreport.job.arena);
        }
        TRY(q.step > 0 && j.rest.programs > 0 ? add_trends(&q, &subreport, &j, &moved, e) : PROFD_OK);
    }
    show(&q, &j, edges);
    return PROFD_OK;
}
