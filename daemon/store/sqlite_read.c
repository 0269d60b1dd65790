/* Uploads read back: the numbers of all that match are found by index and put in order; then row after row is read. */
#include <stdlib.h>
#include <string.h>

#include "core/arena.h"
#include "store/labels.h"
#include "store/sqlite.h"

/* A series that matches, with what its rows share. */
struct series_info {
    int64_t id, set;
    uint32_t uid, program;
    size_t build_count;
    const uint32_t *rows;       /* of the builds, in load order; shared by the neighbours with the same set and user */
    struct store_build *builds; /* likewise */
};

struct upload_ref {
    int64_t number;
    uint32_t series; /* index of the series_info */
};

struct reading {
    struct sqlite_store *s;
    struct arena *arena;
    const struct store_filter *filter;
    struct series_info *series;
    size_t series_count, series_capacity;
    struct upload_ref *refs;
    size_t ref_count, ref_capacity;
    struct intern hosts; /* int64_t → text */
};

static enum profd_status no_memory(struct profd_error *e)
{
    return profd_error_set(e, PROFD_NO_MEMORY, "no memory to select uploads");
}

static void *grow(void *array, size_t count, size_t *capacity, size_t size)
{
    if (count < *capacity)
        return array;
    size_t wanted = *capacity == 0 ? 64 : 2 * *capacity;
    void *grown = reallocarray(array, wanted, size);
    if (grown)
        *capacity = wanted;
    return grown;
}

/* The set of builds in the current row of q; names are looked up later. */
static enum profd_status take_set(struct reading *r, sqlite3_stmt *q, struct series_info *info, struct profd_error *e)
{
    size_t n;
    const uint8_t *set = sqlite_blob(q, 4, &n);
    uint32_t *rows = ARENA_ARRAY(r->arena, n / 4 + 1, uint32_t);
    info->build_count = n / 4;
    info->builds = ARENA_ARRAY(r->arena, n / 4 + 1, struct store_build);
    info->rows = rows;
    if (!rows || !info->builds)
        return no_memory(e);
    for (size_t i = 0; i < info->build_count; i++, set += 4)
        rows[i] = (uint32_t)set[0] | (uint32_t)set[1] << 8 | (uint32_t)set[2] << 16 | (uint32_t)set[3] << 24;
    return PROFD_OK;
}

/* Takes the series in the current row of q if its labels match. */
static enum profd_status take_series(struct reading *r, sqlite3_stmt *q, struct profd_error *e)
{
    size_t n;
    const uint8_t *labels = sqlite_blob(q, 3, &n);
    if (!labels_match((const char *)labels, n, r->filter->matchers, r->filter->matcher_count))
        return PROFD_OK;
    struct series_info *grown = grow(r->series, r->series_count, &r->series_capacity, sizeof *grown);
    if (!grown)
        return no_memory(e);
    r->series = grown;
    struct series_info *info = &r->series[r->series_count];
    *info = (struct series_info){.id = sqlite3_column_int64(q, 0),
                                 .set = sqlite3_column_int64(q, 5),
                                 .uid = (uint32_t)sqlite3_column_int64(q, 1)};
    const struct series_info *before = r->series_count > 0 ? info - 1 : NULL;
    if (before && before->set == info->set && before->uid == info->uid) {
        info->build_count = before->build_count;
        info->rows = before->rows;
        info->builds = before->builds;
    } else {
        enum profd_status status = take_set(r, q, info, e);
        if (status != PROFD_OK)
            return status;
    }
    while (info->program < info->build_count && info->rows[info->program] != sqlite3_column_int64(q, 2))
        info->program++;
    r->series_count++;
    return PROFD_OK;
}

static enum profd_status name_build(struct reading *r, uint32_t id, uint32_t uid, struct store_build *build,
                                    struct profd_error *e)
{
    sqlite3_stmt *q;
    bool row = false;
    enum profd_status status = sqlite_start(r->s, SQL_BUILD_NAME, VALUES(INTEGER(id), INTEGER(0), INTEGER(uid)), &q, e);
    if (status == PROFD_OK)
        status = sqlite_next(r->s, q, &row, e);
    if (status != PROFD_OK)
        return status;
    if (!row)
        return profd_error_set(e, PROFD_DAMAGED, "database %s: a build's row is missing", r->s->path);
    const char *text = sqlite_text(q, 0), *name = sqlite_text(q, 1);
    if (strlen(text) < sizeof build->id.text)
        memcpy(build->id.text, text, strlen(text) + 1);
    build->name = arena_copy(r->arena, name, strlen(name));
    sqlite_finish(q);
    return build->name ? PROFD_OK : no_memory(e);
}

static enum profd_status name_series(struct reading *r, const struct series_info *info, struct profd_error *e)
{
    enum profd_status status = PROFD_OK;
    for (size_t i = 0; status == PROFD_OK && i < info->build_count && !info->builds[i].name; i++)
        status = name_build(r, info->rows[i], info->uid, &info->builds[i], e);
    return status;
}

static enum profd_status find_series(struct reading *r, const struct store_scope *scope, int64_t build,
                                     struct profd_error *e)
{
    sqlite3_stmt *q;
    bool row = false;
    enum profd_status status = sqlite_start(
        r->s, SQL_SERIES_OF_BUILD,
        VALUES(INTEGER(build), INTEGER(scope->all), INTEGER(scope->uid), INTEGER(r->filter->as_program)), &q, e);
    while (status == PROFD_OK && (status = sqlite_next(r->s, q, &row, e)) == PROFD_OK && row) {
        status = take_series(r, q, e);
        if (status != PROFD_OK)
            sqlite_finish(q);
    }
    for (size_t i = 0; status == PROFD_OK && i < r->series_count; i++)
        status = name_series(r, &r->series[i], e);
    return status;
}

/* Uploads of one series whose hours touch the window; the rows themselves are judged to the nanosecond. */
static enum profd_status find_numbers(struct reading *r, uint32_t series, struct profd_error *e)
{
    sqlite3_stmt *q;
    bool row = false;
    int64_t until = r->filter->until > 0 ? r->filter->until / SQLITE_HOUR : INT64_MAX;
    enum profd_status status =
        sqlite_start(r->s, SQL_UPLOAD_NUMBERS,
                     VALUES(INTEGER(r->series[series].id), INTEGER(r->filter->since / SQLITE_HOUR), INTEGER(until)), &q, e);
    while (status == PROFD_OK && (status = sqlite_next(r->s, q, &row, e)) == PROFD_OK && row) {
        struct upload_ref *grown = grow(r->refs, r->ref_count, &r->ref_capacity, sizeof *grown);
        if (!grown) {
            sqlite_finish(q);
            return no_memory(e);
        }
        r->refs = grown;
        r->refs[r->ref_count++] = (struct upload_ref){.number = sqlite3_column_int64(q, 0), .series = series};
    }
    return status;
}

static int compare_refs(const void *a, const void *b)
{
    int64_t x = ((const struct upload_ref *)a)->number, y = ((const struct upload_ref *)b)->number;
    return (x > y) - (x < y);
}

static enum profd_status find_host(struct reading *r, int64_t id, const char **host, struct profd_error *e)
{
    const char *cached = intern_find(&r->hosts, &id, sizeof id);
    if (!cached) {
        sqlite3_stmt *q;
        bool row = false;
        enum profd_status status = sqlite_start(r->s, SQL_HOST_GET, VALUES(INTEGER(id)), &q, e);
        if (status == PROFD_OK)
            status = sqlite_next(r->s, q, &row, e);
        if (status != PROFD_OK)
            return status;
        const char *text = row ? sqlite_text(q, 0) : "";
        cached = intern_put(&r->hosts, &id, sizeof id, text, strlen(text) + 1);
        if (row)
            sqlite_finish(q);
        if (!cached)
            return no_memory(e);
    }
    *host = cached;
    return PROFD_OK;
}

typedef enum profd_status upload_sink(void *context, const struct store_row *row, struct profd_error *e);

static enum profd_status give_row(struct reading *r, const struct upload_ref *ref, sqlite3_stmt *q, upload_sink *each,
                                  void *context, struct profd_error *e)
{
    const struct store_filter *f = r->filter;
    const struct series_info *info = &r->series[ref->series];
    struct store_row row = {.commit = (uint64_t)ref->number,
                            .uid = info->uid,
                            .start = sqlite3_column_int64(q, 1),
                            .end = sqlite3_column_int64(q, 1) + sqlite3_column_int64(q, 2),
                            .inexact = (uint32_t)sqlite3_column_int64(q, 3),
                            .processes_started = (uint32_t)sqlite3_column_int64(q, 4),
                            .program = info->program,
                            .build_count = info->build_count,
                            .builds = info->builds,
                            .series = (uint64_t)info->id};
    if ((f->since > 0 && row.end <= f->since) || (f->until > 0 && row.start >= f->until))
        return PROFD_OK;
    enum profd_status status = find_host(r, sqlite3_column_int64(q, 0), &row.host, e);
    row.counts = sqlite_blob(q, 5, &row.counts_size);
    return status == PROFD_OK ? each(context, &row, e) : status;
}

static enum profd_status read_rows(struct reading *r, upload_sink *each, void *context, struct profd_error *e)
{
    for (size_t i = 0; i < r->ref_count; i++) {
        sqlite3_stmt *q;
        bool row = false;
        enum profd_status status = sqlite_start(r->s, SQL_UPLOAD_GET, VALUES(INTEGER(r->refs[i].number)), &q, e);
        if (status == PROFD_OK)
            status = sqlite_next(r->s, q, &row, e);
        if (row) {
            status = give_row(r, &r->refs[i], q, each, context, e);
            sqlite_finish(q);
        }
        if (status != PROFD_OK)
            return status;
    }
    return PROFD_OK;
}

static enum profd_status select_uploads(struct reading *r, const struct store_scope *scope, struct profd_error *e)
{
    int64_t build = 0;
    bool found = false;
    enum profd_status status = sqlite_find(r->s, SQL_BUILD_FIND, VALUES(TEXT(r->filter->build_id)), &build, &found, e);
    if (status == PROFD_OK && found)
        status = find_series(r, scope, build, e);
    if (status == PROFD_OK && r->series_count > UINT32_MAX)
        status = profd_error_set(e, PROFD_LIMIT, "more than 2^32 series");
    for (size_t i = 0; status == PROFD_OK && i < r->series_count; i++)
        status = find_numbers(r, (uint32_t)i, e);
    if (status == PROFD_OK && r->ref_count > 1)
        qsort(r->refs, r->ref_count, sizeof *r->refs, compare_refs);
    return status;
}

enum profd_status sqlite_each_upload(struct store *base, const struct store_scope *scope, const struct store_filter *filter,
                                     upload_sink *each, void *context, struct profd_error *e)
{
    struct reading r = {.s = sqlite_self(base), .filter = filter, .arena = arena_new(0)};
    bool began = false;
    if (!r.arena)
        return no_memory(e);
    intern_init(&r.hosts, 0);
    enum profd_status status = sqlite_read_begin(r.s, &began, e);
    if (status == PROFD_OK) {
        status = select_uploads(&r, scope, e);
        if (status == PROFD_OK)
            status = read_rows(&r, each, context, e);
        status = sqlite_read_end(r.s, began, status, e);
    }
    intern_clear(&r.hosts);
    free(r.refs);
    free(r.series);
    arena_free(r.arena);
    return status;
}
