#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "core/sum.h"
#include "proto/message.h"
#include "store/sqlite_verify.h"

struct part_key {
    int64_t build, uid;
};

/* Sums of everything, computed again. */
struct round {
    struct sqlite_verifying *v;
    struct hashmap shown; /* build, uid → struct sqlite_shown */
    uint64_t uploads, ticks, calls, raw_uploads, raw_bytes, live_bytes;
};

/* Adds a row of SQL_SERIES_EVERY. */
static enum profd_status add_series(struct round *r, sqlite3_stmt *q, struct profd_error *e)
{
    struct sqlite_sums sums;
    size_t n;
    bool saturated = false;
    const uint8_t *set = sqlite_blob(q, SQLITE_SUM_COLUMNS, &n);
    if (n / 4 > LIMIT_BUILDS) {
        return profd_error_set(e, PROFD_DAMAGED, "database %s: a set of %zu builds", r->v->s->path, n / 4);
    }
    enum profd_status status = sqlite_sums_read(r->v->s, q, n / 4, &sums, e);
    sum_add(&r->uploads, sums.uploads, &saturated);
    sum_add(&r->ticks, sums.ticks, &saturated);
    sum_add(&r->calls, sums.calls, &saturated);
    sum_add(&r->raw_uploads, sums.raw_uploads, &saturated);
    sum_add(&r->raw_bytes, sums.raw_bytes, &saturated);
    sum_add(&r->live_bytes, sums.live_bytes, &saturated);
    for (size_t i = 0; status == PROFD_OK && i < n / 4; i++) {
        struct part_key key = {.build = sqlite_set_build(set, i),
                               .uid = sqlite3_column_int64(q, SQLITE_SUM_COLUMNS + 2)};
        struct sqlite_shown *x = hashmap_find(&r->shown, &key, sizeof key),
                            none = {.first = INT64_MAX, .last = INT64_MIN};
        if (!x) {
            x = hashmap_put(&r->shown, &key, sizeof key, &none, sizeof none);
        }
        if (!x) {
            return profd_no_memory(e);
        }
        sqlite_shown_add(x, &sums, i, sqlite3_column_int64(q, SQLITE_SUM_COLUMNS + 1) == key.build);
    }
    return status;
}

/* Compares a row of SQL_BUILD_USERS with the series. */
static void compare_shown(struct round *r, sqlite3_stmt *q)
{
    struct part_key key = {.build = sqlite3_column_int64(q, 0), .uid = sqlite3_column_int64(q, 1)};
    struct sqlite_shown *x = hashmap_find(&r->shown, &key, sizeof key);
    char where[96];
    uint32_t mask = ~(uint32_t)INEXACT_SATURATED;
    snprintf(where, sizeof where, "build %" PRId64 " of user %" PRId64, key.build, key.uid);
    if (!x || x->uploads == 0) {
        sqlite_verify_tell(r->v, "%s is listed, but no series has it", where);
        return;
    }
    static const char in_list[] = "list of builds", in_series[] = "series";
    sqlite_verify_equal(r->v, where, "being a program", in_list, (uint64_t)sqlite3_column_int64(q, 2), in_series,
                        x->is_program);
    sqlite_verify_equal(r->v, where, "earliest start", in_list, (uint64_t)sqlite3_column_int64(q, 3), in_series,
                        (uint64_t)x->first);
    sqlite_verify_equal(r->v, where, "latest end", in_list, (uint64_t)sqlite3_column_int64(q, 4), in_series,
                        (uint64_t)x->last);
    sqlite_verify_equal(r->v, where, "uploads", in_list, (uint64_t)sqlite3_column_int64(q, 5), in_series, x->uploads);
    sqlite_verify_equal(r->v, where, "processes", in_list, (uint64_t)sqlite3_column_int64(q, 6), in_series,
                        x->processes);
    sqlite_verify_equal(r->v, where, "nanoseconds", in_list, (uint64_t)sqlite3_column_int64(q, 7), in_series,
                        x->nanoseconds);
    sqlite_verify_equal(r->v, where, "calls", in_list, (uint64_t)sqlite3_column_int64(q, 8), in_series, x->calls);
    sqlite_verify_equal(r->v, where, "reasons for inexactness", in_list, (uint64_t)sqlite3_column_int64(q, 9) & mask,
                        in_series, x->inexact & mask);
    x->uploads = 0; /* seen */
}

static enum profd_status each_row(struct round *r, enum sqlite_sql which, bool is_series, struct profd_error *e)
{
    sqlite3_stmt *q;
    TRY(sqlite_start(r->v->s, which, NULL, 0, &q, e));
    enum profd_status status = PROFD_OK;
    while (sqlite_row(r->v->s, q, &status, e)) {
        if (is_series) {
            status = add_series(r, q, e);
        } else {
            compare_shown(r, q);
        }
    }
    return status;
}

static void compare_unlisted(struct round *r)
{
    size_t position = 0;
    const void *key;
    for (const struct sqlite_shown *x; (x = hashmap_next(&r->shown, &position, &key));) {
        struct part_key copy;
        memcpy(&copy, key, sizeof copy);
        if (x->uploads > 0) {
            sqlite_verify_tell(r->v, "build %" PRId64 " of user %" PRId64 " has %" PRIu64 " uploads and is in no list",
                               copy.build, copy.uid, x->uploads);
        }
    }
}

static enum profd_status compare_totals(struct round *r, struct profd_error *e)
{
    static const char accepted[] = "total accepted", parts[] = "series and what was retired";
    struct sqlite_state t;
    bool saturated = false, found;
    int64_t doomed = 0, raw = 0, rollups = 0;
    struct store *s = r->v->s;
    TRY(sqlite_load_state(s, &t, e));
    TRY(sqlite_find(s, SQL_DOOMED_COUNT, NULL, 0, &doomed, &found, e));
    TRY(sqlite_find(s, SQL_RAW_COUNT, NULL, 0, &raw, &found, e));
    TRY(sqlite_find(s, SQL_ROLLUP_COUNT, NULL, 0, &rollups, &found, e));
    sum_add(&r->uploads, t.retired_uploads, &saturated);
    sum_add(&r->ticks, t.retired_ticks, &saturated);
    sum_add(&r->calls, t.retired_calls, &saturated);
    sqlite_verify_equal(r->v, "all", "uploads", accepted, t.uploads, parts, r->uploads);
    sqlite_verify_equal(r->v, "all", "ticks", accepted, t.ticks, parts, r->ticks);
    sqlite_verify_equal(r->v, "all", "calls", accepted, t.calls, parts, r->calls);
    sqlite_verify_equal(r->v, "all", "single uploads", "total", t.raw_uploads, "series", r->raw_uploads);
    sqlite_verify_equal(r->v, "all", "bytes of single uploads", "total", t.raw_bytes, "series", r->raw_bytes);
    sqlite_verify_equal(r->v, "all", "bytes of live processes", "total", t.live_bytes, "series", r->live_bytes);
    sqlite_verify_equal(r->v, "all", "sums", "total", t.rollups, "rows", (uint64_t)rollups);
    if (doomed == 0) { /* otherwise rows of deleted series still exist */
        sqlite_verify_equal(r->v, "all", "single uploads", "total", t.raw_uploads, "rows", (uint64_t)raw);
    }
    return PROFD_OK;
}

/* Checks rows that the walk through series and hours does not reach. */
static enum profd_status find_orphans(struct round *r, struct profd_error *e)
{
    static const struct {
        enum sqlite_sql which;
        const char *what;
    } kinds[] = {{SQL_RAW_ORPHAN, "an upload"},
                 {SQL_ROLLUP_ORPHAN, "a sum"},
                 {SQL_LEDGER_ORPHAN, "a row of the ledger"},
                 {SQL_HOST_TOTAL_ORPHAN, "a total of a host"},
                 {SQL_ROLLUP_PROCESSES_ORPHAN, "a row of processes by group"}};
    int64_t upload = 0, doomed = 0;
    bool lone = false, found_count;
    TRY(sqlite_find(r->v->s, SQL_DOOMED_COUNT, NULL, 0, &doomed, &found_count, e));
    if (doomed == 0) { /* otherwise slices of deleted series still exist */
        TRY(sqlite_find(r->v->s, SQL_SLICE_LONE, NULL, 0, &upload, &lone, e));
    }
    if (lone) {
        sqlite_verify_tell(r->v, "a slice of a live process names upload %" PRId64 ", which is none of its", upload);
    }
    for (size_t i = 0; i < sizeof kinds / sizeof kinds[0]; i++) {
        int64_t series = 0;
        bool found = false;
        TRY(sqlite_find(r->v->s, kinds[i].which, NULL, 0, &series, &found, e));
        if (found) {
            sqlite_verify_tell(r->v, "series %" PRId64 ": %s stands alone: nothing accounts for it", series,
                               kinds[i].what);
        }
    }
    return PROFD_OK;
}

enum profd_status sqlite_verify_round(struct sqlite_verifying *v, struct profd_error *e)
{
    struct round r = {.v = v};
    hashmap_init(&r.shown, 0);
    enum profd_status status = each_row(&r, SQL_SERIES_EVERY, true, e);
    if (status == PROFD_OK) {
        status = each_row(&r, SQL_BUILD_USERS, false, e);
    }
    if (status == PROFD_OK) {
        compare_unlisted(&r);
        status = compare_totals(&r, e);
    }
    if (status == PROFD_OK) {
        status = find_orphans(&r, e);
    }
    if (status == PROFD_OK) {
        status = sqlite_verify_instances(v, e);
    }
    if (status == PROFD_OK) {
        status = sqlite_verify_users(v, e);
    }
    if (status == PROFD_OK) {
        status = sqlite_verify_segments(v, e);
    }
    if (status == PROFD_OK) {
        status = sqlite_verify_arrivals(v, e);
    }
    hashmap_clear(&r.shown);
    return status;
}
