/* A database of version 1 is copied into a new one beside it, which then takes its name: until then nothing was
 * changed, so that a kill, a full disk or a damaged row leave what there was. The copy gives its free pages back
 * (auto_vacuum), which the old file could not. Needs as much space again while it runs. */
#include <stdio.h>
#include <string.h>

#include "proto/message.h"
#include "store/sqlite_migrate.h"

#define TALLY_BYTES (64u << 20) /* sums held before they are written */

/* Version 1: rows that are copied unchanged, with their ids. */
static const char *const copy_v1[] = {
    "INSERT INTO main.host (id, machine) SELECT id, machine FROM old.host",
    "INSERT INTO main.build (id, build_id, epoch, named) SELECT id, build_id, epoch, named FROM old.build",
    "INSERT INTO main.build_set (id, builds) SELECT id, builds FROM old.build_set",
    "INSERT INTO main.build_set_member (build, build_set) SELECT build, build_set FROM old.build_set_member",
    "INSERT INTO main.build_set_user (build_set, uid) SELECT build_set, uid FROM old.build_set_user",
    "INSERT INTO main.series (id, build_set, uid, program, labels, uploads, processes, ticks, calls, first, last, "
    "inexact, "
    "raw_uploads, raw_bytes, shares) SELECT id, build_set, uid, program, labels, 0, 0, 0, 0, 0, 0, 0, 0, 0, x'' FROM "
    "old.series",
    "INSERT INTO main.sender (host, uid, sender, mark, seen, above) SELECT host, uid, sender, mark, seen, above FROM "
    "old.sender",
    "INSERT INTO main.build_user (build, uid, epoch, added, is_program, first, last, uploads, processes, nanoseconds, "
    "calls, "
    "inexact, name) SELECT build, uid, epoch, added, is_program, first, last, uploads, processes, nanoseconds, calls, "
    "inexact, "
    "name FROM old.build_user",
    "INSERT INTO main.user_epoch (uid, epoch) SELECT uid, epoch FROM old.user_epoch",
    "INSERT INTO main.object (id, build, variant, has_names, size, compressed, bounds, encoded) SELECT id, build, "
    "variant, "
    "has_names, size, compressed, bounds, encoded FROM old.object",
    "INSERT INTO main.object_sender (object, uid, trusted, delivered, name, note, received) SELECT object, uid, "
    "trusted, "
    "delivered, name, note, unixepoch() * 1000000000 FROM old.object_sender",
    "UPDATE main.state SET (number, list_epoch, uploads, ticks, calls) = (SELECT number, list_epoch, uploads, ticks, "
    "calls FROM old.state)",
};

static enum profd_status run(struct sqlite_store *s, const char *sql, struct profd_error *e)
{
    return sqlite3_exec(s->db, sql, NULL, NULL, NULL) == SQLITE_OK ? PROFD_OK : sqlite_fail(s, e);
}

/* Copies the upload in the current row of q and adds it to the sums. One that cannot be decoded is kept; verification
 * reports it. */
static enum profd_status copy_upload(struct sqlite_store *s, struct sqlite_tally *t, sqlite3_stmt *q,
                                     struct profd_error *e)
{
    struct counts c;
    size_t n, set_size;
    bool saturated = false;
    int64_t number = sqlite3_column_int64(q, 0), series = sqlite3_column_int64(q, 1),
            start = sqlite3_column_int64(q, 3);
    int64_t end = start + sqlite3_column_int64(q, 4);
    const uint8_t *counts = sqlite_blob(q, 7, &n);
    (void)sqlite_blob(q, 8, &set_size);
    size_t builds = set_size / 4;
    if (builds > LIMIT_BUILDS || end < start || start < 0) {
        return profd_error_set(e, PROFD_DAMAGED, "upload %lld breaks the rules of its table", (long long)number);
    }
    struct sqlite_sums *sums = sqlite_tally_sums(t, series, end / SQLITE_HOUR, builds), one;
    if (!sums) {
        return profd_error_set(e, PROFD_NO_MEMORY, "no memory to sum uploads up");
    }
    sqlite_sums_init(&one, builds);
    one.uploads = one.raw_uploads = 1;
    one.raw_bytes = n;
    one.processes = (uint64_t)sqlite3_column_int64(q, 6);
    one.inexact = (uint32_t)sqlite3_column_int64(q, 5);
    one.first = start;
    one.last = end;
    one.raw_since = end / 1000000000; /* the time of acceptance was not stored */
    if (counts_decode(counts, n, (uint32_t)builds, &c, NULL) == PROFD_OK) {
        counts_totals(&c, &one.ticks, &one.calls);
        saturated = share_add_counts(one.shares, &c);
        counts_done(&c);
    }
    one.inexact |= saturated ? (uint32_t)INEXACT_SATURATED : 0;
    sqlite_sums_add(sums, &one);
    s->state.raw_uploads++;
    s->state.raw_bytes += n;
    /* Its process is unknown, so it counts as one process, in a group derived from its number. */
    uint64_t group = (uint64_t)number * UINT64_C(0x9e3779b97f4a7c15) >> 60;
    return sqlite_run(s, SQL_UPLOAD_ADD,
                      VALUES(INTEGER(number), INTEGER(series), INTEGER(end / SQLITE_HOUR),
                             INTEGER(sqlite3_column_int64(q, 2)), INTEGER(start), INTEGER(end - start),
                             INTEGER(one.inexact), INTEGER(one.processes), INTEGER(group), BLOB(counts, n), INTEGER(0),
                             INTEGER(0)),
                      e);
}

static enum profd_status copy_uploads(struct sqlite_store *s, struct profd_error *e)
{
    static const char sql[] =
        "SELECT u.number, u.series, u.host, u.start, u.length, u.inexact, u.started, u.counts, t.builds "
        "FROM old.upload u CROSS JOIN old.series r ON r.id=u.series "
        "CROSS JOIN old.build_set t ON t.id=r.build_set ORDER BY u.number";
    struct sqlite_tally tally;
    sqlite3_stmt *q = NULL;
    enum profd_status status = sqlite3_prepare_v2(s->db, sql, -1, &q, NULL) == SQLITE_OK ? PROFD_OK : sqlite_fail(s, e);
    sqlite_tally_init(&tally);
    for (bool row = true; status == PROFD_OK && row;) {
        int rc = sqlite3_step(q);
        row = rc == SQLITE_ROW;
        if (row) {
            status = copy_upload(s, &tally, q, e);
        } else if (rc != SQLITE_DONE) {
            status = sqlite_fail(s, e);
        }
        if (status == PROFD_OK && (!row || tally.hours.bytes > TALLY_BYTES)) {
            status = sqlite_tally_flush(s, &tally, e);
        }
    }
    sqlite_tally_done(&tally);
    sqlite3_finalize(q);
    return status;
}

/* Everything in one transaction of the new file. */
static enum profd_status copy_all(struct sqlite_store *s, struct profd_error *e)
{
    enum profd_status status = run(s, "BEGIN", e); /* IMMEDIATE would lock the old file for writing, too */
    for (size_t i = 0; status == PROFD_OK && i < sizeof copy_v1 / sizeof copy_v1[0]; i++) {
        status = run(s, copy_v1[i], e);
    }
    if (status == PROFD_OK) {
        status = sqlite_load_state(s, &s->state, e);
    }
    if (status == PROFD_OK) {
        status = copy_uploads(s, e);
    }
    if (status == PROFD_OK) { /* a series without uploads should not exist, but would never be removed */
        status = run(s, "DELETE FROM series WHERE uploads=0", e);
    }
    if (status == PROFD_OK) {
        status = sqlite_save_state(s, e);
    }
    if (status == PROFD_OK) {
        status = sqlite_migration_enter(s->db, 1, e);
    }
    return status == PROFD_OK ? run(s, "COMMIT", e) : status;
}

static enum profd_status attach_old(struct sqlite_store *s, const char *path, struct profd_error *e)
{
    sqlite3_stmt *q = NULL;
    enum profd_status status = PROFD_OK;
    if (sqlite3_prepare_v2(s->db, "ATTACH ?1 AS old", -1, &q, NULL) != SQLITE_OK ||
        sqlite3_bind_text(q, 1, path, -1, SQLITE_STATIC) != SQLITE_OK || sqlite3_step(q) != SQLITE_DONE) {
        status = sqlite_fail(s, e);
    }
    sqlite3_finalize(q);
    return status;
}

/* Fills the new, empty file. */
static enum profd_status fill_copy(const char *making, void *context, struct profd_error *e)
{
    const char *path = context;
    struct sqlite_store s = {.path = context};
    enum profd_status status = PROFD_OK;
    if (sqlite3_open_v2(making, &s.db, SQLITE_OPEN_READWRITE | SQLITE_OPEN_NOMUTEX, NULL) != SQLITE_OK) {
        status = s.db ? sqlite_fail(&s, e) : profd_error_set(e, PROFD_NO_MEMORY, "no memory to open the database");
    }
    if (status == PROFD_OK) {
        status = sqlite_schema_create(s.db, e);
    }
    if (status == PROFD_OK) {
        status = attach_old(&s, path, e);
    }
    if (status == PROFD_OK) {
        status = copy_all(&s, e);
    }
    sqlite_statements_done(&s);
    sqlite3_close(s.db);
    return status;
}

/* Copies the log into the old file, which is then complete: the copy that gets its name must find no log. */
static enum profd_status settle_log(const char *path, struct profd_error *e)
{
    struct sqlite_store s = {.path = NULL};
    char name[4200];
    sqlite3_stmt *q = NULL;
    snprintf(name, sizeof name, "%s", path);
    s.path = name;
    enum profd_status status = PROFD_OK;
    if (sqlite3_open_v2(path, &s.db, SQLITE_OPEN_READWRITE | SQLITE_OPEN_NOMUTEX, NULL) != SQLITE_OK ||
        sqlite3_prepare_v2(s.db, "PRAGMA journal_mode=DELETE", -1, &q, NULL) != SQLITE_OK ||
        sqlite3_step(q) != SQLITE_ROW) {
        status = s.db ? sqlite_fail(&s, e) : profd_error_set(e, PROFD_NO_MEMORY, "no memory to open the database");
    } else if (strcmp(sqlite_text(q, 0), "delete") != 0) {
        status = profd_error_set(e, PROFD_BUSY,
                                 "database \"%s\": another process has it open; its log cannot be closed", path);
    }
    /* The change is committed only when the statement ends, and that may fail. */
    if (sqlite3_finalize(q) != SQLITE_OK && status == PROFD_OK) {
        status = sqlite_fail(&s, e);
    }
    sqlite3_close(s.db);
    return status;
}

enum profd_status sqlite_upgrade_file(const char *path, int64_t version, struct profd_error *e)
{
    char name[4200];
    if (snprintf(name, sizeof name, "%s", path) >= (int)sizeof name) {
        return profd_error_set(e, PROFD_CONFIG, "the database's path has more than %zu bytes", sizeof name - 1);
    }
    enum profd_status status = settle_log(path, e);
    if (status == PROFD_OK) {
        status = sqlite_create_file(path, fill_copy, name, e);
    }
    return status == PROFD_OK
               ? status
               : profd_error_wrap(e, status,
                                  "cannot bring \"%s\" from schema version %lld to %d (it needs its size "
                                  "again on the disk)",
                                  path, (long long)version, SQLITE_SCHEMA_VERSION);
}
