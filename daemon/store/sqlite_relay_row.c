/* The row of table relay, columns that it shares with table segment, and what remains of a segment that is not sent. */
#include <stdlib.h>
#include <string.h>

#include "store/sqlite_segment.h"

struct store_amount sqlite_amount(sqlite3_stmt *q, int column)
{
    return (struct store_amount){(uint64_t)sqlite3_column_int64(q, column),
                                 (uint64_t)sqlite3_column_int64(q, column + 1),
                                 (uint64_t)sqlite3_column_int64(q, column + 2)};
}

/* A column of bytes of a known size. */
static enum profd_status read_bytes(struct store *s, sqlite3_stmt *q, int column, const char *what, uint8_t *out,
                                    size_t size, struct profd_error *e)
{
    size_t n;
    const uint8_t *bytes = sqlite_blob(q, column, &n);
    if (n != size) {
        return profd_error_set(e, PROFD_DAMAGED, "database %s: %s of %zu bytes", s->path, what, n);
    }
    memcpy(out, bytes, n);
    return PROFD_OK;
}

enum profd_status sqlite_segment_epoch(struct store *s, sqlite3_stmt *q, int column, uint8_t out[SEGMENT_EPOCH_SIZE],
                                       struct profd_error *e)
{
    return read_bytes(s, q, column, "an epoch", out, SEGMENT_EPOCH_SIZE, e);
}

enum profd_status sqlite_relay_load(struct store *s, struct sqlite_relay *out, struct profd_error *e)
{
    sqlite3_stmt *q;
    bool row = false;
    *out = (struct sqlite_relay){.known = false};
    TRY(sqlite_first(s, SQL_RELAY_GET, NULL, 0, &q, &row, e));
    if (!row) {
        return PROFD_OK;
    }
    *out = (struct sqlite_relay){.known = true,
                                 .active = sqlite3_column_int64(q, 0) != 0,
                                 .sequence = (uint64_t)sqlite3_column_int64(q, 2),
                                 .outside = sqlite_amount(q, 3),
                                 .acknowledged = sqlite_amount(q, 6),
                                 .rejected = sqlite_amount(q, 9),
                                 .withdrawn = sqlite_amount(q, 12),
                                 .met = sqlite3_column_bytes(q, 15) > 0,
                                 .backup = (uint64_t)sqlite3_column_int64(q, 16),
                                 .held = (uint64_t)sqlite3_column_int64(q, 17),
                                 .held_since = sqlite3_column_int64(q, 18),
                                 .held_hour = sqlite3_column_int64(q, 19),
                                 .apart_before = sqlite3_column_int64(q, 20),
                                 .apart_hour = sqlite3_column_int64(q, 21),
                                 .has_centre = sqlite3_column_bytes(q, 22) > 0};
    enum profd_status status = sqlite_segment_epoch(s, q, 1, out->epoch, e);
    if (status == PROFD_OK && out->met) {
        status = read_bytes(s, q, 15, "an incarnation", out->incarnation, sizeof out->incarnation, e);
    }
    if (status == PROFD_OK && out->has_centre) {
        status = read_bytes(s, q, 22, "a centre's name", out->centre, sizeof out->centre, e);
    }
    sqlite_finish(q);
    return status;
}

#define AMOUNT(a) INTEGER((a).uploads), INTEGER((a).ticks), INTEGER((a).calls)

enum profd_status sqlite_relay_save(struct store *s, const struct sqlite_relay *r, struct profd_error *e)
{
    return sqlite_run(
        s, SQL_RELAY_SET,
        VALUES(INTEGER(r->active), BLOB(r->epoch, sizeof r->epoch), INTEGER(r->sequence), AMOUNT(r->outside),
               AMOUNT(r->acknowledged), AMOUNT(r->rejected), AMOUNT(r->withdrawn),
               BLOB(r->met ? r->incarnation : (const uint8_t *)"", r->met ? sizeof r->incarnation : 0),
               INTEGER(r->backup), INTEGER(r->held), INTEGER(r->held_since), INTEGER(r->held_hour),
               INTEGER(r->apart_before), INTEGER(r->apart_hour),
               BLOB(r->has_centre ? r->centre : (const uint8_t *)"", r->has_centre ? sizeof r->centre : 0)),
        e);
}

enum profd_status sqlite_segment_reduce(struct store *s, sqlite3_stmt *q, enum segment_kind kind,
                                        struct store_amount *gone, struct profd_error *e)
{
    uint8_t epoch[SEGMENT_EPOCH_SIZE], *bytes = NULL;
    size_t size = 0;
    const int64_t id = sqlite3_column_int64(q, 0), sequence = sqlite3_column_int64(q, 2),
                  hour = sqlite3_column_int64(q, 3);
    const struct store_amount amount = sqlite_amount(q, 4);
    enum profd_status status = sqlite_segment_epoch(s, q, 1, epoch, e);
    sqlite_finish(q);
    if (status == PROFD_OK) {
        status = outgoing_mark(kind, epoch, (uint64_t)sequence, hour, &bytes, &size, e);
    }
    if (status == PROFD_OK) {
        status = sqlite_run(s, SQL_SEGMENT_BYTES_SET, VALUES(INTEGER(id), BLOB(bytes, size)), e);
    }
    free(bytes);
    if (status == PROFD_OK) {
        status = sqlite_run(s, SQL_SEGMENT_PARTS_REMOVE, VALUES(INTEGER(id)), e);
    }
    if (status == PROFD_OK) {
        status = sqlite_run(s, SQL_SEGMENT_WITHDRAW, VALUES(INTEGER(id), INTEGER(size)), e);
    }
    outgoing_amount_add(gone, &amount);
    return status;
}
