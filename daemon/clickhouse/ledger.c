#include "clickhouse/ledger.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/sum.h"
#include "store/outgoing.h"

#define DELETIONS_AT_ONCE 100u /* in a statement */

static void read_text(struct row_reader *r, char *out, size_t size)
{
    size_t n;
    const char *text = rows_string(r, &n);
    (void)snprintf(out, size, "%.*s", text && n < size ? (int)n : 0, text ? text : "");
}

static void read_amount(struct row_reader *r, struct store_amount *out)
{
    out->uploads = rows_u64(r);
    out->ticks = rows_u64(r);
    out->calls = rows_u64(r);
}

static enum profd_status load_rows(struct clickhouse_store *s, struct arena *a, struct ledger *l, struct profd_error *e)
{
    struct row_reader r = {.bytes = NULL};
    enum profd_status status =
        engine_query(s, &r, e,
                     "SELECT program, uid, generation, day, number, uploads, ticks, calls FROM removed "
                     "ORDER BY number DESC LIMIT 1 BY program, uid, generation, day");
    while (status == PROFD_OK && rows_more(&r)) {
        struct ledger_row *longer = arena_extend(a, l->rows, l->row_count, &l->row_capacity, sizeof *longer);
        if (!longer) {
            status = profd_no_memory(e);
            break;
        }
        l->rows = longer;
        struct ledger_row *x = &l->rows[l->row_count++];
        read_text(&r, x->program, sizeof x->program);
        x->uid = rows_u32(&r);
        x->generation = rows_u32(&r);
        x->day = rows_u32(&r);
        x->number = rows_u64(&r);
        read_amount(&r, &x->amount);
        status = engine_rows_check(&r, "what was removed", e);
        outgoing_amount_add(&l->removed, &x->amount);
    }
    rows_close(&r);
    return status;
}

static enum profd_status load_deletions(struct clickhouse_store *s, struct arena *a, struct ledger *l,
                                        struct profd_error *e)
{
    char all[ENGINE_UNION_SIZE];
    struct row_reader r = {.bytes = NULL};
    enum profd_status status =
        engine_query(s, &r, e, "SELECT program, uid, max(generation), max(before) FROM %s GROUP BY program, uid",
                     engine_name_union(s, "deletion", all));
    while (status == PROFD_OK && rows_more(&r)) {
        struct ledger_deletion *longer =
            arena_extend(a, l->deletions, l->deletion_count, &l->deletion_capacity, sizeof *longer);
        if (!longer) {
            status = profd_no_memory(e);
            break;
        }
        l->deletions = longer;
        struct ledger_deletion *x = &l->deletions[l->deletion_count++];
        *x = (struct ledger_deletion){.uid = 0};
        read_text(&r, x->program, sizeof x->program);
        x->uid = rows_u32(&r);
        x->generation = rows_u32(&r);
        x->before = rows_i64(&r);
        status = engine_rows_check(&r, "deleted programs", e);
        for (uint32_t i = 0; i < l->row_count; i++) {
            const struct ledger_row *row = &l->rows[i];
            if (row->day == LEDGER_DELETED && row->uid == x->uid && strcmp(row->program, x->program) == 0) {
                x->number = row->number;
                x->removed = row->amount;
            }
        }
    }
    rows_close(&r);
    return status;
}

/* Appends the columns of a sum over segments, and the query that has each segment once. */
static void put_sum(struct buffer *b, const char *keys)
{
    buffer_add_format(b,
                      "SELECT %s" LEDGER_SUMS " FROM (SELECT program, uid, epoch, sequence, number, "
                      "uploads, ticks, calls FROM segment_group WHERE head = 1 AND (",
                      keys);
}

#define SUM_END ") ORDER BY number DESC LIMIT 1 BY epoch, sequence)"

static void read_halves(struct row_reader *r, uint64_t *out)
{
    bool ignored = false;
    const uint64_t high = rows_u64(r), low = rows_u64(r);
    *out = high > SUM_MAX >> 32 ? SUM_MAX : high << 32;
    sum_add(out, low, &ignored);
}

void ledger_read_sums(struct row_reader *r, struct store_amount *out, uint64_t *last)
{
    read_halves(r, &out->uploads);
    read_halves(r, &out->ticks);
    read_halves(r, &out->calls);
    *last = rows_u64(r);
}

enum profd_status ledger_sum_segments(struct clickhouse_store *s, const char *where, struct store_amount *out,
                                      uint64_t *last, struct profd_error *e)
{
    struct row_reader r = {.bytes = NULL};
    *out = (struct store_amount){.uploads = 0};
    *last = 0;
    engine_begin(s);
    put_sum(&s->statement, "");
    buffer_add_text(&s->statement, where);
    buffer_add_text(&s->statement, SUM_END);
    enum profd_status status = engine_query_printed(s, &r, e);
    if (status == PROFD_OK && rows_more(&r)) {
        ledger_read_sums(&r, out, last);
        status = engine_rows_check(&r, "sums of segments", e);
    }
    rows_close(&r);
    return status;
}

static void take_pending(struct ledger *l, struct row_reader *r)
{
    struct store_amount amount;
    char program[BUILDID_TEXT_SIZE];
    uint64_t last;
    read_text(r, program, sizeof program);
    const uint32_t uid = rows_u32(r);
    ledger_read_sums(r, &amount, &last);
    for (uint32_t i = 0; i < l->deletion_count && !r->cut; i++) {
        struct ledger_deletion *x = &l->deletions[i];
        if (x->uid == uid && strcmp(x->program, program) == 0) {
            x->pending = amount;
            x->last = last;
            outgoing_amount_add(&l->removed, &amount);
        }
    }
}

static enum profd_status load_pending(struct clickhouse_store *s, struct ledger *l, uint32_t from, uint32_t to,
                                      struct profd_error *e)
{
    struct row_reader r = {.bytes = NULL};
    struct buffer *b = &s->statement;
    engine_begin(s);
    put_sum(b, "program, uid, ");
    for (uint32_t i = from; i < to; i++) {
        const struct ledger_deletion *x = &l->deletions[i];
        buffer_add_text(b, i == from ? "(program = " : " OR (program = ");
        engine_put_quoted(b, x->program);
        buffer_add_format(b, " AND uid = %" PRIu32 " AND generation < %" PRIu32 " AND number > %" PRIu64 ")", x->uid,
                          x->generation, x->number);
    }
    buffer_add_text(b, SUM_END " GROUP BY program, uid");
    enum profd_status status = engine_query_printed(s, &r, e);
    while (status == PROFD_OK && rows_more(&r)) {
        take_pending(l, &r);
        status = engine_rows_check(&r, "segments of deleted programs", e);
    }
    rows_close(&r);
    return status;
}

static bool has_never(const struct ledger *l, uint32_t day)
{
    bool has = false;
    for (uint32_t i = 0; i < l->row_count && !has; i++) {
        has = l->rows[i].generation == LEDGER_NEVER && l->rows[i].day == day;
    }
    return has;
}

/* What was accepted of deleted programs, and never stored. */
static enum profd_status load_never(struct clickhouse_store *s, struct ledger *l, struct profd_error *e)
{
    struct row_reader r = {.bytes = NULL};
    enum profd_status status = engine_query(s, &r, e,
                                            "SELECT toUInt32(intDiv(received, 86400000000000)) AS day, " LEDGER_SUMS
                                            " FROM (SELECT epoch, sequence, number, received, uploads, ticks, "
                                            "calls FROM arrival WHERE generation = %" PRIu32
                                            " ORDER BY number DESC LIMIT 1 BY epoch, sequence) GROUP BY day",
                                            LEDGER_NEVER);
    while (status == PROFD_OK && rows_more(&r)) {
        struct store_amount amount;
        uint64_t last;
        const uint32_t day = rows_u32(&r);
        ledger_read_sums(&r, &amount, &last);
        status = engine_rows_check(&r, "what was not stored", e);
        if (status == PROFD_OK && !has_never(l, day)) {
            outgoing_amount_add(&l->removed, &amount);
        }
    }
    rows_close(&r);
    return status;
}

enum profd_status ledger_load(struct clickhouse_store *s, struct arena *a, struct ledger *out, struct profd_error *e)
{
    *out = (struct ledger){.rows = NULL};
    enum profd_status status = load_rows(s, a, out, e);
    if (status == PROFD_OK) {
        status = load_deletions(s, a, out, e);
    }
    if (status == PROFD_OK) {
        status = load_never(s, out, e);
    }
    for (uint32_t i = 0; i < out->deletion_count && status == PROFD_OK; i += DELETIONS_AT_ONCE) {
        const uint32_t left = out->deletion_count - i;
        status = load_pending(s, out, i, i + (left < DELETIONS_AT_ONCE ? left : DELETIONS_AT_ONCE), e);
    }
    return status;
}

const struct ledger_row *ledger_find_day(const struct ledger *l, const char *program, uint32_t uid, uint32_t generation,
                                         uint32_t day)
{
    for (uint32_t i = 0; i < l->row_count; i++) {
        const struct ledger_row *x = &l->rows[i];
        if (x->day == day && x->uid == uid && x->generation == generation && strcmp(x->program, program) == 0) {
            return x;
        }
    }
    return NULL;
}

enum profd_status ledger_put(struct clickhouse_store *s, const struct ledger_row *rows, size_t n, struct profd_error *e)
{
    struct buffer b;
    buffer_init(&b, 64 << 20);
    for (size_t i = 0; i < n; i++) {
        rows_put_text(&b, rows[i].program);
        rows_put_u32(&b, rows[i].uid);
        rows_put_u32(&b, rows[i].generation);
        rows_put_u32(&b, rows[i].day);
        rows_put_u64(&b, rows[i].number);
        rows_put_u64(&b, rows[i].amount.uploads);
        rows_put_u64(&b, rows[i].amount.ticks);
        rows_put_u64(&b, rows[i].amount.calls);
    }
    const enum profd_status status =
        engine_insert(s, "removed (program, uid, generation, day, number, uploads, ticks, calls)", &b, e);
    buffer_done(&b);
    return status;
}

enum profd_status ledger_load_stored(struct clickhouse_store *s, struct arena *a, struct ledger_stored *out,
                                     struct profd_error *e)
{
    static const struct store_scope every = {.all = true};
    struct engine_catalogue c = {.count = 0};
    struct engine_sums *sums = NULL;
    size_t kept = 0;
    bool ignored = false;
    *out = (struct ledger_stored){.single = 0};
    enum profd_status status = engine_load_series(s, a, &every, ENGINE_EVERY, NULL, &c, e);
    if (status == PROFD_OK) {
        sums = ARENA_ARRAY(a, c.count + 1, struct engine_sums);
        status = sums ? engine_load_sums(s, a, &c, NULL, sums, e) : profd_no_memory(e);
    }
    for (size_t i = 0; i < c.count && status == PROFD_OK; i++) {
        const struct store_amount amount = {sums[i].uploads, sums[i].ticks, sums[i].calls};
        outgoing_amount_add(&out->amount, &amount);
        sum_add(&out->single, sums[i].single, &ignored);
        if (sums[i].hours > 0) {
            c.list[kept++] = c.list[i];
        }
    }
    c.count = kept;
    return status == PROFD_OK ? engine_collect_ids(a, &c, "", "", &out->builds, e) : status;
}
