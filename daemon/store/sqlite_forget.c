/* Digests of old arrivals are removed: of an epoch, a mark below which every sequence has arrived is enough. */
#include "store/outgoing.h"
#include "store/sqlite_centre.h"
#include "store/sqlite_segment.h"

#define ROWS_AT_ONCE 2000
#define SECOND INT64_C(1000000000)

/* The mark of one epoch. */
struct forgetting {
    int64_t epoch;
    uint64_t mark, number, rows;
    struct store_amount gone;
};

/* The row above the mark, if it is old and was counted. */
static enum profd_status take_next(struct store *s, struct forgetting *f, int64_t before, bool *found,
                                   struct profd_error *e)
{
    sqlite3_stmt *q;
    TRY(sqlite_first(s, SQL_ARRIVAL_OLD, VALUES(INTEGER(f->epoch), INTEGER(f->mark + 1), INTEGER(before / SECOND)), &q,
                     found, e));
    if (!*found) {
        return PROFD_OK;
    }
    const uint64_t number = (uint64_t)sqlite3_column_int64(q, 0);
    const bool counted = sqlite3_column_int64(q, 1) == STORE_SEGMENT_COUNTED;
    const struct store_amount amount = sqlite_amount(q, 2);
    sqlite_finish(q);
    f->mark++;
    f->rows++;
    if (!counted) { /* what became of it stays known */
        return PROFD_OK;
    }
    f->number = number > f->number ? number : f->number;
    outgoing_amount_add(&f->gone, &amount);
    return sqlite_run(s, SQL_ARRIVAL_REMOVE, VALUES(INTEGER(f->epoch), INTEGER(f->mark)), e);
}

enum profd_status sqlite_centre_forget(struct store *s, int64_t before, struct profd_error *e)
{
    struct forgetting f = {.epoch = 0};
    bool found = true;
    while (f.rows < ROWS_AT_ONCE) {
        /* The next epoch with such a row. */
        sqlite3_stmt *q;
        TRY(sqlite_first(s, SQL_EPOCH_OLD, VALUES(INTEGER(f.epoch), INTEGER(before / SECOND)), &q, &found, e));
        if (!found) {
            return PROFD_OK;
        }
        f.epoch = sqlite3_column_int64(q, 0);
        f.mark = (uint64_t)sqlite3_column_int64(q, 1);
        f.number = (uint64_t)sqlite3_column_int64(q, 2);
        f.gone = sqlite_amount(q, 3);
        sqlite_finish(q);
        for (bool more = true; more && f.rows < ROWS_AT_ONCE;) {
            TRY(take_next(s, &f, before, &more, e));
        }
        TRY(sqlite_run(s, SQL_EPOCH_MARK,
                       VALUES(INTEGER(f.epoch), INTEGER(f.mark), INTEGER(f.number), INTEGER(f.gone.uploads),
                              INTEGER(f.gone.ticks), INTEGER(f.gone.calls)),
                       e));
    }
    return PROFD_OK;
}
