/* Open segments: accepted uploads are added as parts, which are folded into the segment's bytes periodically. */
#include "store/sqlite_segment.h"

#include <stdlib.h>

#include "proto/sum.h"

#define PARTS_MOST (1 << 24) /* numbers of parts of one segment; they begin again when parts are folded */

/* An open segment's row. */
struct open_segment {
    int64_t id;
    struct store_amount amount;
    uint64_t weight, parts, part_bytes, stack_ticks;
};

static enum profd_status find_open(struct store *s, int64_t series, int64_t end, bool held, struct open_segment *out,
                                   bool *found, struct profd_error *e)
{
    sqlite3_stmt *q;
    *found = false;
    TRY(sqlite_first(
        s, held ? SQL_SEGMENT_HELD_FIND : SQL_SEGMENT_OPEN_FIND,
        VALUES(INTEGER(series), INTEGER(end / SQLITE_HOUR), BLOB(s->relay_epoch, sizeof s->relay_epoch), INTEGER(end)),
        &q, found, e));
    if (*found) {
        *out = (struct open_segment){.id = sqlite3_column_int64(q, 0),
                                     .amount = sqlite_amount(q, 1),
                                     .weight = (uint64_t)sqlite3_column_int64(q, 4),
                                     .parts = (uint64_t)sqlite3_column_int64(q, 5),
                                     .part_bytes = (uint64_t)sqlite3_column_int64(q, 6),
                                     .stack_ticks = (uint64_t)sqlite3_column_int64(q, 7)};
        sqlite_finish(q);
    }
    return PROFD_OK;
}

/* Opens a segment and assigns its number. */
static enum profd_status open_new(struct store *s, const struct store_upload *u, int64_t series,
                                  struct open_segment *out, struct profd_error *e)
{
    int64_t sequence = 0, since, until;
    bool found = false;
    uint8_t *bytes = NULL;
    size_t size = 0;
    enum profd_status status = sqlite_find(s, SQL_RELAY_NUMBER, NULL, 0, &sequence, &found, e);
    if (status == PROFD_OK && !found) {
        status = profd_error_set(e, PROFD_DAMAGED, "database %s: table relay is empty", s->path);
    }
    if (status == PROFD_OK) {
        status = outgoing_open(u, s->relay_epoch, (uint64_t)sequence, &bytes, &size, e);
    }
    outgoing_slice(&s->relay_pace, u, &since, &until);
    if (status == PROFD_OK) {
        status = sqlite_run(s, SQL_SEGMENT_ADD,
                            VALUES(BLOB(s->relay_epoch, sizeof s->relay_epoch), INTEGER(sequence), INTEGER(series),
                                   INTEGER(u->end / SQLITE_HOUR), INTEGER(u->received), INTEGER(size), INTEGER(since),
                                   INTEGER(until)),
                            e);
    }
    *out = (struct open_segment){.id = sqlite3_last_insert_rowid(s->db)};
    if (status == PROFD_OK) {
        status = sqlite_run(s, SQL_SEGMENT_BYTES_SET, VALUES(INTEGER(out->id), BLOB(bytes, size)), e);
    }
    free(bytes);
    return status;
}

static enum profd_status add_part(struct store *s, struct open_segment *to, const struct outgoing_chunk *c,
                                  struct profd_error *e)
{
    const struct outgoing_part *p = &c->part;
    bool ignored = false;
    enum profd_status status =
        sqlite_run(s, SQL_SEGMENT_PART_ADD,
                   VALUES(INTEGER(to->id * PARTS_MOST + (int64_t)to->parts), INTEGER(p->group), INTEGER(p->start),
                          INTEGER(p->end - p->start), INTEGER(p->inexact), INTEGER(p->uploads), INTEGER(p->started),
                          BLOB(p->counts, p->counts_size)),
                   e);
    outgoing_amount_add(&to->amount, &c->amount);
    sum_add(&to->stack_ticks, c->stack_ticks, &ignored);
    to->weight += c->weight;
    to->parts++;
    to->part_bytes += p->counts_size;
    return status == PROFD_OK
               ? sqlite_run(s, SQL_SEGMENT_SUMS_SET,
                            VALUES(INTEGER(to->id), INTEGER(to->amount.uploads), INTEGER(to->amount.ticks),
                                   INTEGER(to->amount.calls), INTEGER(to->weight), INTEGER(to->parts),
                                   INTEGER(to->part_bytes), INTEGER(to->stack_ticks)),
                            e)
               : status;
}

/* A segment that could become too large is closed, and another one opened. */
static enum profd_status add_chunk(struct store *s, const struct store_upload *u, int64_t series,
                                   const struct outgoing_chunk *c, bool held, struct profd_error *e)
{
    struct open_segment to;
    bool found;
    TRY(find_open(s, series, u->end, held, &to, &found, e));
    if (found && (to.weight + c->weight > LIMIT_SEGMENT_ROWS || to.parts + 1 >= PARTS_MOST)) {
        TRY(held ? PROFD_OK
                 : sqlite_run(s, SQL_SEGMENT_STATE_SET,
                              VALUES(INTEGER(to.id), INTEGER(SEGMENT_CLOSED), INTEGER(u->received)), e));
        found = false;
    }
    if (!found) {
        TRY(open_new(s, u, series, &to, e));
        if (held) {
            TRY(sqlite_run(s, SQL_SEGMENT_STATE_SET,
                           VALUES(INTEGER(to.id), INTEGER(SEGMENT_HELD), INTEGER(u->received)), e));
        }
    }
    return add_part(s, &to, c, e);
}

enum profd_status sqlite_segment_add(struct store *s, const struct store_upload *u, int64_t series,
                                     const struct sqlite_sums *one, struct profd_error *e)
{
    const struct outgoing_chunk *chunks;
    const struct store_amount amount = {one->uploads, one->ticks, one->calls};
    size_t n = 0;
    enum sqlite_fate fate;
    TRY(sqlite_relay_judge(s, u->since, &fate, e));
    if (fate == SQLITE_APART) {
        return sqlite_relay_set_apart(s, u->end, &amount, e);
    }
    struct arena *a = arena_new(0);
    enum profd_status status =
        a ? outgoing_split(a, u, &amount, one->processes, one->inexact, &chunks, &n, e) : profd_no_memory(e);
    for (size_t i = 0; status == PROFD_OK && i < n; i++) {
        status = add_chunk(s, u, series, &chunks[i], fate == SQLITE_HELD, e);
    }
    arena_free(a);
    return status;
}

static enum profd_status add_parts(struct store *s, int64_t id, struct outgoing_sum *sum, struct profd_error *e)
{
    sqlite3_stmt *q;
    TRY(sqlite_start(s, SQL_SEGMENT_PARTS, VALUES(INTEGER(id)), &q, e));
    enum profd_status status = PROFD_OK;
    while (sqlite_row(s, q, &status, e)) {
        struct outgoing_part p = {.group = (uint32_t)sqlite3_column_int64(q, 0),
                                  .start = sqlite3_column_int64(q, 1),
                                  .end = sqlite3_column_int64(q, 1) + sqlite3_column_int64(q, 2),
                                  .inexact = (uint32_t)sqlite3_column_int64(q, 3),
                                  .uploads = (uint64_t)sqlite3_column_int64(q, 4),
                                  .started = (uint64_t)sqlite3_column_int64(q, 5)};
        p.counts = sqlite_blob(q, 6, &p.counts_size);
        struct profd_error why;
        status = outgoing_sum_add(sum, &p, &why);
        if (status != PROFD_OK) {
            sqlite_finish(q);
            return profd_error_set(e, status, "%s", why.sentence);
        }
    }
    return status;
}

static enum profd_status begin_sum(struct store *s, int64_t id, struct outgoing_sum *sum, struct profd_error *e)
{
    sqlite3_stmt *q;
    bool row = false;
    size_t n;
    *sum = (struct outgoing_sum){.arena = NULL};
    TRY(sqlite_first(s, SQL_SEGMENT_BYTES_GET, VALUES(INTEGER(id)), &q, &row, e));
    const uint8_t *bytes = row ? sqlite_blob(q, 0, &n) : NULL;
    enum profd_status status = row ? outgoing_sum_begin(sum, bytes, n, e)
                                   : profd_error_set(e, PROFD_DAMAGED, "database %s: outgoing upload %lld has no bytes",
                                                     s->path, (long long)id);
    if (row) {
        sqlite_finish(q);
    }
    return status;
}

enum profd_status sqlite_segment_fold(struct store *s, int64_t id, bool *readable, struct profd_error *e)
{
    struct outgoing_sum sum;
    uint8_t *bytes = NULL;
    size_t size = 0;
    uint32_t weight = 0;
    enum profd_status status = begin_sum(s, id, &sum, e);
    if (status == PROFD_OK) {
        status = add_parts(s, id, &sum, e);
    }
    if (status == PROFD_OK && sum.parts > 0) {
        status = outgoing_sum_finish(&sum, &bytes, &size, &weight, e);
    }
    const bool changed = status == PROFD_OK && sum.parts > 0;
    outgoing_sum_done(&sum);
    *readable = s->broken != PROFD_OK || status != PROFD_DAMAGED;
    if (!*readable) {
        return PROFD_OK;
    }
    if (changed) {
        status = sqlite_run(s, SQL_SEGMENT_BYTES_SET, VALUES(INTEGER(id), BLOB(bytes, size)), e);
    }
    free(bytes);
    if (changed && status == PROFD_OK) {
        status = sqlite_run(s, SQL_SEGMENT_PARTS_REMOVE, VALUES(INTEGER(id)), e);
    }
    /* Folding keeps the ticks of stacks, unless those of more clocks are left out than fit. */
    return changed && status == PROFD_OK ? sqlite_run(s, SQL_SEGMENT_FOLDED,
                                                      VALUES(INTEGER(id), INTEGER(weight), INTEGER(size),
                                                             sum.clocks_full ? INTEGER(sum.stack_ticks) : NOTHING),
                                                      e)
                                         : status;
}

enum profd_status sqlite_segment_fold_next(struct store *s, bool *more, struct profd_error *e)
{
    int64_t id = 0;
    bool readable;
    TRY(sqlite_find(s, SQL_SEGMENT_TO_FOLD, VALUES(INTEGER(OUTGOING_PARTS), INTEGER(OUTGOING_PART_BYTES)), &id, more,
                    e));
    if (!*more) {
        return PROFD_OK;
    }
    TRY(sqlite_segment_fold(s, id, &readable, e));
    return !readable
               ? sqlite_run(s, SQL_SEGMENT_STATE_SET, VALUES(INTEGER(id), INTEGER(SEGMENT_UNREADABLE), INTEGER(0)), e)
               : PROFD_OK;
}

/* Of the next segment of the series, only its key remains. */
static enum profd_status withdraw_one(struct store *s, int64_t series, struct store_amount *withdrawn, bool *found,
                                      struct profd_error *e)
{
    sqlite3_stmt *q;
    TRY(sqlite_first(s, SQL_SEGMENT_OF_SERIES, VALUES(INTEGER(series)), &q, found, e));
    return *found ? sqlite_segment_reduce(s, q, SEGMENT_WITHDRAWN, withdrawn, e) : PROFD_OK;
}

enum profd_status sqlite_segment_withdraw(struct store *s, int64_t series, struct profd_error *e)
{
    struct sqlite_relay r;
    bool found = true;
    TRY(sqlite_relay_load(s, &r, e));
    if (!r.known) {
        return PROFD_OK;
    }
    while (found) {
        TRY(withdraw_one(s, series, &r.withdrawn, &found, e));
    }
    return sqlite_relay_save(s, &r, e);
}
