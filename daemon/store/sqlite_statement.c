#include <string.h>

#include "store/sqlite.h"

static const char *const sql_texts[SQL_COUNT] = {
    [SQL_BEGIN_WRITE] = "BEGIN IMMEDIATE",
    [SQL_BEGIN_READ] = "BEGIN",
    [SQL_COMMIT] = "COMMIT",
    [SQL_ROLLBACK] = "ROLLBACK",
    [SQL_STATE_GET] = "SELECT number, list_epoch, salt, uploads, ticks, calls FROM state",
    [SQL_STATE_SET] = "UPDATE state SET number=?1, list_epoch=?2, uploads=?3, ticks=?4, calls=?5",
    [SQL_HOST_FIND] = "SELECT id FROM host WHERE machine=?1",
    [SQL_HOST_ADD] = "INSERT INTO host (machine) VALUES (?1)",
    [SQL_BUILD_FIND] = "SELECT id FROM build WHERE build_id=?1",
    [SQL_BUILD_ADD] = "INSERT INTO build (build_id, epoch, named) VALUES (?1, 0, 0)",
    [SQL_BUILD_EPOCH_SET] = "UPDATE build SET epoch=?2 WHERE id=?1",
    [SQL_BUILD_NAMED_SET] = "UPDATE build SET named=1 WHERE id=?1",
    [SQL_SET_FIND] = "SELECT id FROM build_set WHERE builds=?1",
    [SQL_SET_ADD] = "INSERT INTO build_set (builds) VALUES (?1)",
    [SQL_SET_MEMBER_ADD] = "INSERT OR IGNORE INTO build_set_member VALUES (?1, ?2)",
    [SQL_SET_USER_ADD] = "INSERT OR IGNORE INTO build_set_user VALUES (?1, ?2)",
    [SQL_SERIES_FIND] = "SELECT id FROM series WHERE build_set=?1 AND uid=?2 AND program=?3 AND labels=?4",
    [SQL_SERIES_ADD] = "INSERT INTO series (build_set, uid, program, labels, uploads) VALUES (?1, ?2, ?3, ?4, 0)",
    [SQL_SERIES_COUNT] = "UPDATE series SET uploads=uploads+?2 WHERE id=?1",
    [SQL_UPLOAD_ADD] = "INSERT INTO upload VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10)",
    [SQL_SENDER_FIND] = "SELECT mark, seen, above FROM sender WHERE host=?1 AND uid=?2 AND sender=?3",
    [SQL_SENDER_SET] = "INSERT INTO sender (host, uid, sender, mark, seen, above) VALUES (?1, ?2, ?3, ?4, ?5, nullif(?6, x'')) "
                       "ON CONFLICT DO UPDATE SET mark=excluded.mark, seen=excluded.seen, above=excluded.above",
    [SQL_SENDER_SCAN] = "SELECT host, uid, sender, seen FROM sender WHERE (host, uid, sender) > (?1, ?2, ?3) "
                        "ORDER BY host, uid, sender LIMIT ?4",
    [SQL_SENDER_REMOVE] = "DELETE FROM sender WHERE (host, uid, sender) > (?1, ?2, ?3) "
                          "AND (host, uid, sender) <= (?4, ?5, ?6) AND seen < ?7",
    [SQL_BUILD_USER_FIND] = "SELECT is_program, first, last, uploads, processes, nanoseconds, calls, inexact "
                            "FROM build_user WHERE build=?1 AND uid=?2",
    [SQL_BUILD_USER_SET] =
        "INSERT INTO build_user (build, uid, epoch, added, is_program, first, last, uploads, processes, nanoseconds, calls, "
        "inexact, name) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13) ON CONFLICT DO UPDATE SET "
        "epoch=?3, is_program=?5, first=?6, last=?7, uploads=?8, processes=?9, nanoseconds=?10, calls=?11, inexact=?12",
    [SQL_USER_EPOCH_SET] = "INSERT INTO user_epoch VALUES (?1, ?2) ON CONFLICT DO UPDATE SET epoch=?2",
    [SQL_OBJECT_EACH] =
        "SELECT o.id, o.variant<>'', o.has_names, s.uid, s.trusted, s.delivered, s.note FROM object o "
        "JOIN object_sender s ON s.object=o.id WHERE o.build=?1 ORDER BY o.id, s.uid",
    [SQL_OBJECT_GET] = "SELECT size, compressed, encoded FROM object WHERE id=?1",
    [SQL_OBJECT_BOUNDS] = "SELECT bounds FROM object WHERE id=?1",
    [SQL_OBJECT_SAME] = "SELECT size, compressed, encoded, id FROM object WHERE build=?1 AND variant=?2 ORDER BY id",
    [SQL_OBJECT_ADD] = "INSERT INTO object (build, variant, has_names, size, compressed, bounds, encoded) "
                       "VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)",
    [SQL_OBJECT_SENDER_FIND] = "SELECT trusted, delivered, note FROM object_sender WHERE object=?1 AND uid=?2",
    [SQL_OBJECT_SENDER_SET] =
        "INSERT INTO object_sender (object, uid, trusted, delivered, name, note) VALUES (?1, ?2, ?3, ?4, ?5, ?6) "
        "ON CONFLICT DO UPDATE SET trusted=?3, delivered=?4, name=?5, note=?6",
    [SQL_OBJECT_KNOWN] =
        "SELECT 1 FROM build b JOIN object o ON o.build=b.id JOIN object_sender s ON s.object=o.id "
        "WHERE b.build_id=?1 AND (s.uid=?2 OR (s.trusted=1 AND o.variant<>'')) LIMIT 1",
    [SQL_OBJECT_VARIANTS] = "SELECT count(*) FROM object WHERE build=?1 AND variant<>''",
    [SQL_OBJECT_LATEST] = "SELECT max(s.delivered) FROM object o JOIN object_sender s ON s.object=o.id WHERE o.build=?1",
    /* A report that an object of build ?1 can change: on any build that was in one process with it, for any user (?2) or the
     * sender (?3). */
    [SQL_TOUCH_BUILD_USERS] =
        "UPDATE build_user SET epoch=?4 WHERE (build, uid) IN (SELECT c.build, u.uid FROM build_set_member m "
        "JOIN build_set_user u ON u.build_set=m.build_set JOIN build_set_member c ON c.build_set=m.build_set "
        "WHERE m.build=?1 AND (?2 OR u.uid=?3))",
    [SQL_TOUCH_BUILDS] =
        "UPDATE build SET epoch=?4 WHERE id IN (SELECT c.build FROM build_set_member m "
        "JOIN build_set_user u ON u.build_set=m.build_set JOIN build_set_member c ON c.build_set=m.build_set "
        "WHERE m.build=?1 AND (?2 OR u.uid=?3))",
    [SQL_TOUCH_USERS] = "UPDATE user_epoch SET epoch=?4 WHERE uid IN "
                        "(SELECT uid FROM build_user WHERE build=?1 AND (?2 OR uid=?3))",
    [SQL_FIND_EXACT_ALL] = "SELECT build_id FROM build WHERE build_id=?1 AND epoch>0",
    [SQL_FIND_EXACT_UID] = "SELECT b.build_id FROM build b JOIN build_user u ON u.build=b.id WHERE b.build_id=?1 AND u.uid=?2",
    [SQL_FIND_PREFIX_ALL] = "SELECT build_id FROM build WHERE build_id>=?1 AND build_id<?1||'~' AND epoch>0 "
                            "ORDER BY build_id LIMIT 2",
    [SQL_FIND_PREFIX_UID] = "SELECT b.build_id FROM build b CROSS JOIN build_user u ON u.build=b.id AND u.uid=?2 "
                            "WHERE b.build_id>=?1 AND b.build_id<?1||'~' ORDER BY b.build_id LIMIT 2",
#define BUILD_COLUMNS                                                                                             \
    "SELECT b.build_id, b.id, u.uid, u.name, u.is_program, u.first, u.last, u.uploads, u.processes, u.nanoseconds, " \
    "u.calls, u.inexact, u.added "
    [SQL_EACH_BUILD_ALL] = BUILD_COLUMNS "FROM build b CROSS JOIN build_user u ON u.build=b.id "
                                         "WHERE b.build_id>?1 ORDER BY b.build_id, u.uid",
    [SQL_EACH_BUILD_UID] = BUILD_COLUMNS "FROM build_user u CROSS JOIN build b ON b.id=u.build "
                                         "WHERE u.uid=?2 AND b.build_id>?1 ORDER BY b.build_id",
    [SQL_GET_BUILD_ALL] = BUILD_COLUMNS "FROM build b CROSS JOIN build_user u ON u.build=b.id "
                                        "WHERE b.build_id=?1 ORDER BY u.uid",
    [SQL_GET_BUILD_UID] = BUILD_COLUMNS "FROM build b CROSS JOIN build_user u ON u.build=b.id "
                                        "WHERE b.build_id=?1 AND u.uid=?2",
#undef BUILD_COLUMNS
    [SQL_LABELS_ALL] = "SELECT labels, uploads FROM series WHERE (?1 OR uid=?2)",
    [SQL_LABELS_BUILD] = "SELECT s.labels, s.uploads FROM build b CROSS JOIN build_set_member m ON m.build=b.id "
                         "CROSS JOIN series s ON s.build_set=m.build_set WHERE b.build_id=?3 AND (?1 OR s.uid=?2)",
    [SQL_COMPANION_SETS] = "SELECT t.builds FROM build_set_member m CROSS JOIN build_set t ON t.id=m.build_set "
                           "WHERE m.build=?3 AND EXISTS (SELECT 1 FROM build_set_user u WHERE u.build_set=t.id "
                           "AND (?1 OR u.uid=?2))",
    [SQL_BUILD_NAME] = "SELECT b.build_id, u.name FROM build b JOIN build_user u ON u.build=b.id "
                       "WHERE b.id=?1 AND (?2 OR u.uid=?3) ORDER BY u.added, u.uid LIMIT 1",
    [SQL_SERIES_OF_BUILD] =
        "SELECT s.id, s.uid, s.program, s.labels, t.builds, t.id FROM build_set_member m CROSS JOIN series s "
        "ON s.build_set=m.build_set CROSS JOIN build_set t ON t.id=m.build_set "
        "WHERE m.build=?1 AND (?2 OR s.uid=?3) AND (?4=0 OR s.program=?1) ORDER BY m.build_set, s.uid",
    [SQL_UPLOAD_NUMBERS] = "SELECT number FROM upload WHERE series=?1 AND last_hour>=?2 AND first_hour<=?3",
    [SQL_UPLOAD_GET] = "SELECT host, start, length, inexact, started, counts FROM upload WHERE number=?1",
    [SQL_HOST_GET] = "SELECT machine FROM host WHERE id=?1",
    [SQL_EPOCH_ALL] = "SELECT epoch FROM build WHERE build_id=?1 AND epoch>0",
    [SQL_EPOCH_UID] = "SELECT u.epoch FROM build b JOIN build_user u ON u.build=b.id WHERE b.build_id=?1 AND u.uid=?2",
    [SQL_LIST_EPOCH_UID] = "SELECT epoch FROM user_epoch WHERE uid=?1",
    [SQL_TOTALS] = "SELECT count(*), coalesce(sum(named=0), 0) FROM build WHERE epoch>0",
    [SQL_PAGES] = "SELECT page_count * page_size FROM pragma_page_count, pragma_page_size",
};

static enum profd_status status_of(int extended)
{
    if (extended == SQLITE_IOERR_NOMEM)
        return PROFD_NO_MEMORY;
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

enum profd_status sqlite_fail(struct sqlite_store *s, struct profd_error *e)
{
    int extended = sqlite3_extended_errcode(s->db);
    enum profd_status status = status_of(extended);
    struct profd_error why;
    if (status == PROFD_FULL)
        profd_error_set(&why, status, "no space left for the database %s", s->path);
    else
        profd_error_set(&why, status, "database %s: %s (SQLite error %d)", s->path, sqlite3_errmsg(s->db), extended);
    if (s->base.writable && s->broken == PROFD_OK && (status == PROFD_IO || status == PROFD_DAMAGED)) {
        /* What a failed write or fsync left behind is unknown; no later success would make it known. */
        s->broken = status;
        s->why = why;
    }
    if (e)
        *e = why;
    return status;
}

static bool bind(sqlite3_stmt *statement, int i, const struct sqlite_value *v)
{
    switch (v->kind) {
    case SQLITE_VALUE_INTEGER:
        return sqlite3_bind_int64(statement, i, v->integer) == SQLITE_OK;
    case SQLITE_VALUE_TEXT:
        return sqlite3_bind_text(statement, i, v->data, -1, SQLITE_STATIC) == SQLITE_OK;
    case SQLITE_VALUE_BLOB:
        return (v->size == 0 ? sqlite3_bind_zeroblob(statement, i, 0)
                             : sqlite3_bind_blob64(statement, i, v->data, v->size, SQLITE_STATIC)) == SQLITE_OK;
    }
    return false;
}

enum profd_status sqlite_start(struct sqlite_store *s, enum sqlite_sql which, const struct sqlite_value *values,
                               size_t count, sqlite3_stmt **out, struct profd_error *e)
{
    if (!s->statements[which] && sqlite3_prepare_v3(s->db, sql_texts[which], -1, SQLITE_PREPARE_PERSISTENT,
                                                    &s->statements[which], NULL) != SQLITE_OK)
        return sqlite_fail(s, e);
    sqlite3_stmt *statement = s->statements[which];
    sqlite3_reset(statement);
    for (size_t i = 0; i < count; i++)
        if (!bind(statement, (int)i + 1, &values[i]))
            return sqlite_fail(s, e);
    *out = statement;
    return PROFD_OK;
}

enum profd_status sqlite_next(struct sqlite_store *s, sqlite3_stmt *statement, bool *row, struct profd_error *e)
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
    sqlite3_reset(statement);
    sqlite3_clear_bindings(statement); /* they are borrowed */
}

enum profd_status sqlite_run(struct sqlite_store *s, enum sqlite_sql which, const struct sqlite_value *values,
                             size_t count, struct profd_error *e)
{
    sqlite3_stmt *statement;
    bool row = false;
    enum profd_status status = sqlite_start(s, which, values, count, &statement, e);
    if (status != PROFD_OK)
        return status;
    status = sqlite_next(s, statement, &row, e);
    if (row)
        sqlite_finish(statement);
    return status;
}

enum profd_status sqlite_find(struct sqlite_store *s, enum sqlite_sql which, const struct sqlite_value *values,
                              size_t count, int64_t *value, bool *found, struct profd_error *e)
{
    sqlite3_stmt *statement;
    bool row = false;
    enum profd_status status = sqlite_start(s, which, values, count, &statement, e);
    if (status != PROFD_OK)
        return status;
    status = sqlite_next(s, statement, &row, e);
    if (row) {
        *value = sqlite3_column_int64(statement, 0);
        sqlite_finish(statement);
    }
    if (status == PROFD_OK)
        *found = row;
    return status;
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

void sqlite_statements_done(struct sqlite_store *s)
{
    for (int i = 0; i < SQL_COUNT; i++) {
        sqlite3_finalize(s->statements[i]);
        s->statements[i] = NULL;
    }
}
