/* Digests of old arrivals are removed, a day of receipt at a time: of an epoch, ranges of sequences that have arrived
 * are enough (table known). What was not counted stays in table arrival, so that what became of it stays known. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "clickhouse/everywhere.h"
#include "clickhouse/ledger.h"
#include "clickhouse/removal.h"

#define PARTS 64u         /* of the keys of a day, by epoch: each is read at once */
#define PARTS_AT_ONCE 16u /* in a call */
#define ARRIVAL_COLUMNS "number, digest, outcome, host, program, series, hour, uid, generation, uploads, ticks, calls"

struct forgetting {
    struct clickhouse_store *s;
    uint32_t day;
    int64_t until; /* ns: what was received before then is old */
    struct engine_lock lock;
};

/* A range of sequences that is being made. */
struct range {
    uint8_t epoch[SEGMENT_EPOCH_SIZE];
    uint64_t first, last, number; /* first 0: none */
};

/* Appends a condition for rows of the day. */
static void put_day(struct buffer *b, uint32_t day)
{
    buffer_add_format(b, "received >= %" PRId64 " AND received < %" PRId64, day * ENGINE_DAY, (day + 1) * ENGINE_DAY);
}

static void put_range(const struct range *x, struct buffer *rows)
{
    if (x->first > 0) {
        rows_put_fixed(rows, x->epoch, sizeof x->epoch);
        rows_put_u64(rows, x->first);
        rows_put_u64(rows, x->last);
        rows_put_u64(rows, x->number);
    }
}

static enum profd_status make_ranges(struct row_reader *r, struct buffer *rows, struct profd_error *e)
{
    struct range x = {.first = 0};
    enum profd_status status = PROFD_OK;
    while (status == PROFD_OK && rows_more(r)) {
        struct range next;
        rows_fixed(r, next.epoch, sizeof next.epoch);
        next.first = next.last = rows_u64(r);
        next.number = rows_u64(r);
        status = engine_rows_check(r, "known segments", e);
        if (x.first > 0 && memcmp(x.epoch, next.epoch, sizeof x.epoch) == 0 && next.first - x.last <= 1) {
            x.last = next.last;
            x.number = next.number > x.number ? next.number : x.number;
        } else {
            put_range(&x, rows);
            x = next;
        }
    }
    put_range(&x, rows);
    return status;
}

/* Enters the keys of a part of the epochs. */
static enum profd_status keep_keys(struct forgetting *f, unsigned part, struct profd_error *e)
{
    struct row_reader r = {.bytes = NULL};
    struct buffer rows, *b = &f->s->statement;
    buffer_init(&rows, 256u << 20);
    engine_begin(f->s);
    buffer_add_text(b,
                    "SELECT epoch, sequence, number FROM arrival WHERE outcome = 0 AND " ENGINE_REAL_ARRIVAL " AND ");
    put_day(b, f->day);
    buffer_add_format(b, " AND cityHash64(epoch) %% %u = %u ORDER BY epoch, sequence", PARTS, part);
    enum profd_status status = engine_query_printed(f->s, &r, e);
    if (status == PROFD_OK) {
        status = make_ranges(&r, &rows, e);
    }
    rows_close(&r);
    if (status == PROFD_OK) {
        status = engine_insert_locked(f->s, &f->lock, "known (epoch, first, last, number)", &rows, e);
    }
    buffer_done(&rows);
    return status;
}

/* What was not counted moves to a later day. */
static enum profd_status keep_others(struct forgetting *f, struct profd_error *e)
{
    struct row_reader r = {.bytes = NULL};
    struct buffer rows, *b = &f->s->statement;
    buffer_init(&rows, 256u << 20);
    engine_begin(f->s);
    buffer_add_format(
        b, "SELECT epoch, sequence, toInt64(%" PRId64 "), " ARRIVAL_COLUMNS " FROM arrival WHERE outcome != 0 AND ",
        f->until);
    put_day(b, f->day);
    enum profd_status status = engine_query_printed(f->s, &r, e);
    if (status == PROFD_OK && r.end > r.at) {
        buffer_add(&rows, r.at, (size_t)(r.end - r.at));
    }
    rows_close(&r);
    if (status == PROFD_OK) {
        status =
            engine_insert_locked(f->s, &f->lock, "arrival (epoch, sequence, received, " ARRIVAL_COLUMNS ")", &rows, e);
    }
    buffer_done(&rows);
    return status;
}

/* What was accepted of deleted programs, and never stored, is entered in the ledger, unless it is. */
static enum profd_status keep_amounts(struct forgetting *f, struct profd_error *e)
{
    struct row_reader r = {.bytes = NULL};
    struct ledger_row row = {.generation = LEDGER_NEVER, .day = f->day};
    struct buffer *b = &f->s->statement;
    uint64_t known = 0;
    engine_begin(f->s);
    buffer_add_text(b, "SELECT " LEDGER_SUMS " FROM (SELECT epoch, sequence, number, uploads, ticks, calls FROM "
                       "arrival WHERE ");
    put_day(b, f->day);
    buffer_add_format(b, " AND generation = %" PRIu32 " ORDER BY number DESC LIMIT 1 BY epoch, sequence)",
                      LEDGER_NEVER);
    enum profd_status status = engine_query_printed(f->s, &r, e);
    if (status == PROFD_OK && rows_more(&r)) {
        ledger_read_sums(&r, &row.amount, &row.number);
        status = engine_rows_check(&r, "what was not stored", e);
    }
    rows_close(&r);
    if (status == PROFD_OK && row.number > 0) {
        status = engine_query_number(f->s, &known, e,
                                     "SELECT toUInt64(count()) FROM removed WHERE generation = %" PRIu32
                                     " AND day = %" PRIu32 " AND number >= %" PRIu64,
                                     LEDGER_NEVER, f->day, row.number);
    }
    return status == PROFD_OK && row.number > 0 && known == 0 ? ledger_put(f->s, &row, 1, e) : status;
}

static enum profd_status drop_day(struct forgetting *f, struct profd_error *e)
{
    char where[128];
    (void)snprintf(where, sizeof where, "received >= %" PRId64 " AND received < %" PRId64, f->day * ENGINE_DAY,
                   (f->day + 1) * ENGINE_DAY);
    const enum profd_status status = engine_check_everywhere(f->s, "arrival", where, e);
    return status == PROFD_OK ? engine_drop_day(f->s, "arrival", f->day, e) : status;
}

/* Some parts of the day; then, when all of them are done, the day goes. */
static enum profd_status forget_some(struct forgetting *f, struct profd_error *e)
{
    struct clickhouse_store *s = f->s;
    enum profd_status status = engine_complete_drop(s, "arrival", true, e);
    if (s->forgotten_day != f->day) {
        s->forgotten_day = f->day;
        s->forgotten_parts = 0;
    }
    for (unsigned i = 0; i < PARTS_AT_ONCE && s->forgotten_parts < PARTS && status == PROFD_OK; i++) {
        status = keep_keys(f, s->forgotten_parts, e);
        s->forgotten_parts += status == PROFD_OK;
    }
    if (status != PROFD_OK || s->forgotten_parts < PARTS) {
        return status;
    }
    s->forgotten_day = 0;
    status = keep_others(f, e);
    if (status == PROFD_OK) {
        status = keep_amounts(f, e);
    }
    return status == PROFD_OK ? drop_day(f, e) : status;
}

static enum profd_status find_day(struct forgetting *f, bool *found, struct profd_error *e)
{
    struct row_reader r = {.bytes = NULL};
    enum profd_status status = engine_query(
        f->s, &r, e, "SELECT toUInt64(count()), toInt64(min(received)) FROM arrival WHERE " ENGINE_REAL_ARRIVAL);
    if (status == PROFD_OK) {
        *found = rows_u64(&r) > 0;
        f->day = (uint32_t)(rows_i64(&r) / ENGINE_DAY);
        *found = *found && (f->day + 1) * ENGINE_DAY <= f->until;
        status = engine_rows_check(&r, "old arrivals", e);
    }
    rows_close(&r);
    return status;
}

enum profd_status engine_remove_ids(struct store *base, int64_t before, struct profd_error *e)
{
    struct forgetting f = {.s = engine_self(base), .until = before + STORE_DIGESTS_BEFORE};
    bool found = false;
    enum profd_status status = engine_complete_drop(f.s, "arrival", false, e);
    if (status == PROFD_OK) {
        status = find_day(&f, &found, e);
    }
    if (status != PROFD_OK || !found) {
        return status;
    }
    status = engine_lock_take(f.s, "forget", &f.lock, e);
    return status == PROFD_OK ? engine_lock_give(f.s, &f.lock, forget_some(&f, e)) : status;
}
