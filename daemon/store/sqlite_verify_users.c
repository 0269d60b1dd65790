/* Compares the bytes with which each user is charged with the stored rows. */
#include <inttypes.h>
#include <stdio.h>

#include "store/sqlite_users.h"
#include "store/sqlite_verify.h"

enum profd_status sqlite_verify_users(struct sqlite_verifying *v, struct profd_error *e)
{
    sqlite3_stmt *q;
    bool row = false;
    int64_t counted = 0;
    enum profd_status status = sqlite_users_counted(v->s, &counted, e);
    if (status != PROFD_OK || counted != INT64_MAX) {
        return status; /* rows of an older version are not charged yet */
    }
    status = sqlite_start(v->s, SQL_USERS_WRONG, VALUES(INTEGER(SQLITE_ROW_BYTES)), &q, e);
    while (status == PROFD_OK && (status = sqlite_next(v->s, q, &row, e)) == PROFD_OK && row) {
        char where[32];
        snprintf(where, sizeof where, "user %" PRId64, (int64_t)sqlite3_column_int64(q, 0));
        sqlite_verify_equal(v, where, "bytes", "list of users", (uint64_t)sqlite3_column_int64(q, 1), "stored rows",
                            (uint64_t)sqlite3_column_int64(q, 2));
    }
    return status;
}
