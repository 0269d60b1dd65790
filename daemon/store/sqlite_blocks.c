/* Sums of past days that the tier keeps: blocks, and what the database keeps of them. */
#include <stdlib.h>

#include "proto/sum.h"
#include "store/block_keys.h"
#include "store/store_internal.h"

#define SERIES_AT_ONCE 16 /* that one transaction releases */

void store_set_archive(struct store *s, const struct store_archive *archive)
{
    s->archive = archive;
}

void store_set_tier(struct store *s, bool tier)
{
    s->tier = tier;
}

enum profd_status sqlite_block_find(struct store *s, enum sqlite_sql which, uint64_t number, struct store_block *out,
                                    bool *found, struct profd_error *e)
{
    sqlite3_stmt *q;
    TRY(sqlite_first(s, which, VALUES(INTEGER(number)), &q, found, e));
    if (*found) {
        sqlite_block_take(q, 0, out);
        sqlite_finish(q);
    }
    return PROFD_OK;
}

/* Finds the next series with sums of the day. */
static enum profd_status find_series(struct store *s, int64_t day, int64_t from, int64_t *series, bool *found,
                                     struct profd_error *e)
{
    return sqlite_find(s, SQL_BLOCK_SERIES, VALUES(INTEGER(day), INTEGER(from)), series, found, e);
}

/* Finds the oldest day that may be sealed now. */
static enum profd_status find_day(struct store *s, int64_t before, int64_t *day, bool *found, struct profd_error *e)
{
    int64_t one;
    for (int64_t from = 0;; from = *day + 1) {
        TRY(sqlite_find(s, SQL_BLOCK_DAY_NEXT, VALUES(INTEGER(from), INTEGER(before / SQLITE_DAY)), day, found, e));
        if (!*found) {
            return PROFD_OK;
        }
        TRY(sqlite_find(s, SQL_BLOCK_DAY_JUDGE, VALUES(INTEGER(*day), INTEGER(before)), &one, found, e));
        if (*found) {
            return PROFD_OK;
        }
    }
}

static enum profd_status begin_block(struct store *s, int64_t before, struct store_block *b, bool *found,
                                     struct profd_error *e)
{
    int64_t series, day = 0;
    struct store_centre centre;
    TRY(sqlite_centre_load(s, &centre, e));
    if (centre.restored) {
        return PROFD_OK;
    }
    TRY(sqlite_block_find(s, SQL_BLOCK_UNSEALED, 0, b, found, e));
    if (*found && b->state == STORE_BLOCK_OPEN) {
        TRY(find_series(s, b->day, 0, &series, found, e));
        TRY(*found ? sqlite_run(s, SQL_BLOCK_ATTEMPT, VALUES(INTEGER(b->day), INTEGER(b->day)), e)
                   : sqlite_run(s, SQL_BLOCK_STATE_SET, VALUES(INTEGER(b->number), INTEGER(STORE_BLOCK_GONE)), e));
        b->attempt++;
    }
    if (*found) {
        return PROFD_OK;
    }
    TRY(find_day(s, before, &day, found, e));
    if (*found) {
        TRY(sqlite_run(s, SQL_BLOCK_ADD, VALUES(INTEGER(day)), e));
        TRY(sqlite_block_find(s, SQL_BLOCK_UNSEALED, 0, b, found, e));
    }
    return PROFD_OK;
}

enum profd_status store_block_begin(struct store *s, int64_t before, struct store_block *block, bool *found,
                                    struct profd_error *e)
{
    struct store_block b;
    bool any = false;
    TRY(sqlite_upkeep_begin(s, e));
    TRY(sqlite_upkeep_end(s, begin_block(s, before, &b, &any, e), e));
    *found = any;
    if (any) {
        *block = b;
    }
    return PROFD_OK;
}

static enum profd_status lost_attempt(const struct store_block *b, struct profd_error *e)
{
    return profd_error_set(e, PROFD_CONFLICT, "block %llu is not open, or attempt %u of it has ended",
                           (unsigned long long)b->number, b->attempt);
}

/* CONFLICT unless the block is open in this attempt. */
static enum profd_status check_attempt(struct store *s, const struct store_block *b, struct profd_error *e)
{
    struct store_block now;
    bool found = false;
    TRY(sqlite_block_find(s, SQL_BLOCK_GET, b->number, &now, &found, e));
    return found && now.state == STORE_BLOCK_OPEN && now.attempt == b->attempt ? PROFD_OK : lost_attempt(b, e);
}

/* A block that is being read. */
struct block_reading {
    struct row_selection r;
    const struct store_block *block;
    struct store_block_cursor cursor;
    size_t bytes;        /* left */
    struct arena *arena; /* of one sum */
    enum profd_status (*each)(void *context, const struct store_block_sum *sum, struct profd_error *e);
    void *context;
};

/* Columns of SQL_BLOCK_SUMS. */
enum {
    AT,
    NUMBER,
    UPLOADS,
    PROCESSES,
    TICKS,
    CALLS,
    FIRST,
    LAST,
    INEXACT,
    GROUPS,
    HOSTS,
    COUNTS,
    SPREAD,
    OF_HOUR,
    SHARES
};

/* Adds up the shares of an hour: its row in the ledger also has those of what came late. */
static enum profd_status add_shares(struct block_reading *b, struct store_block_sum *sum, struct profd_error *e)
{
    struct sqlite_sums sums;
    struct counts c;
    uint8_t *bytes = ARENA_ARRAY(b->arena, SQLITE_SHARES_BYTES, uint8_t);
    TRY(bytes ? PROFD_OK : profd_no_memory(e));
    TRY(rollup_decode(b->arena, sum->bulk.counts, sum->bulk.counts_size, (uint32_t)sum->build_count, false, &c, e));
    sqlite_sums_init(&sums, sum->build_count);
    sums.stack_ticks = sum_all(c.node_ticks, c.node_count);
    (void)share_add_counts(sums.shares, &c);
    sum->shares_size = sqlite_shares_encode(&sums, bytes);
    sum->shares = bytes;
    return PROFD_OK;
}

/* Adds the reasons of the marked hours. The marks stay in this database, and a report of another centre would call the
 * sum exact. */
static enum profd_status add_marks(struct block_reading *b, int64_t first, int64_t last, uint32_t *reasons,
                                   struct profd_error *e)
{
    const struct series_info *info = b->r.series;
    const bool tenant = store_is_tenant(info->uid);
    const char *host = NULL;
    enum profd_status status = PROFD_OK;
    sqlite3_stmt *q;
    for (size_t i = 0; i < info->label_count; i++) {
        host = strcmp(info->labels[i].name, "host") ? host : info->labels[i].value;
    }
    TRY(sqlite_start(b->r.s, SQL_HOUR_MARKS_OF,
                     VALUES(INTEGER(first), INTEGER(last), INTEGER(tenant ? 0 : SQLITE_MARK_LOCAL),
                            INTEGER(tenant ? store_tenant_id(info->uid) : 0), host ? TEXT(host) : NOTHING),
                     &q, e));
    while (sqlite_row(b->r.s, q, &status, e)) {
        *reasons |= (uint32_t)sqlite3_column_int64(q, 0);
    }
    return status;
}

static enum profd_status give_sum(struct block_reading *b, sqlite3_stmt *q, struct store_block_sum *sum,
                                  struct profd_error *e)
{
    size_t hosts_size;
    const uint8_t *hosts = sqlite_blob(q, HOSTS, &hosts_size);
    const int64_t hours = sum->stub.level == SQLITE_LEVEL_HOUR ? 1 : 24, at = sqlite3_column_int64(q, AT);
    sum->stub.at = at;
    sum->number = sqlite_u64(q, NUMBER);
    sum->uploads = sqlite_u64(q, UPLOADS);
    sum->processes = sqlite_u64(q, PROCESSES);
    sum->ticks = sqlite_u64(q, TICKS);
    sum->calls = sqlite_u64(q, CALLS);
    sum->first = sqlite3_column_int64(q, FIRST);
    sum->last = sqlite3_column_int64(q, LAST);
    sum->inexact = (uint32_t)sqlite3_column_int64(q, INEXACT);
    TRY(add_marks(b, hours * at, hours * at + hours - 1, &sum->inexact, e));
    sum->groups = sqlite_blob(q, GROUPS, &sum->groups_size);
    sum->bulk.counts = sqlite_blob(q, COUNTS, &sum->bulk.counts_size);
    sum->bulk.spread = sqlite_blob(q, SPREAD, &sum->bulk.spread_size);
    sum->shares = sqlite_blob(q, SHARES, &sum->shares_size);
    sum->stub.bytes = sum->bulk.counts_size + sum->bulk.spread_size + hosts_size;
    TRY(sqlite_host_totals_encode(b->r.s, b->arena, b->cursor.series, sum->build_count, hours * at,
                                  hours * at + hours - 1, (int64_t)b->block->number, &sum->bulk.totals,
                                  &sum->bulk.totals_size, e));
    const size_t bytes = sum->stub.bytes + sum->bulk.totals_size;
    b->bytes -= bytes < b->bytes ? bytes : b->bytes;
    TRY(sqlite_select_hosts(&b->r, b->arena, hosts, hosts_size, &sum->bulk.hosts, &sum->bulk.host_count, e));
    if (sum->stub.level == SQLITE_LEVEL_HOUR && sum->uploads != sqlite_u64(q, OF_HOUR)) {
        TRY(add_shares(b, sum, e));
    }
    return b->each(b->context, sum, e);
}

/* Gives the sums of one level of a series from the cursor on, until enough bytes were given. */
static enum profd_status give_level(struct block_reading *b, const struct store_block_sum *of, struct profd_error *e)
{
    const int64_t each = b->cursor.level == SQLITE_LEVEL_HOUR ? 24 : 1, first = b->block->day * each,
                  last = first + each - 1, from = b->cursor.at > first ? b->cursor.at : first;
    enum profd_status status = PROFD_OK;
    sqlite3_stmt *q;
    TRY(sqlite_start(b->r.s, SQL_BLOCK_SUMS,
                     VALUES(INTEGER(b->cursor.series), INTEGER(b->cursor.level), INTEGER(from), INTEGER(last)), &q, e));
    while (sqlite_row(b->r.s, q, &status, e)) {
        struct store_block_sum sum = *of;
        arena_reset(b->arena);
        status = give_sum(b, q, &sum, e);
        b->cursor.at = sum.stub.at + 1;
        if (status != PROFD_OK || b->bytes == 0) {
            sqlite_finish(q);
            return status;
        }
    }
    b->cursor.level++;
    b->cursor.at = 0;
    return status;
}

static enum profd_status read_block(struct block_reading *b, struct profd_error *e)
{
    bool found = false;
    TRY(check_attempt(b->r.s, b->block, e));
    while (b->bytes > 0 && !b->cursor.done) {
        int64_t series = 0;
        TRY(find_series(b->r.s, b->block->day, b->cursor.series, &series, &found, e));
        if (!found) {
            b->cursor.done = true;
            return PROFD_OK;
        }
        if (series != b->cursor.series) {
            b->cursor = (struct store_block_cursor){.series = series};
        }
        TRY(sqlite_select_one(&b->r, series, &found, e));
        const struct series_info *info = b->r.series;
        struct store_block_sum sum = {.stub = {.block = *b->block, .program = info->builds[info->program].id.text},
                                      .build_count = info->build_count,
                                      .builds = info->builds,
                                      .label_count = info->label_count,
                                      .labels = info->labels};
        TRY(sqlite_series_key(&b->r, info, &sum.tenant, sum.stub.series, e));
        while (b->bytes > 0 && b->cursor.level <= SQLITE_LEVEL_DAY) {
            sum.stub.level = b->cursor.level;
            TRY(give_level(b, &sum, e));
        }
        if (b->cursor.level > SQLITE_LEVEL_DAY) {
            b->cursor = (struct store_block_cursor){.series = series + 1};
        }
    }
    return PROFD_OK;
}

enum profd_status
store_block_read(struct store *s, const struct store_block *block, struct store_block_cursor *cursor, size_t bytes,
                 enum profd_status (*each)(void *context, const struct store_block_sum *sum, struct profd_error *e),
                 void *context, struct profd_error *e)
{
    static const struct store_filter any = {.build_id = NULL};
    struct block_reading b = {.block = block,
                              .cursor = *cursor,
                              .bytes = bytes > 0 ? bytes : 1,
                              .each = each,
                              .context = context,
                              .arena = arena_new(0)};
    bool began = false;
    enum profd_status status = sqlite_reading_init(&b.r, s, &any, e);
    if (status == PROFD_OK) {
        status = b.arena ? sqlite_read_begin(s, &began, e) : profd_no_memory(e);
    }
    if (status == PROFD_OK) {
        status = read_block(&b, e);
    }
    status = sqlite_read_end(s, began, status, e);
    sqlite_reading_done(&b.r);
    arena_free(b.arena);
    if (status == PROFD_OK) {
        *cursor = b.cursor;
    }
    return status;
}

/* The ranges of an epoch, while its arrivals are read. */
struct block_epoch {
    struct block_keys_range *ranges; /* owned */
    size_t count, capacity;
};

/* Adds the sequences from low to high behind those that are there. */
static enum profd_status add_range(struct block_epoch *k, uint64_t low, uint64_t high, struct profd_error *e)
{
    if (low > high) {
        return PROFD_OK;
    }
    if (k->count > 0 && k->ranges[k->count - 1].high == low - 1) {
        k->ranges[k->count - 1].high = high;
        return PROFD_OK;
    }
    TRY(LIST_GROW(k->ranges, k->count, k->capacity) ? PROFD_OK : profd_no_memory(e));
    k->ranges[k->count++] = (struct block_keys_range){.low = low, .high = high};
    return PROFD_OK;
}

/* Everything up to the mark was counted, but what table arrival says otherwise of. */
static enum profd_status read_arrivals(struct store *s, int64_t epoch, uint64_t mark, int64_t arrivals,
                                       struct block_epoch *k, struct profd_error *e)
{
    enum profd_status status = PROFD_OK;
    uint64_t next = 1; /* of those up to the mark */
    sqlite3_stmt *q;
    k->count = 0;
    TRY(sqlite_start(s, SQL_BLOCK_ARRIVALS, VALUES(INTEGER(epoch), INTEGER(arrivals)), &q, e));
    while (sqlite_row(s, q, &status, e)) {
        const uint64_t sequence = sqlite_u64(q, 0);
        const bool counted = sqlite3_column_int64(q, 1);
        status = next <= mark ? add_range(k, next, sequence <= mark ? sequence - 1 : mark, e) : PROFD_OK;
        next = sequence + 1;
        if (!status && counted) {
            status = add_range(k, sequence, sequence, e);
        }
    }
    return !status && next <= mark ? add_range(k, next, mark, e) : status;
}

/* Appends the first epoch behind *epoch. */
static enum profd_status add_epoch(struct store *s, const struct store_block *b, int64_t *epoch, bool *found,
                                   struct block_epoch *k, struct buffer *keys, struct profd_error *e)
{
    sqlite3_stmt *q;
    size_t n;
    TRY(sqlite_first(s, SQL_BLOCK_EPOCH, VALUES(INTEGER(*epoch), INTEGER(b->number), INTEGER(b->attempt)), &q, found,
                     e));
    if (!*found) {
        return PROFD_OK;
    }
    *epoch = sqlite3_column_int64(q, 0);
    const uint8_t *key = sqlite_blob(q, 2, &n);
    enum profd_status status = read_arrivals(s, *epoch, sqlite_u64(q, 3), sqlite3_column_int64(q, 4), k, e);
    if (!status && n == SEGMENT_EPOCH_SIZE && k->count > 0) {
        block_keys_add(keys, sqlite_text(q, 1), key, k->ranges, k->count);
    }
    sqlite_finish(q);
    return !status && keys->failed ? profd_no_memory(e) : status;
}

enum profd_status store_block_keys(struct store *s, const struct store_block *block, struct buffer *keys,
                                   struct profd_error *e)
{
    struct block_epoch k = {.ranges = NULL};
    int64_t epoch = 0;
    bool found = true;
    enum profd_status status = PROFD_OK;
    while (!status && found) {
        bool began = false;
        status = sqlite_read_begin(s, &began, e);
        status = status ? status : add_epoch(s, block, &epoch, &found, &k, keys, e);
        status = sqlite_read_end(s, began, status, e);
    }
    free(k.ranges);
    TRY(status);
    return check_attempt(s, block, e);
}

enum profd_status store_block_written(struct store *s, const struct store_block *block, int64_t now,
                                      struct profd_error *e)
{
    TRY(sqlite_write_begin(s, e));
    enum profd_status status =
        sqlite_run(s, SQL_BLOCK_WRITTEN, VALUES(INTEGER(block->number), INTEGER(block->attempt), INTEGER(now)), e);
    if (status == PROFD_OK && sqlite3_changes(s->db) == 0) {
        status = lost_attempt(block, e);
    }
    return sqlite_write_end(s, status, e);
}

enum profd_status store_keep_arcs(const uint8_t *counts, size_t n, size_t builds, uint8_t **out, size_t *size,
                                  struct profd_error *e)
{
    struct counts arcs;
    struct arena *a = arena_new(0);
    enum profd_status status = a ? rollup_decode(a, counts, n, (uint32_t)builds, true, &arcs, e) : profd_no_memory(e);
    status = status ? status : counts_encode(&arcs, out, size, e);
    arena_free(a);
    return status;
}

/* Keeps the arcs of the day's sum: cycles are found over the arcs of all time, in reports of recent days, too. Of a sum
 * that cannot be decoded none are kept. */
static enum profd_status keep_arcs(struct store *s, const struct store_block *b, int64_t series, struct profd_error *e)
{
    sqlite3_stmt *q;
    bool row = false;
    uint8_t *encoded = NULL;
    size_t n;
    struct profd_error why;
    TRY(sqlite_first(s, SQL_BLOCK_COUNTS, VALUES(INTEGER(series), INTEGER(b->day)), &q, &row, e));
    if (!row) {
        return PROFD_OK;
    }
    const uint8_t *counts = sqlite_blob(q, 0, &n);
    enum profd_status status = store_keep_arcs(counts, n, (size_t)sqlite3_column_int(q, 1), &encoded, &n, &why);
    sqlite_finish(q);
    if (!status) {
        status = sqlite_run(s, SQL_SEALED_ARCS,
                            VALUES(INTEGER(series), INTEGER(b->day), INTEGER(b->number), BLOB(encoded, n)), e);
    } else if (status == PROFD_NO_MEMORY) {
        *e = why;
    } else {
        status = PROFD_OK;
    }
    free(encoded);
    return status;
}

/* Releases the sums of a series. */
static enum profd_status release_series(struct store *s, const struct store_block *b, int64_t series, uint64_t *rows,
                                        struct profd_error *e)
{
    for (int level = SQLITE_LEVEL_HOUR; level <= SQLITE_LEVEL_DAY; level++) {
        const int64_t each = level == SQLITE_LEVEL_HOUR ? 24 : 1, first = b->day * each, last = first + each - 1;
        const struct sqlite_value which[] = {INTEGER(series), INTEGER(level), INTEGER(first), INTEGER(last),
                                             INTEGER(b->number)};
        uint64_t removed = 0;
        TRY(sqlite_run(s, SQL_SEALED_ADD, which, sizeof which / sizeof which[0], e));
        TRY(sqlite_run(s, SQL_SEALED_COUNT, which, sizeof which / sizeof which[0], e));
        TRY(level == SQLITE_LEVEL_DAY ? keep_arcs(s, b, series, e) : PROFD_OK);
        TRY(sqlite_rollup_remove(s, series, level, first, last, &removed, e));
        *rows += removed;
    }
    TRY(sqlite_run(s, SQL_HOST_TOTAL_REMOVE,
                   VALUES(INTEGER(series), INTEGER(24 * b->day), INTEGER(24 * b->day + 23), INTEGER(b->number)), e));
    return sqlite_rollup_remove_all(s, series, rows, e);
}

static enum profd_status release(struct store *s, struct store_progress *progress, struct profd_error *e)
{
    struct sqlite_budget budget = sqlite_budget_begin();
    struct store_block b;
    int64_t series = 0;
    TRY(sqlite_block_find(s, SQL_BLOCK_UNSEALED, 0, &b, &progress->more, e));
    if (!progress->more || b.state != STORE_BLOCK_WRITTEN) {
        progress->more = false;
        return PROFD_OK;
    }
    for (int n = 0; n < SERIES_AT_ONCE && !sqlite_budget_spent(&budget); n++) {
        TRY(find_series(s, b.day, series, &series, &progress->more, e));
        if (!progress->more) {
            TRY(sqlite_run(s, SQL_BLOCK_STATE_SET, VALUES(INTEGER(b.number), INTEGER(STORE_BLOCK_SEALED)), e));
            return sqlite_run(s, SQL_BLOCKS_GONE, NULL, 0, e);
        }
        TRY(release_series(s, &b, series++, &progress->rows, e));
    }
    return PROFD_OK;
}

enum profd_status store_block_release(struct store *s, struct store_progress *progress, struct profd_error *e)
{
    struct store_progress p = {.more = false};
    TRY(sqlite_upkeep_begin(s, e));
    TRY(sqlite_upkeep_end(s, release(s, &p, e), e));
    *progress = p;
    return PROFD_OK;
}

enum profd_status store_block_forget(struct store *s, uint64_t number, struct profd_error *e)
{
    TRY(sqlite_write_begin(s, e));
    return sqlite_write_end(s, sqlite_run(s, SQL_BLOCK_FORGET, VALUES(INTEGER(number)), e), e);
}

enum profd_status store_each_block(struct store *s, bool (*each)(void *context, const struct store_block *block),
                                   void *context, struct profd_error *e)
{
    sqlite3_stmt *q;
    enum profd_status status = PROFD_OK;
    TRY(sqlite_start(s, SQL_BLOCK_EACH, NULL, 0, &q, e));
    while (sqlite_row(s, q, &status, e)) {
        struct store_block b;
        sqlite_block_take(q, 0, &b);
        if (!each(context, &b)) {
            sqlite_finish(q);
            break;
        }
    }
    return status;
}

enum profd_status store_get_tier_totals(struct store *s, int64_t before, struct store_tier_totals *out,
                                        struct profd_error *e)
{
    sqlite3_stmt *q;
    bool row = false;
    TRY(sqlite_first(s, SQL_TIER_TOTALS, VALUES(INTEGER(before / SQLITE_DAY)), &q, &row, e));
    *out = (struct store_tier_totals){.days_sealed = sqlite_u64(q, 0),
                                      .days_waiting = sqlite_u64(q, 1),
                                      .sums = sqlite_u64(q, 2),
                                      .bytes = sqlite_u64(q, 3),
                                      .sealed_to = sqlite3_column_int64(q, 4) * SQLITE_DAY,
                                      .newest = sqlite_u64(q, 5),
                                      .gone = sqlite_u64(q, 6),
                                      .first = sqlite3_column_int64(q, 7)};
    sqlite_finish(q);
    return PROFD_OK;
}
