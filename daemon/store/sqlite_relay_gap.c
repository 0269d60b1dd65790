/* A host that was restored from a backup: what it tells the centre about the time that it has lost, and what it does
 * not forward because the centre may have it. */
#include <stdlib.h>
#include <sys/random.h>
#include <time.h>

#include "store/sqlite_rollup.h"
#include "store/sqlite_segment.h"

#define SECOND INT64_C(1000000000)
#define GAP_HOURS_MOST (366 * INT64_C(24)) /* a clock that was wrong must not fill the database */

/* The hours from the latest sign of life in the backup until now. */
static enum profd_status find_gap(struct store *s, const struct sqlite_relay *r, int64_t *from, int64_t *to,
                                  int64_t *now, struct profd_error *e)
{
    sqlite3_stmt *q;
    bool row = false;
    int64_t started = 0, opened = 0;
    TRY(sqlite_first(s, SQL_SEGMENT_GAP, NULL, 0, &q, &row, e));
    if (!row) {
        return PROFD_OK;
    }
    opened = sqlite3_column_int64(q, 0);
    *now = sqlite3_column_int64(q, 1) * SECOND;
    sqlite_finish(q);
    for (unsigned i = 0; i < 4; i++) { /* an epoch begins with the seconds of its start */
        started = started << 8 | r->epoch[i];
    }
    started *= SECOND;
    *to = *now / SQLITE_HOUR;
    *from = r->known ? (opened > started ? opened : started) / SQLITE_HOUR : *to;
    *from = *from > *to ? *to : *from;
    return PROFD_OK;
}

static enum profd_status add_mark(struct store *s, const uint8_t epoch[SEGMENT_EPOCH_SIZE], int64_t sequence,
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

/* Of the hours from .. to: a year of them at most. */
static enum profd_status add_marks(struct store *s, int64_t from, int64_t to, int64_t now, struct profd_error *e)
{
    uint8_t epoch[SEGMENT_EPOCH_SIZE];
    from = to - from < GAP_HOURS_MOST ? from : to - GAP_HOURS_MOST + 1;
    if (getrandom(epoch, sizeof epoch, 0) != (ssize_t)sizeof epoch) {
        return profd_error_set(e, PROFD_IO, "there are no random numbers for an epoch");
    }
    for (unsigned i = 0; i < 4; i++) {
        epoch[i] = (uint8_t)((uint64_t)now / 1000000000u >> (24 - 8 * i));
    }
    for (int64_t hour = from; hour <= to; hour++) {
        TRY(add_mark(s, epoch, hour - from + 1, hour, now, e));
    }
    return PROFD_OK;
}

/* What began before then counts here only; the hours of the gap, and later those in which it is accepted, are marked.
 */
static enum profd_status begin_apart(struct store *s, struct sqlite_relay *r, int64_t before, int64_t from, int64_t to,
                                     int64_t now, struct profd_error *e)
{
    TRY(add_marks(s, from, to, now, e));
    r->apart_before = before > r->apart_before ? before : r->apart_before;
    r->apart_hour = to;
    return sqlite_relay_save(s, r, e);
}

enum profd_status sqlite_relay_mark_gap(struct store *s, struct profd_error *e)
{
    struct sqlite_relay r;
    struct timespec clock;
    int64_t from = 0, to = 0, now = 0;
    TRY(sqlite_relay_load(s, &r, e));
    if (!r.known || !r.active) {
        return PROFD_OK;
    }
    (void)clock_gettime(CLOCK_REALTIME, &clock); /* it cannot fail */
    TRY(sqlite_write_begin(s, e));
    enum profd_status status = find_gap(s, &r, &from, &to, &now, e);
    if (status == PROFD_OK) {
        status = begin_apart(s, &r, clock.tv_sec * SECOND + clock.tv_nsec, from, to, now, e);
    }
    return sqlite_write_end(s, status, e);
}

enum profd_status sqlite_relay_hold(struct store *s, struct sqlite_relay *r, struct profd_error *e)
{
    int64_t to = 0, now = 0;
    r->held = (uint64_t)s->state.number + 1;
    r->held_since = s->relay_since;
    return find_gap(s, r, &r->held_hour, &to, &now, e);
}

enum profd_status sqlite_relay_judge(struct store *s, int64_t since, enum sqlite_fate *fate, struct profd_error *e)
{
    struct sqlite_relay r;
    *fate = SQLITE_FORWARDED;
    if (since == 0 || since >= s->relay_since) {
        return PROFD_OK;
    }
    TRY(sqlite_relay_load(s, &r, e));
    if (since < r.apart_before) {
        *fate = SQLITE_APART;
    } else if (r.held && since < r.held_since) {
        *fate = SQLITE_HELD;
    }
    return PROFD_OK;
}

enum profd_status sqlite_relay_set_apart(struct store *s, int64_t end, const struct store_amount *amount,
                                         struct profd_error *e)
{
    struct sqlite_relay r;
    const int64_t hour = end / SQLITE_HOUR;
    enum profd_status status = sqlite_relay_load(s, &r, e);
    if (status == PROFD_OK && hour > r.apart_hour) {
        status = add_marks(s, r.apart_hour + 1, hour, end, e);
        r.apart_hour = hour;
    }
    outgoing_amount_add(&r.withdrawn, amount);
    return status == PROFD_OK ? sqlite_relay_save(s, &r, e) : status;
}

enum profd_status sqlite_relay_reject_held(struct store *s, struct sqlite_relay *r, struct profd_error *e)
{
    int64_t from = 0, to = 0, now = 0;
    bool found = true;
    TRY(find_gap(s, r, &from, &to, &now, e));
    while (found) {
        sqlite3_stmt *q;
        TRY(sqlite_first(s, SQL_SEGMENT_HELD_NEXT, NULL, 0, &q, &found, e));
        if (found) {
            TRY(sqlite_segment_reduce(s, q, SEGMENT_DROPPED, &r->withdrawn, e));
        }
    }
    const int64_t held_hour = r->held_hour < to ? r->held_hour : to;
    return begin_apart(s, r, r->held_since, held_hour, to, now, e);
}
