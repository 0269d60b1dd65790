/* SQL on a connection without a handle: before a handle with statements exists, or beside it. */
#include "store/sqlite.h"

enum profd_status sqlite_direct_fail(sqlite3 *db, const char *doing, struct profd_error *e)
{
    int extended = sqlite3_extended_errcode(db), rc = extended & 0xff;
    enum profd_status status = rc == SQLITE_FULL                             ? PROFD_FULL
                               : rc == SQLITE_NOMEM                          ? PROFD_NO_MEMORY
                               : extended == SQLITE_IOERR_DATA               ? PROFD_DAMAGED
                               : rc == SQLITE_CORRUPT || rc == SQLITE_NOTADB ? PROFD_DAMAGED
                               : rc == SQLITE_BUSY                           ? PROFD_BUSY
                                                                             : PROFD_IO;
    if (extended == SQLITE_IOERR_DATA) {
        return profd_error_set(e, status, "%s: page %lld of the database is damaged: it does not have its checksum",
                               doing, (long long)sqlite_seal_take_fault());
    }
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
