#include "tier/seal.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "core/container.h"
#include "base/log.h"
#include "net/loop.h"
#include "tier/row_binary.h"
#include "tier/statement.h"
#include "tier/steps.h"

#define DAY_NS INT64_C(86400000000000)
#define LOOK_MS 5000u
#define BATCH_BYTES (32u << 20)
#define REPLY_BYTES (1u << 20)
#define MANIFEST_BYTES (1u << 30) /* a row with the keys of a block */
#define RETIRE_AGAIN_MS 300000u   /* after a failure */
#define MARKS_AGAIN_MS 60000u     /* then marks that are not seen in the tier are inserted again */

/* The steps of sealing a block, and of retiring blocks. */
enum sealer_step {
    SEALER_LOOK,    /* thread: looks for a block to seal */
    SEALER_BEGIN,   /* writer */
    SEALER_SEND,    /* all threads: one reads the database while another waits for an insert */
    SEALER_PUBLISH, /* thread: reads the block back, then makes it visible */
    SEALER_NOTE,    /* writer */
    SEALER_RELEASE, /* writer: one slice */
    SEALER_RETIRE,  /* thread */
    SEALER_FORGET,  /* writer: what was retired */
};

#define RETIRE_AT_ONCE 256u

/* Blocks that are GONE. */
struct retired {
    struct store_block blocks[RETIRE_AT_ONCE];
    size_t count;
};

/* Rows of a batch. */
struct insert_batch {
    struct buffer sums, series;
    uint8_t latest[STORE_SERIES_KEY_SIZE]; /* series of the latest row */
};

struct sealer {
    struct steps steps;
    int64_t now; /* ns */
    struct store_block block;
    bool found, more;
    bool known;        /* the manifest has no block of this centre that the database does not have */
    struct lock *lock; /* while SEALER_SEND runs, of the reader and what follows */
    struct store_block_cursor cursor;
    bool failed;                    /* a lane has: the others end */
    uint64_t rows, bytes, checksum; /* of this attempt, as read */
    struct retired retired;
    uint64_t retire_after; /* ms of loop_now */
    char retire_failure[512];
    struct buffer marks;                    /* rows that were inserted last */
    uint64_t marks_after;                   /* ms of loop_now: the same are inserted again */
    double lag;                             /* as in struct sealer_counts */
    struct store_tier_totals totals, shown; /* the thread's, and the loop's */
};

static int64_t sealer_before(const struct sealer *s)
{
    return s->now - s->steps.config.seal_after;
}

/* What is being read into a batch. */
struct sending {
    struct sealer *s;
    struct insert_batch *batch;
};

static enum profd_status sealer_put_sum(void *context, const struct store_block_sum *sum, struct profd_error *e)
{
    struct sending *sending = context;
    struct sealer *s = sending->s;
    struct insert_batch *batch = sending->batch;
    struct buffer *b = &batch->series;

    if (b->size == 0 || memcmp(batch->latest, sum->stub.series, sizeof batch->latest)) {
        memcpy(batch->latest, sum->stub.series, sizeof batch->latest);
        rows_put_fixed(b, sum->stub.series, STORE_SERIES_KEY_SIZE);
        rows_put_text(b, sum->tenant);
        rows_put_text(b, sum->stub.program);
        rows_put_count(b, sum->build_count);
        for (size_t i = 0; i < sum->build_count; i++) {
            rows_put_text(b, sum->builds[i].id.text);
        }
        rows_put_count(b, sum->build_count);
        for (size_t i = 0; i < sum->build_count; i++) {
            rows_put_text(b, sum->builds[i].name);
        }
        rows_put_count(b, 2 * sum->label_count);
        for (size_t i = 0; i < sum->label_count; i++) {
            rows_put_text(b, sum->labels[i].name);
            rows_put_text(b, sum->labels[i].value);
        }
    }
    b = &batch->sums;
    rows_put_fixed(b, s->block.centre, STORE_CENTRE_SIZE);
    rows_put_u32(b, (uint32_t)s->block.day);
    rows_put_u32(b, (uint32_t)s->block.number);
    rows_put_u32(b, s->block.attempt);
    rows_put_text(b, sum->stub.program);
    rows_put_fixed(b, sum->stub.series, STORE_SERIES_KEY_SIZE);
    rows_put_u8(b, (uint8_t)sum->stub.level);
    rows_put_i64(b, sum->stub.at);
    rows_put_u64(b, sum->number);
    rows_put_u64(b, sum->uploads);
    rows_put_u64(b, sum->processes);
    rows_put_u64(b, sum->ticks);
    rows_put_u64(b, sum->calls);
    rows_put_i64(b, sum->first);
    rows_put_i64(b, sum->last);
    rows_put_u32(b, sum->inexact);
    rows_put_bytes(b, sum->groups, sum->groups_size);
    rows_put_bytes(b, sum->shares, sum->shares_size);
    rows_put_count(b, sum->bulk.host_count);
    for (size_t i = 0; i < sum->bulk.host_count; i++) {
        rows_put_text(b, sum->bulk.hosts[i]);
    }
    rows_put_bytes(b, sum->bulk.totals, sum->bulk.totals_size);
    rows_put_bytes(b, sum->bulk.counts, sum->bulk.counts_size);
    rows_put_bytes(b, sum->bulk.spread, sum->bulk.spread_size);
    s->rows++;
    s->bytes += sum->bulk.counts_size + sum->bulk.spread_size;
    s->checksum += statement_digest(sum);
    return b->failed || batch->series.failed ? profd_no_memory(e) : PROFD_OK;
}

/* Sends batches until the block has been read. The other lane reads its next batch while ClickHouse writes this one. */
static enum profd_status sealer_send(struct sealer *s, struct clickhouse *client, struct profd_error *e)
{
    struct insert_batch batch;
    enum profd_status status = PROFD_OK;
    bool more = true;

    buffer_init(&batch.sums, SIZE_MAX);
    buffer_init(&batch.series, SIZE_MAX);
    while (more && !status) {
        batch.sums.size = batch.series.size = 0;
        lock_take(s->lock);
        if (!s->failed && !s->cursor.done) {
            status = store_block_read(s->steps.store, &s->block, &s->cursor, BATCH_BYTES, sealer_put_sum,
                                      &(struct sending){s, &batch}, e);
        }
        lock_give(s->lock);
        more = !status && batch.sums.size > 0;
        if (more) {
            status = clickhouse_insert(client, STATEMENT_PUT_SERIES, batch.series.data, batch.series.size, e);
            status =
                status ? status : clickhouse_insert(client, STATEMENT_PUT_SUMS, batch.sums.data, batch.sums.size, e);
        }
    }
    if (status) {
        lock_take(s->lock);
        s->failed = true;
        lock_give(s->lock);
    }
    buffer_done(&batch.sums);
    buffer_done(&batch.series);
    return status;
}

static void sealer_put_mark(void *context, const struct store_tier_mark *m)
{
    struct buffer *b = context;

    rows_put_fixed(b, m->centre, sizeof m->centre);
    rows_put_i64(b, m->hour);
    rows_put_text(b, m->tenant);
    rows_put_text(b, m->host);
    rows_put_u32(b, m->reasons);
}

/* Inserts the marks that the tier lacks, of days old enough to be sealed. A moment later the mirror finds them there.
 * Until then, and for at most MARKS_AGAIN_MS, the same rows are not inserted again. */
static enum profd_status sealer_put_marks(struct sealer *s, struct profd_error *e)
{
    struct buffer rows;
    buffer_init(&rows, MANIFEST_BYTES);
    enum profd_status status =
        store_each_untold_mark(s->steps.store, sealer_before(s) / DAY_NS * 24, sealer_put_mark, &rows, e);
    const bool same = rows.size == s->marks.size && loop_now() < s->marks_after &&
                      (rows.size == 0 || memcmp(rows.data, s->marks.data, rows.size) == 0);

    status = status || !rows.failed ? status : profd_no_memory(e);
    if (!status && !same && rows.size > 0) {
        status = clickhouse_insert(s->steps.lanes[0].client, STATEMENT_PUT_MARKS, rows.data, rows.size, e);
    }
    if (!status && !same) {
        const struct buffer before = s->marks;
        s->marks = rows;
        s->marks_after = loop_now() + MARKS_AGAIN_MS;
        rows = before;
    }
    buffer_done(&rows);
    return status;
}

static enum profd_status sealer_publish(struct sealer *s, struct profd_error *e)
{
    struct buffer row, keys;

    TRY(steps_check_block(&s->steps, &s->block, s->rows, s->bytes, s->checksum, e));
    TRY(sealer_put_marks(s, e)); /* whoever sees the block sees these */
    buffer_init(&row, MANIFEST_BYTES);
    buffer_init(&keys, MANIFEST_BYTES);
    enum profd_status status = store_block_keys(s->steps.store, &s->block, &keys, e);
    const struct statement_manifest m = {.block = &s->block,
                                         .name = s->steps.config.name,
                                         .state = STATEMENT_VISIBLE,
                                         .rows = s->rows,
                                         .bytes = s->bytes,
                                         .checksum = s->checksum,
                                         .version = s->block.attempt,
                                         .now = s->now,
                                         .keys = keys.data,
                                         .keys_size = keys.size};
    statement_add_manifest(&row, &m);
    status = status ? status : clickhouse_write(s->steps.lanes[0].client, STATEMENT_PUT_MANIFEST, &row, e);
    buffer_done(&row);
    buffer_done(&keys);
    return status;
}

/* A database that was restored from a backup lacks the blocks that were sealed since. It must not give their numbers
 * to other days: a centre that reads the manifest would then lose the days that they have now. */
static enum profd_status sealer_look(struct sealer *s, struct profd_error *e)
{
    struct store_centre centre;
    struct row_reader r;
    uint64_t newest = 0;

    TRY(store_get_tier_totals(s->steps.store, sealer_before(s), &s->totals, e));
    TRY(s->totals.days_sealed > 0 ? sealer_put_marks(s, e) : PROFD_OK);
    if (s->known || s->totals.days_waiting == 0) {
        return PROFD_OK;
    }
    TRY(store_get_centre(s->steps.store, &centre, e));
    if (centre.restored) { /* its blocks are being adopted (tier/mirror.h) */
        s->totals.days_waiting = 0;
        return PROFD_OK;
    }
    TRY(clickhouse_take(s->steps.lanes[0].client, STATEMENT_LAST_BLOCKS, &r, e));
    while (rows_more(&r)) {
        uint8_t of[STORE_CENTRE_SIZE];
        rows_fixed(&r, of, sizeof of);
        const uint32_t last = rows_u32(&r);
        newest = memcmp(of, centre.name, sizeof of) ? newest : last;
    }
    const bool cut = r.cut;
    rows_close(&r);
    FAIL_IF(cut, e, PROFD_PROTOCOL, "a list of ClickHouse's blocks is cut off");
    FAIL_IF(newest > s->totals.newest, e, PROFD_REFUSED,
            "ClickHouse has block %" PRIu64 " of this centre, and this database has given numbers up to %" PRIu64
            ": it is an older copy, so no day is sealed; use profd --restore",
            newest, s->totals.newest);
    s->known = true;
    return PROFD_OK;
}

static bool collect_gone(void *context, const struct store_block *b)
{
    struct retired *r = context;

    if (b->state == STORE_BLOCK_GONE) {
        r->blocks[r->count++] = *b;
    }
    return r->count < RETIRE_AT_ONCE;
}

struct day_asked {
    int64_t day;
    bool used;
};

static bool find_user_of_day(void *context, const struct store_block *b)
{
    struct day_asked *d = context;

    d->used |= b->day == d->day && b->state != STORE_BLOCK_GONE;
    return !d->used;
}

/* Drops this centre's day on one server, or its part of it. */
static enum profd_status drop_day(const struct clickhouse_address *address, struct clickhouse *server, int64_t now,
                                  const struct store_block *b, struct profd_error *e)
{
    struct buffer statement, row;

    /* ClickHouse 18.16 refuses reads with select_sequential_consistency while the part that was inserted last with a
     * quorum is not there. So that it is never one of the day, a row that no manifest lists is inserted first. */
    if (address->replicated) {
        buffer_init(&row, REPLY_BYTES);
        rows_put_fixed(&row, b->centre, sizeof b->centre);
        rows_put_i64(&row, now);
        TRY(clickhouse_write(server, STATEMENT_PUT_NOTHING, &row, e));
    }
    buffer_init(&statement, REPLY_BYTES);
    statement_drop_day(&statement, b->centre, b->day, address->cluster[0]);
    return clickhouse_do(server, &statement, e);
}

/* Drops the days of the blocks on one server, and the marks of the days before `first`. */
static enum profd_status drop_days(struct steps *s, int64_t now, const struct retired *r, int64_t first,
                                   unsigned server, struct profd_error *e)
{
    struct clickhouse_address one = clickhouse_pick_server(s->config.address, server);
    struct clickhouse *client = NULL;
    struct buffer marks;
    enum profd_status status = clickhouse_open(&one, s->config.ca, &s->limits, &client, e);

    explicit_bzero(one.password, sizeof one.password);
    for (size_t i = 0; i < r->count && !status; i++) {
        struct day_asked day = {.day = r->blocks[i].day};

        status = store_each_block(s->store, find_user_of_day, &day, e);
        if (!status && !day.used) {
            status = drop_day(s->config.address, client, now, &r->blocks[i], e);
        }
        if (status) {
            status = profd_error_wrap(e, status, "the day %s cannot be dropped at %s",
                                      statement_format_day(day.day).text, clickhouse_place(client));
        }
    }
    if (!status) {
        buffer_init(&marks, REPLY_BYTES);
        statement_drop_marks(&marks, r->blocks[0].centre, first, s->config.address->cluster[0]);
        status = clickhouse_do(client, &marks, e);
    }
    clickhouse_close(client);
    return status;
}

/* Retires blocks whose sums have all left the database: they become invisible to other centres, and the partition
 * of a day goes when the database has no block of it. On OK, those of *out may be forgotten. It may be repeated after
 * it ended anywhere. */
static enum profd_status retire_blocks(struct steps *s, int64_t now, int64_t first, struct retired *out,
                                       struct profd_error *e)
{
    struct buffer rows;
    enum profd_status status = PROFD_OK;

    out->count = 0;
    TRY(store_each_block(s->store, collect_gone, out, e));
    if (out->count == 0) {
        return PROFD_OK;
    }
    buffer_init(&rows, REPLY_BYTES);
    for (size_t i = 0; i < out->count; i++) {
        const struct statement_manifest row = {.block = &out->blocks[i],
                                               .name = s->config.name,
                                               .state = STATEMENT_DROPPED,
                                               .now = now,
                                               .version = STATEMENT_DROPPED_VERSION};
        statement_add_manifest(&rows, &row);
    }
    TRY(clickhouse_write(s->lanes[0].client, STATEMENT_PUT_MANIFEST, &rows, e));
    /* After a failure of one server, the others are asked, too. */
    for (unsigned i = 0; i < s->config.address->server_count; i++) {
        struct profd_error why;
        const enum profd_status one = drop_days(s, now, out, first, i, &why);

        if (one && !status) {
            status = one;
            *e = why;
        }
    }
    return status;
}

static enum profd_status sealer_read(struct steps *steps, unsigned lane, struct profd_error *e)
{
    struct sealer *s = container_of(steps, struct sealer, steps);
    struct clickhouse *client = steps->lanes[lane].client;

    return steps->step == SEALER_SEND      ? sealer_send(s, client, e)
           : steps->step == SEALER_PUBLISH ? sealer_publish(s, e)
           : steps->step == SEALER_RETIRE  ? retire_blocks(steps, s->now, s->totals.first, &s->retired, e)
                                           : sealer_look(s, e);
}

static enum profd_status sealer_write(struct steps *steps, struct store *store, struct profd_error *e)
{
    struct sealer *s = container_of(steps, struct sealer, steps);
    struct store_progress progress = {.more = false};
    enum profd_status status = PROFD_OK;

    switch (steps->step) {
    case SEALER_NOTE:
        return store_block_written(store, &s->block, s->now, e);
    case SEALER_RELEASE:
        status = store_block_release(store, &progress, e);
        s->more = progress.more;
        return status;
    case SEALER_FORGET:
        for (size_t i = 0; i < s->retired.count && !status; i++) {
            status = store_block_forget(store, s->retired.blocks[i].number, e);
        }
        return status;
    default:
        return store_block_begin(store, sealer_before(s), &s->block, &s->found, e);
    }
}

static unsigned sealer_choose(struct steps *steps)
{
    struct sealer *s = container_of(steps, struct sealer, steps);

    switch (steps->step) {
    case SEALER_LOOK:
        s->shown = s->totals;
        if (s->totals.days_waiting == 0) {
            steps_work(steps);
        }
        if (s->totals.gone > 0 && loop_now() >= s->retire_after) {
            steps->step = SEALER_RETIRE;
            return 0;
        }
        if (s->totals.days_waiting > 0) {
            steps->step = SEALER_BEGIN;
            return 0;
        }
        s->lag = 0;
        return LOOK_MS;
    case SEALER_BEGIN:
        if (!s->found) {
            steps_work(steps);
            steps->step = SEALER_LOOK;
            s->lag = 0;
            return LOOK_MS;
        }
        s->lag = (double)(sealer_before(s) - (s->block.day + 1) * DAY_NS) / 1e9;
        s->cursor = (struct store_block_cursor){.done = false};
        s->failed = false;
        s->rows = s->bytes = s->checksum = 0;
        steps->step = s->block.state == STORE_BLOCK_OPEN ? SEALER_SEND : SEALER_RELEASE;
        return 0;
    case SEALER_PUBLISH:
        steps_work(steps);
        steps->step = SEALER_NOTE;
        return 0;
    case SEALER_RETIRE:
        if (s->retire_failure[0]) {
            log_write(LOG_LEVEL_NOTICE, NULL, "removed days are dropped from ClickHouse again");
            s->retire_failure[0] = '\0';
        }
        steps->step = SEALER_FORGET;
        return 0;
    case SEALER_RELEASE:
        steps->step = s->more ? SEALER_RELEASE : SEALER_LOOK;
        return s->more ? steps_pause(steps) : 0;
    default:
        steps->step = steps->step == SEALER_FORGET ? SEALER_LOOK : steps->step + 1;
        return 0;
    }
}

/* While the clock is in doubt, nothing is sealed. */
static bool sealer_is_ready(struct steps *steps)
{
    struct sealer *s = container_of(steps, struct sealer, steps);

    s->now = steps->config.get_clock(steps->config.context);
    return s->now != 0;
}

/* Days that cannot be dropped hold up nothing else: no reader sees them. */
static bool sealer_excuse(struct steps *steps, enum profd_status status, const struct profd_error *e)
{
    struct sealer *s = container_of(steps, struct sealer, steps);

    (void)status;
    if (steps->step != SEALER_RETIRE) {
        return false;
    }
    steps->failures++;
    if (!s->retire_failure[0]) {
        log_write(LOG_LEVEL_WARNING, NULL, "removed days cannot be dropped from ClickHouse, and take space there: %s",
                  e->sentence);
    }
    (void)snprintf(s->retire_failure, sizeof s->retire_failure, "%s", e->sentence);
    s->retire_after = loop_now() + RETIRE_AGAIN_MS;
    return true;
}

#define IN(step) (1u << (step))
/* What is released makes space, so that these jobs run when the disk is full, too. */
#define WRITING (IN(SEALER_BEGIN) | IN(SEALER_NOTE) | IN(SEALER_RELEASE) | IN(SEALER_FORGET))

static const struct steps_type sealer_type = {
    .thread = "profd-tier",
    .writing = WRITING,
    .writing_when_full = WRITING,
    .parallel = IN(SEALER_SEND),
    .reply_bytes = REPLY_BYTES,
    .look_ms = LOOK_MS,
    .back_off_ms_most = 300000,
    .failing = "past days cannot be moved to ClickHouse, and stay in the database until they can",
    .working = "past days are moved to ClickHouse again",
    .is_ready = sealer_is_ready,
    .read = sealer_read,
    .write = sealer_write,
    .choose = sealer_choose,
    .excuse = sealer_excuse};

enum profd_status sealer_start(const struct sealer_config *config, struct sealer **out, struct profd_error *e)
{
    struct sealer *s = calloc(1, sizeof *s);

    TRY(s ? PROFD_OK : profd_no_memory(e));
    s->lock = lock_new();
    buffer_init(&s->marks, MANIFEST_BYTES);
    const enum profd_status status = s->lock ? steps_start(&s->steps, &sealer_type, config, e) : profd_no_memory(e);
    if (status) {
        sealer_free(s);
        return status;
    }
    *out = s;
    return PROFD_OK;
}

bool sealer_is_idle(const struct sealer *s)
{
    return !s->steps.running;
}

void sealer_stop(struct sealer *s)
{
    steps_stop(&s->steps);
}

void sealer_free(struct sealer *s)
{
    if (s) {
        steps_done(&s->steps);
        lock_free(s->lock);
        buffer_done(&s->marks);
        free(s);
    }
}

void sealer_get_counts(const struct sealer *s, struct sealer_counts *out)
{
    *out = (struct sealer_counts){.totals = s->shown, .lag = s->lag, .failures = s->steps.failures};
    (void)snprintf(out->failure, sizeof out->failure, "%s", s->steps.failure[0] ? s->steps.failure : s->retire_failure);
}
