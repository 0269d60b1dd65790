/* Compares the table of live processes with the stored uploads and snapshots. */
#include <inttypes.h>
#include <stdio.h>

#include "store/sqlite_verify.h"

/* Columns of SQL_INSTANCE_EVERY. */
enum { UID, NAME, GENERATION, UPLOAD, SERIES, HOUR, ENDED, UPLOAD_SERIES, UPLOAD_HOUR, HAS_SNAPSHOT };

static bool is_null(sqlite3_stmt *q, int column)
{
    return sqlite3_column_type(q, column) == SQLITE_NULL;
}

/* Its upload may have been removed, but must not be another's. */
static void verify_upload(struct sqlite_verifying *v, sqlite3_stmt *q, int64_t last, const char *where)
{
    int64_t upload = sqlite3_column_int64(q, UPLOAD), series = sqlite3_column_int64(q, SERIES),
            hour = sqlite3_column_int64(q, HOUR);
    if (is_null(q, UPLOAD) != is_null(q, SERIES) || is_null(q, UPLOAD) != is_null(q, HOUR)) {
        sqlite_verify_tell(v, "%s: of number, series and hour of its upload some are missing", where);
    } else if (!is_null(q, UPLOAD) && (upload < 1 || upload > last)) {
        sqlite_verify_tell(v, "%s: its upload is %" PRId64 ", a number that was never given; the last is %" PRId64,
                           where, upload, last);
    } else if (!is_null(q, UPLOAD_SERIES) &&
               (sqlite3_column_int64(q, UPLOAD_SERIES) != series || sqlite3_column_int64(q, UPLOAD_HOUR) != hour)) {
        sqlite_verify_tell(v,
                           "%s: upload %" PRId64 " of series %" PRId64 ", hour %" PRId64
                           " is not its own of series %" PRId64 ", hour %" PRId64,
                           where, upload, (int64_t)sqlite3_column_int64(q, UPLOAD_SERIES),
                           (int64_t)sqlite3_column_int64(q, UPLOAD_HOUR), series, hour);
    }
}

static void verify_instance(struct sqlite_verifying *v, sqlite3_stmt *q, int64_t last)
{
    char where[96];
    size_t n;
    const uint8_t *name = sqlite_blob(q, NAME, &n);
    int64_t generation = sqlite3_column_int64(q, GENERATION), ended = sqlite3_column_int64(q, ENDED);
    int at = snprintf(where, sizeof where, "live process ");
    for (size_t i = 0; i < n && i < STORE_INSTANCE_SIZE; i++) {
        at += snprintf(where + at, sizeof where - (size_t)at, "%02x", name[i]);
    }
    snprintf(where + at, sizeof where - (size_t)at, " of user %" PRId64, (int64_t)sqlite3_column_int64(q, UID));
    if (n != STORE_INSTANCE_SIZE) {
        sqlite_verify_tell(v, "%s: its name has %zu bytes, not %d", where, n, STORE_INSTANCE_SIZE);
    }
    if (generation < 1) {
        sqlite_verify_tell(v, "%s: a snapshot without a generation: %" PRId64 ", the first is 1", where, generation);
    }
    if (sqlite3_column_int(q, HAS_SNAPSHOT) == 0) {
        sqlite_verify_tell(v, "%s: generation %" PRId64 " without a snapshot", where, generation);
    }
    if (ended != 0 && ended != 1) {
        sqlite_verify_tell(v, "%s: neither living (0) nor ended (1) but %" PRId64, where, ended);
    }
    verify_upload(v, q, last, where);
}

enum profd_status sqlite_verify_instances(struct sqlite_verifying *v, struct profd_error *e)
{
    sqlite3_stmt *q;
    struct sqlite_state state;
    bool row = false, found = false;
    int64_t one = 0;
    enum profd_status status = sqlite_load_state(v->s, &state, e);
    if (status == PROFD_OK) {
        status = sqlite_start(v->s, SQL_INSTANCE_EVERY, NULL, 0, &q, e);
    }
    while (status == PROFD_OK && (status = sqlite_next(v->s, q, &row, e)) == PROFD_OK && row) {
        verify_instance(v, q, state.number);
    }
    if (status == PROFD_OK) {
        status = sqlite_find(v->s, SQL_INSTANCE_SHARED, NULL, 0, &one, &found, e);
    }
    if (status == PROFD_OK && found) {
        sqlite_verify_tell(v, "upload %" PRId64 " is the latest of two live processes", one);
    }
    if (status == PROFD_OK) {
        status = sqlite_find(v->s, SQL_SNAPSHOT_ORPHAN, NULL, 0, &one, &found, e);
    }
    if (status == PROFD_OK && found) {
        sqlite_verify_tell(v, "a snapshot is of live process %" PRId64 ", which is not there", one);
    }
    return status;
}
