/* Counters of the watch list (watches.h). */
#include <string.h>

#include "store/sqlite.h"

static enum profd_status put_rows(struct store *s, const struct store_watch_row *rows, size_t n, struct profd_error *e)
{
    for (size_t i = 0; i < n; i++) {
        const struct store_watch_row *r = &rows[i];
        if (r->document == NULL) {
            TRY(sqlite_run(s, SQL_WATCH_REMOVE, VALUES(TEXT(r->key)), e));
        } else {
            TRY(sqlite_run(s, SQL_WATCH_PUT, VALUES(TEXT(r->key), INTEGER(r->changed), TEXT(r->document)), e));
        }
    }
    return PROFD_OK;
}

enum profd_status store_put_watch_rows(struct store *s, const struct store_watch_row *rows, size_t n,
                                       struct profd_error *e)
{
    TRY(sqlite_store_begin(s, e));
    return sqlite_write_end(s, put_rows(s, rows, n, e), e);
}

enum profd_status store_each_watch_row(struct store *s, bool (*each)(void *context, const struct store_watch_row *row),
                                       void *context, struct profd_error *e)
{
    sqlite3_stmt *q;
    bool row = true, more = true;
    TRY(sqlite_start(s, SQL_WATCH_EACH, NULL, 0, &q, e));
    while (row && more) {
        TRY(sqlite_next(s, q, &row, e));
        if (row) {
            const struct store_watch_row out = {
                .key = sqlite_text(q, 0), .changed = sqlite3_column_int64(q, 1), .document = sqlite_text(q, 2)};
            more = each(context, &out);
        }
    }
    if (row) {
        sqlite_finish(q);
    }
    return PROFD_OK;
}
