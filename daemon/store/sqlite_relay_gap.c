/* What a host that was restored from a backup tells the centre about the time that it has lost. */
#include <stdlib.h>
#include <sys/random.h>

#include "store/sqlite_rollup.h"
#include "store/sqlite_segment.h"

#define GAP_HOURS_MOST (366 * INT64_C(24)) /* a clock that was wrong must not fill the database */

/* The hours from the latest sign of life in the backup until now. */
static enum profd_status find_gap(struct sqlite_store *s, const struct sqlite_relay *r, int64_t *from, int64_t *to,
                                  int64_t *now, struct profd_error *e)
{
    sqlite3_stmt *q;
    bool row = false;
    int64_t started = 0, opened = 0;
    enum profd_status status = sqlite_start(s, SQL_SEGMENT_GAP, NULL, 0, &q, e);
    if (status == PROFD_OK) {
        status = sqlite_next(s, q, &row, e);
    }
    if (status != PROFD_OK || !row) {
        return status;
    }
    opened = sqlite3_column_int64(q, 0);
    *now = sqlite3_column_int64(q, 1) * INT64_C(1000000000);
    sqlite_finish(q);
    for (unsigned i = 0; i < 4; i++) { /* an epoch begins with the seconds of its start */
        started = started << 8 | r->epoch[i];
    }
    started *= INT64_C(1000000000);
    *to = *now / SQLITE_HOUR;
    *from = (opened > started ? opened : started) / SQLITE_HOUR;
    *from = *from > *to ? *to : *from;
    *from = *to - *from < GAP_HOURS_MOST ? *from : *to - GAP_HOURS_MOST + 1;
    return PROFD_OK;
}

static enum profd_status add_mark(struct sqlite_store *s, const uint8_t epoch[SEGMENT_EPOCH_SIZE], int64_t sequence,
                                  int64_t hour, int64_t now, struct profd_error *e)
{
    uint8_t *bytes = NULL;
    size_t size = 0;
    enum profd_status status = outgoing_mark(SEGMENT_DROPPED, epoch, (uint64_t)sequence, hour, &bytes, &size, e);
    if (status == PROFD_OK) {
        status = sqlite_run(s, SQL_SEGMENT_ADD,
                            VALUES(BLOB(epoch, SEGMENT_EPOCH_SIZE), INTEGER(sequence), INTEGER(0), INTEGER(hour),
                                   INTEGER(now), INTEGER(size), INTEGER(hour * SQLITE_HOUR),
                                   INTEGER((hour + 1) * SQLITE_HOUR)),
                            e);
    }
    const int64_t id = sqlite3_last_insert_rowid(s->db);
    if (status == PROFD_OK) {
        status = sqlite_run(s, SQL_SEGMENT_BYTES_SET, VALUES(INTEGER(id), BLOB(bytes, size)), e);
    }
    free(bytes);
    return status == PROFD_OK
               ? sqlite_run(s, SQL_SEGMENT_STATE_SET, VALUES(INTEGER(id), INTEGER(SEGMENT_CLOSED), INTEGER(now)), e)
               : status;
}

static enum profd_status add_marks(struct sqlite_store *s, const struct sqlite_relay *r, struct profd_error *e)
{
    uint8_t epoch[SEGMENT_EPOCH_SIZE];
    int64_t from = 0, to = 0, now = 0;
    if (getrandom(epoch, sizeof epoch, 0) != (ssize_t)sizeof epoch) {
        return profd_error_set(e, PROFD_IO, "there are no random numbers for an epoch of segments");
    }
    enum profd_status status = find_gap(s, r, &from, &to, &now, e);
    for (unsigned i = 0; i < 4; i++) {
        epoch[i] = (uint8_t)((uint64_t)now / 1000000000u >> (24 - 8 * i));
    }
    for (int64_t hour = from; hour <= to && status == PROFD_OK; hour++) {
        status = add_mark(s, epoch, hour - from + 1, hour, now, e);
    }
    return status;
}

enum profd_status sqlite_relay_mark_gap(struct sqlite_store *s, struct profd_error *e)
{
    struct sqlite_relay r;
    enum profd_status status = sqlite_relay_load(s, &r, e);
    if (status != PROFD_OK || !r.known || !r.active) {
        return status;
    }
    status = sqlite_write_begin(s, e);
    return status == PROFD_OK ? sqlite_write_end(s, add_marks(s, &r, e), e) : status;
}
