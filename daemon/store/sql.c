/* Runs SQL: the cached statements of a handle, and statements on a connection without a handle. */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "store/store_internal.h"

/* Selects live processes by series: their number, and the earliest and latest of their latest harvests. */
#define IN_SCOPE(n) "=?" #n /* ?n: SCOPE */
#define LIVING_OF(INSTANCES)                                                                                           \
    "SELECT s.labels, i.n, i.earliest, i.latest FROM (SELECT series, sum(n) AS n, min(seen) AS earliest, "             \
    "max(seen) AS latest FROM " INSTANCES " WHERE (?2<=0 OR seen<?2) AND seen>=?7 GROUP BY series) i "                 \
    "CROSS JOIN series s ON s.id=i.series WHERE (?3 OR s.uid" IN_SCOPE(                                                \
        4) ") AND (?5='' OR EXISTS (SELECT 1 FROM build b "                                                            \
           "CROSS JOIN build_set_member m ON m.build=b.id AND m.build_set=s.build_set "                                \
           "WHERE b.build_id=?5 AND (?6=0 OR s.program=b.id)))"

#define SQL(name, text) [SQL_##name] = (text),
static const char *const texts[SQL_COUNT] = {
#include "store/sql_texts.inc"
};

enum profd_status sqlite_status_of(int extended)
{
    if (extended == SQLITE_IOERR_NOMEM) {
        return PROFD_NO_MEMORY;
    }
    if (extended == SQLITE_IOERR_DATA) {
        return PROFD_DAMAGED;
    }
    switch (extended & 0xff) {
    case SQLITE_FULL:
        return PROFD_FULL;
    case SQLITE_NOMEM:
        return PROFD_NO_MEMORY;
    case SQLITE_BUSY:
    case SQLITE_LOCKED:
        return PROFD_BUSY;
    case SQLITE_CORRUPT:
    case SQLITE_NOTADB:
        return PROFD_DAMAGED;
    case SQLITE_TOOBIG:
        return PROFD_TOO_LARGE;
    case SQLITE_IOERR:
    case SQLITE_CANTOPEN:
    case SQLITE_READONLY:
    case SQLITE_PROTOCOL:
        return PROFD_IO;
    default:
        return PROFD_INTERNAL;
    }
}

enum profd_status sqlite_fail(struct store *s, struct profd_error *e)
{
    int extended = sqlite3_extended_errcode(s->db), system = sqlite3_system_errno(s->db);
    enum profd_status status = sqlite_status_of(extended);
    struct profd_error why;
    if (extended == SQLITE_IOERR_DATA) {
        s->bad_page = sqlite_seal_take_fault();
    }
    /* SQLite reports a full disk only if a write fails with ENOSPC: not for a quota, nor when it enlarges the shared
     * memory. A failed sync stays an I/O error, because its result is unknown for any reason. */
    if (extended == SQLITE_IOERR_WRITE || extended == SQLITE_IOERR_SHMSIZE || extended == SQLITE_IOERR_SHMOPEN) {
        status = system == ENOSPC || system == EDQUOT ? PROFD_FULL : status;
    }
    if ((extended & 0xff) == SQLITE_CANTOPEN && (system == EMFILE || system == ENFILE)) { /* temporary */
        status = profd_error_set(&why, PROFD_BUSY, "database %s: no descriptor is free to open a file of it", s->path);
    } else if (status == PROFD_FULL) {
        profd_error_set(&why, status, "no space left for the database %s", s->path);
    } else if (extended == SQLITE_IOERR_DATA) {
        profd_error_set(&why, status, "database %s: page %lld is damaged: it does not have its checksum", s->path,
                        (long long)s->bad_page);
    } else if (extended == SQLITE_IOERR_SHORT_READ) {
        profd_error_set(&why, status,
                        "\"%s\" or its log \"%s-wal\" was truncated: it is shorter than what was written; put it back "
                        "or restore a backup, then start profd again",
                        s->path, s->path);
    } else {
        profd_error_set(&why, status, "database %s: %s (SQLite error %d)%s", s->path, sqlite3_errmsg(s->db), extended,
                        status == PROFD_IO ? "; check the disk" : "");
    }
    if (extended != SQLITE_IOERR_DATA) { /* a refused page has changed nothing: reading continues */
        /* A file that somebody has cut or replaced is the cause of such an error, and its sentence tells what to do. */
        if (s->writable && (status == PROFD_IO || status == PROFD_DAMAGED)) {
            const enum profd_status changed = sqlite_watch_look(s, &why);
            status = changed ? changed : status;
        }
        sqlite_break(s, status, why.sentence);
    }
    if (e) {
        *e = why;
    }
    return status;
}

enum profd_status sqlite_start(struct store *s, enum sqlite_sql which, const struct sqlite_value *values, size_t count,
                               sqlite3_stmt **out, struct profd_error *e)
{
    *out = NULL;
    if (!s->statements[which] && sqlite3_prepare_v3(s->db, texts[which], -1, SQLITE_PREPARE_PERSISTENT,
                                                    &s->statements[which], NULL) != SQLITE_OK) {
        return sqlite_fail(s, e);
    }
    sqlite3_stmt *statement = s->statements[which];
    sqlite3_reset(statement);
    for (size_t i = 0; i < count; i++) {
        const struct sqlite_value *v = &values[i];
        const int n = (int)i + 1;
        int rc = SQLITE_MISUSE;
        switch (v->kind) {
        case SQLITE_VALUE_INTEGER:
            rc = sqlite3_bind_int64(statement, n, v->integer);
            break;
        case SQLITE_VALUE_TEXT:
            rc = sqlite3_bind_text(statement, n, v->data, -1, SQLITE_STATIC);
            break;
        case SQLITE_VALUE_BLOB:
            rc = v->size == 0 ? sqlite3_bind_zeroblob(statement, n, 0)
                              : sqlite3_bind_blob64(statement, n, v->data, v->size, SQLITE_STATIC);
            break;
        case SQLITE_VALUE_NULL:
            rc = sqlite3_bind_null(statement, n);
            break;
        }
        if (rc != SQLITE_OK) {
            return sqlite_fail(s, e);
        }
    }
    *out = statement;
    return PROFD_OK;
}

/* Steps. *row: there is one. At the end and on failure the statement is finished. */
static enum profd_status step(struct store *s, sqlite3_stmt *statement, bool *row, struct profd_error *e)
{
    int rc = sqlite3_step(statement);
    if (rc == SQLITE_ROW) {
        *row = true;
        return PROFD_OK;
    }
    enum profd_status status = rc == SQLITE_DONE ? PROFD_OK : sqlite_fail(s, e);
    sqlite_finish(statement);
    *row = false;
    return status;
}

void sqlite_finish(sqlite3_stmt *statement)
{
    if (statement) {
        sqlite3_reset(statement);
        sqlite3_clear_bindings(statement); /* they are borrowed */
    }
}

enum profd_status sqlite_first(struct store *s, enum sqlite_sql which, const struct sqlite_value *values, size_t count,
                               sqlite3_stmt **out, bool *row, struct profd_error *e)
{
    TRY(sqlite_start(s, which, values, count, out, e));
    return step(s, *out, row, e);
}

bool sqlite_row(struct store *s, sqlite3_stmt *statement, enum profd_status *status, struct profd_error *e)
{
    bool row = false;
    if (*status) {
        sqlite_finish(statement);
        return false;
    }
    *status = step(s, statement, &row, e);
    return row;
}

enum profd_status sqlite_run(struct store *s, enum sqlite_sql which, const struct sqlite_value *values, size_t count,
                             struct profd_error *e)
{
    sqlite3_stmt *statement;
    bool row = false;
    enum profd_status status = sqlite_first(s, which, values, count, &statement, &row, e);
    sqlite_finish(statement);
    return status;
}

enum profd_status sqlite_find(struct store *s, enum sqlite_sql which, const struct sqlite_value *values, size_t count,
                              int64_t *value, bool *found, struct profd_error *e)
{
    sqlite3_stmt *statement;
    bool row = false;
    TRY(sqlite_first(s, which, values, count, &statement, &row, e));
    if (row) {
        *value = sqlite3_column_int64(statement, 0);
        sqlite_finish(statement);
    }
    *found = row;
    return PROFD_OK;
}

const uint8_t *sqlite_blob(sqlite3_stmt *statement, int column, size_t *n)
{
    const void *p = sqlite3_column_blob(statement, column);
    *n = p ? (size_t)sqlite3_column_bytes(statement, column) : 0;
    return p ? p : "";
}

const char *sqlite_text(sqlite3_stmt *statement, int column)
{
    const unsigned char *p = sqlite3_column_text(statement, column);
    return p ? (const char *)p : "";
}

void sqlite_copy(sqlite3_stmt *q, int column, uint8_t *out, size_t size)
{
    size_t n;
    const uint8_t *bytes = sqlite_blob(q, column, &n);
    memcpy(out, bytes, n < size ? n : size);
}

struct store_amount sqlite_amount(sqlite3_stmt *q, int column)
{
    return (struct store_amount){sqlite_u64(q, column), sqlite_u64(q, column + 1), sqlite_u64(q, column + 2)};
}

void sqlite_statements_done(struct store *s)
{
    for (int i = 0; i < SQL_COUNT; i++) {
        sqlite3_finalize(s->statements[i]);
        s->statements[i] = NULL;
    }
}

enum profd_status sqlite_direct_fail(sqlite3 *db, const char *doing, struct profd_error *e)
{
    int extended = sqlite3_extended_errcode(db), rc = extended & 0xff;
    enum profd_status status = rc == SQLITE_FULL                             ? PROFD_FULL
                               : rc == SQLITE_NOMEM                          ? PROFD_NO_MEMORY
                               : extended == SQLITE_IOERR_DATA               ? PROFD_DAMAGED
                               : rc == SQLITE_CORRUPT || rc == SQLITE_NOTADB ? PROFD_DAMAGED
                               : rc == SQLITE_BUSY                           ? PROFD_BUSY
                                                                             : PROFD_IO;
    FAIL_IF(extended == SQLITE_IOERR_DATA, e, status,
            "%s: page %lld of the database is damaged: it does not have its checksum", doing,
            (long long)sqlite_seal_take_fault());
    return profd_error_set(e, status, "%s: %s (SQLite error %d)", doing, sqlite3_errmsg(db), extended);
}

enum profd_status sqlite_direct_integer(sqlite3 *db, const char *sql, int64_t *value, struct profd_error *e)
{
    sqlite3_stmt *q = NULL;
    if (sqlite3_prepare_v2(db, sql, -1, &q, NULL) != SQLITE_OK) {
        return sqlite_direct_fail(db, sql, e);
    }
    enum profd_status status = PROFD_OK;
    int rc = sqlite3_step(q);
    if (rc == SQLITE_ROW) {
        *value = sqlite3_column_int64(q, 0);
    } else {
        status = rc == SQLITE_DONE ? profd_error_set(e, PROFD_DAMAGED, "%s gives no answer", sql)
                                   : sqlite_direct_fail(db, sql, e);
    }
    sqlite3_finalize(q);
    return status;
}

enum profd_status sqlite_direct_run(sqlite3 *db, const char *sql, const char *doing, struct profd_error *e)
{
    return sqlite3_exec(db, sql, NULL, NULL, NULL) == SQLITE_OK ? PROFD_OK : sqlite_direct_fail(db, doing, e);
}
