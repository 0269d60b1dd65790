#include <inttypes.h>
#include <stdio.h>

#include "store/sqlite_segment.h"
#include "store/sqlite_verify.h"

/* Adds the parts of a segment. *count: how many there are. */
static enum profd_status add_parts(struct sqlite_verifying *v, int64_t id, struct store_amount *amount, uint64_t *count,
                                   bool *readable, struct profd_error *e)
{
    sqlite3_stmt *q;
    bool row = false;
    enum profd_status status = sqlite_start(v->s, SQL_SEGMENT_PARTS, VALUES(INTEGER(id)), &q, e);
    while (status == PROFD_OK && (status = sqlite_next(v->s, q, &row, e)) == PROFD_OK && row) {
        struct counts c;
        struct store_amount part = {.uploads = (uint64_t)sqlite3_column_int64(q, 4)};
        size_t n;
        const uint8_t *bytes = sqlite_blob(q, 6, &n);
        ++*count;
        if (counts_decode(bytes, n, LIMIT_BUILDS, &c, NULL) != PROFD_OK) {
            *readable = false;
            continue;
        }
        counts_totals(&c, &part.ticks, &part.calls);
        counts_done(&c);
        outgoing_amount_add(amount, &part);
    }
    return status;
}

/* The current row of SQL_SEGMENT_VERIFY. */
static enum profd_status compare_segment(struct sqlite_verifying *v, sqlite3_stmt *q, struct profd_error *e)
{
    char where[48];
    size_t n;
    const int64_t id = sqlite3_column_int64(q, 0);
    const struct store_amount row = sqlite_amount(q, 2);
    struct store_amount found = {0};
    uint64_t parts = 0;
    struct profd_error why = {""};
    snprintf(where, sizeof where, "segment %" PRId64, id);
    const uint8_t *bytes = sqlite_blob(q, 6, &n);
    bool readable = outgoing_measure(bytes, n, &found, &why) == PROFD_OK;
    enum profd_status status = add_parts(v, id, &found, &parts, &readable, e);
    if (status != PROFD_OK) {
        return status;
    }
    if (!readable) {
        sqlite_verify_tell(v, "%s cannot be read, and what it holds cannot be sent: %s", where, why.sentence);
        return PROFD_OK;
    }
    sqlite_verify_equal(v, where, "parts", "row", (uint64_t)sqlite3_column_int64(q, 5), "parts", parts);
    sqlite_verify_amounts(v, where, "row", &row, "bytes", &found);
    return PROFD_OK;
}

static enum profd_status compare_all(struct sqlite_verifying *v, struct profd_error *e)
{
    struct store_relay r;
    enum profd_status status = sqlite_get_relay(&v->s->base, &r, e);
    if (status != PROFD_OK || !r.active) {
        return status;
    }
    struct store_amount sum = r.acknowledged;
    outgoing_amount_add(&sum, &r.withdrawn);
    outgoing_amount_add(&sum, &r.sealed);
    outgoing_amount_add(&sum, &r.open);
    sqlite_verify_amounts(v, "forwarded", "accepted", &r.accepted, "acknowledged, withdrawn, sealed and open", &sum);
    return PROFD_OK;
}

enum profd_status sqlite_verify_segments(struct sqlite_verifying *v, struct profd_error *e)
{
    sqlite3_stmt *q;
    bool row = false, lone = false;
    int64_t id = 0;
    enum profd_status status = sqlite_start(v->s, SQL_SEGMENT_VERIFY, NULL, 0, &q, e);
    while (status == PROFD_OK && (status = sqlite_next(v->s, q, &row, e)) == PROFD_OK && row) {
        status = compare_segment(v, q, e);
        if (status != PROFD_OK) {
            sqlite_finish(q);
        }
    }
    if (status == PROFD_OK) {
        status = sqlite_find(v->s, SQL_SEGMENT_ORPHAN, NULL, 0, &id, &lone, e);
    }
    if (status == PROFD_OK && lone) {
        sqlite_verify_tell(v, "bytes or parts of segment %" PRId64 " stand alone: there is no such segment", id);
    }
    return status == PROFD_OK ? compare_all(v, e) : status;
}
