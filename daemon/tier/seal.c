#include "tier/seal.h"

#include <inttypes.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/buffer.h"
#include "core/container.h"
#include "base/log.h"
#include "net/loop.h"
#include "net/work.h"
#include "tier/clickhouse.h"
#include "tier/retire.h"
#include "tier/row_binary.h"
#include "tier/statement.h"
#include "writer/writer.h"

#define DAY_NS INT64_C(86400000000000)
#define FIRST_MS 200u
#define LOOK_MS 5000u
#define BACK_OFF_MS 1000u
#define BACK_OFF_MS_MAX 300000u
#define BATCH_BYTES (16u << 20)
#define REPLY_BYTES (1u << 20)
#define MANIFEST_BYTES (1u << 30) /* a row with the keys of a block */
#define RETIRE_AGAIN_MS 300000u   /* after a failure */
#define CONNECT_MS 5000u
#define ANSWER_MS 300000u /* reading a block back */

/* The steps of sealing a block, and of retiring blocks. Each is run by the sealer's thread, or as a job of the writer.
 */
enum sealer_step {
    SEALER_LOOK,    /* thread: is there anything? */
    SEALER_BEGIN,   /* writer */
    SEALER_SEND,    /* thread: one batch */
    SEALER_PUBLISH, /* thread: reads the block back, then makes it visible */
    SEALER_NOTE,    /* writer */
    SEALER_RELEASE, /* writer: one slice */
    SEALER_RETIRE,  /* thread */
    SEALER_FORGET,  /* writer: what was retired */
};

/* The loop, the thread or the writer has the sealer, one at a time. */
struct sealer {
    struct sealer_config config;
    struct loop_timer *timer;
    struct work *work;
    struct work_item item; /* of the thread's steps */
    struct writer_job job; /* of the writer's */
    struct store *store;
    struct clickhouse *client;
    atomic_bool ended; /* stops the statement that runs */
    bool stopped, running;

    enum sealer_step step;
    enum profd_status status; /* of the latest step */
    struct profd_error error;
    unsigned back_off_ms; /* 0: the latest step worked */
    uint64_t began, took; /* ms of loop_now; the latest slice */
    int64_t now;          /* ns */
    struct store_block block;
    struct store_block_cursor cursor;
    bool found, more;
    bool known;                 /* the manifest has no block of this centre that the database does not have */
    struct buffer sums, series; /* rows of a batch */
    uint8_t latest[STORE_SERIES_KEY_SIZE]; /* series of which the latest row is */
    bool has_latest;
    uint64_t rows, bytes, checksum; /* of this attempt, as sent */
    struct retired retired;
    uint64_t retire_after; /* ms of loop_now */
    char retire_failure[512];

    struct store_tier_totals totals;
    struct sealer_counts counts; /* the loop's */
};

static int64_t sealer_before(const struct sealer *s)
{
    return s->now - s->config.seal_after;
}

static void sealer_put_series(struct sealer *s, const struct store_block_sum *sum)
{
    struct buffer *b = &s->series;

    if (s->has_latest && !memcmp(s->latest, sum->stub.series, sizeof s->latest)) {
        return;
    }
    memcpy(s->latest, sum->stub.series, sizeof s->latest);
    s->has_latest = true;
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

static enum profd_status sealer_put_sum(void *context, const struct store_block_sum *sum, struct profd_error *e)
{
    struct sealer *s = context;
    struct buffer *b = &s->sums;

    sealer_put_series(s, sum);
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
    return b->failed || s->series.failed ? profd_no_memory(e) : PROFD_OK;
}

static enum profd_status sealer_send(struct sealer *s, struct profd_error *e)
{
    s->sums.size = s->series.size = 0;
    s->has_latest = false;
    TRY(store_block_read(s->store, &s->block, &s->cursor, BATCH_BYTES, sealer_put_sum, s, e));
    if (s->series.size > 0) { /* before the sums, which are not found without it */
        TRY(clickhouse_insert(s->client, STATEMENT_PUT_SERIES, s->series.data, s->series.size, e));
    }
    return s->sums.size > 0 ? clickhouse_insert(s->client, STATEMENT_PUT_SUMS, s->sums.data, s->sums.size, e)
                            : PROFD_OK;
}

/* What ClickHouse has of this attempt must be what was sent. */
static enum profd_status sealer_check(struct sealer *s, struct profd_error *e)
{
    struct buffer statement;
    struct row_reader r;

    buffer_init(&statement, REPLY_BYTES);
    statement_check_block(&statement, &s->block);
    TRY(clickhouse_read(s->client, &statement, &r, e));
    const uint64_t rows = rows_u64(&r), bytes = rows_u64(&r), checksum = rows_u64(&r);
    const bool cut = r.cut || rows_more(&r);
    rows_close(&r);
    if (cut || rows != s->rows || bytes != s->bytes || checksum != s->checksum) {
        return profd_error_set(e, PROFD_PROTOCOL,
                               "block %" PRIu64 " read back from ClickHouse has %" PRIu64 " sums of %" PRIu64
                               " bytes with checksum %016" PRIx64 ", but %" PRIu64 " sums of %" PRIu64
                               " bytes with checksum %016" PRIx64 " were sent",
                               s->block.number, rows, bytes, checksum, s->rows, s->bytes, s->checksum);
    }
    return PROFD_OK;
}

static enum profd_status sealer_publish(struct sealer *s, struct profd_error *e)
{
    struct buffer row, keys;

    TRY(sealer_check(s, e));
    buffer_init(&row, MANIFEST_BYTES);
    buffer_init(&keys, MANIFEST_BYTES);
    enum profd_status status = store_block_keys(s->store, &s->block, &keys, e);
    const struct statement_manifest m = {.block = &s->block,
                                         .name = s->config.name,
                                         .state = STATEMENT_VISIBLE,
                                         .rows = s->rows,
                                         .bytes = s->bytes,
                                         .checksum = s->checksum,
                                         .version = s->block.attempt,
                                         .now = s->now,
                                         .keys = keys.data,
                                         .keys_size = keys.size};
    statement_add_manifest(&row, &m);
    status = status ? status : clickhouse_write(s->client, STATEMENT_PUT_MANIFEST, &row, e);
    buffer_done(&row);
    buffer_done(&keys);
    return status;
}

/* A database that was restored from a backup lacks the blocks that were sealed since. It must not give their numbers
 * to other days: a centre that reads the manifest would then lose the days that they have now. */
static enum profd_status sealer_look(struct sealer *s, struct profd_error *e)
{
    struct store_centre centre;
    struct buffer statement;
    struct row_reader r;

    TRY(store_get_tier_totals(s->store, sealer_before(s), &s->totals, e));
    if (s->known || s->totals.days_waiting == 0) {
        return PROFD_OK;
    }
    TRY(store_get_centre(s->store, &centre, e));
    if (centre.restored) { /* its blocks are being adopted (tier/mirror.h) */
        s->totals.days_waiting = 0;
        return PROFD_OK;
    }
    buffer_init(&statement, REPLY_BYTES);
    statement_find_newest(&statement, centre.name);
    TRY(clickhouse_read(s->client, &statement, &r, e));
    const uint32_t newest = rows_u32(&r);
    const bool cut = r.cut;
    rows_close(&r);
    if (cut) {
        return profd_error_set(e, PROFD_PROTOCOL, "ClickHouse does not say which blocks it has");
    }
    if (newest > s->totals.newest) {
        return profd_error_set(e, PROFD_REFUSED,
                               "ClickHouse has block %" PRIu32
                               " of this centre, and this database has given numbers up "
                               "to %" PRIu64 ": it is an older copy, so no day is sealed; use profd --restore",
                               newest, s->totals.newest);
    }
    s->known = true;
    return PROFD_OK;
}

static bool sealer_is_ended(void *context)
{
    const struct sealer *s = context;

    return atomic_load(&s->ended);
}

static struct clickhouse_limits sealer_limits(struct sealer *s)
{
    return (struct clickhouse_limits){.connect_ms = CONNECT_MS,
                                      .answer_ms = ANSWER_MS,
                                      .reply_bytes = REPLY_BYTES,
                                      .stopped = sealer_is_ended,
                                      .context = s};
}

static enum profd_status sealer_retire(struct sealer *s, struct profd_error *e)
{
    const struct clickhouse_limits limits = sealer_limits(s);
    const struct retire_setup setup = {
        .address = s->config.address, .ca = s->config.ca, .limits = &limits, .name = s->config.name, .now = s->now};

    return retire_blocks(&setup, s->client, s->store, &s->retired, e);
}

/* The thread's. */
static void sealer_run(void *context, struct work_item *const *items, size_t n)
{
    struct sealer *s = context;

    (void)items;
    (void)n; /* there is one */
    switch (s->step) {
    case SEALER_SEND:
        s->status = sealer_send(s, &s->error);
        break;
    case SEALER_PUBLISH:
        s->status = sealer_publish(s, &s->error);
        break;
    case SEALER_RETIRE:
        s->status = sealer_retire(s, &s->error);
        break;
    default:
        s->status = sealer_look(s, &s->error);
        break;
    }
}

static void sealer_write_one(struct sealer *s, struct store *store)
{
    struct store_progress progress = {.more = false};
    const uint64_t began = loop_now();

    switch (s->step) {
    case SEALER_NOTE:
        s->status = store_block_written(store, &s->block, s->now, &s->error);
        break;
    case SEALER_RELEASE:
        s->status = store_block_release(store, &progress, &s->error);
        s->more = progress.more;
        break;
    case SEALER_FORGET:
        s->status = PROFD_OK;
        for (size_t i = 0; i < s->retired.count && !s->status; i++) {
            s->status = store_block_forget(store, s->retired.numbers[i], &s->error);
        }
        break;
    default:
        s->status = store_block_begin(store, sealer_before(s), &s->block, &s->found, &s->error);
        break;
    }
    s->took = loop_now() - began;
}

/* Also when the disk is full: what is released makes space. */
static void sealer_write(struct store *store, const struct profd_error *full, struct writer_job *const *jobs, size_t n)
{
    (void)full;
    for (size_t i = 0; i < n; i++) {
        sealer_write_one(container_of(jobs[i], struct sealer, job), store);
    }
}

/* Returns the pause before the next step in ms. */
static unsigned sealer_choose(struct sealer *s)
{
    switch (s->step) {
    case SEALER_LOOK:
        s->counts.totals = s->totals;
        if (s->totals.gone > 0 && loop_now() >= s->retire_after) {
            s->step = SEALER_RETIRE;
            return 0;
        }
        if (s->totals.days_waiting > 0) {
            s->step = SEALER_BEGIN;
            return 0;
        }
        s->counts.lag = 0;
        return LOOK_MS;
    case SEALER_BEGIN:
        if (!s->found) {
            s->step = SEALER_LOOK;
            s->counts.lag = 0;
            return LOOK_MS;
        }
        s->counts.lag = (double)(s->now - s->config.seal_after - (s->block.day + 1) * DAY_NS) / 1e9;
        s->cursor = (struct store_block_cursor){.done = false};
        s->rows = s->bytes = s->checksum = 0;
        s->step = s->block.state == STORE_BLOCK_OPEN ? SEALER_SEND : SEALER_RELEASE;
        return 0;
    case SEALER_SEND:
        s->step = s->cursor.done ? SEALER_PUBLISH : SEALER_SEND;
        return 0;
    case SEALER_PUBLISH:
        s->step = SEALER_NOTE;
        return 0;
    case SEALER_NOTE:
        s->step = SEALER_RELEASE;
        return 0;
    case SEALER_RETIRE:
        if (s->retire_failure[0]) {
            log_write(LOG_LEVEL_NOTICE, NULL, "removed days are dropped from ClickHouse again");
            s->retire_failure[0] = '\0';
        }
        s->step = SEALER_FORGET;
        return 0;
    case SEALER_FORGET:
        s->step = SEALER_LOOK;
        return 0;
    default:
        if (s->more) { /* a quarter of the writer's time while uploads wait */
            return writer_pending(s->config.writer) > 0 ? 3 * (unsigned)s->took : 0;
        }
        s->step = SEALER_LOOK;
        return 0;
    }
}

static const struct writer_job_type sealer_job_type;

/* Begins the next step. */
static void sealer_on_timer(void *context)
{
    struct sealer *s = context;
    const int64_t now = s->config.get_clock(s->config.context);
    const bool writes =
        s->step == SEALER_BEGIN || s->step == SEALER_NOTE || s->step == SEALER_RELEASE || s->step == SEALER_FORGET;

    if (s->running || s->stopped) {
        return;
    }
    if (!now || writer_check(s->config.writer, NULL)) {
        loop_timer_set(s->timer, LOOK_MS);
        return;
    }
    s->now = now;
    s->running =
        writes ? !writer_submit(s->config.writer, &s->job, &sealer_job_type, &s->error) : work_put(s->work, &s->item);
    if (!s->running) {
        loop_timer_set(s->timer, BACK_OFF_MS);
    }
}

static void sealer_fail(struct sealer *s)
{
    s->counts.failures++;
    (void)snprintf(s->counts.failure, sizeof s->counts.failure, "%s", s->error.sentence);
    if (!s->back_off_ms) {
        log_write(LOG_LEVEL_WARNING, NULL,
                  "past days cannot be moved to ClickHouse, and stay in the database until they can: %s",
                  s->error.sentence);
    }
    s->back_off_ms = !s->back_off_ms ? BACK_OFF_MS : 2 * s->back_off_ms;
    s->back_off_ms = s->back_off_ms < BACK_OFF_MS_MAX ? s->back_off_ms : BACK_OFF_MS_MAX;
    s->step = SEALER_LOOK;
    loop_timer_set(s->timer, s->back_off_ms);
}

/* Days that cannot be dropped hold up nothing else: no reader sees them. */
static void sealer_fail_retiring(struct sealer *s)
{
    s->counts.failures++;
    if (!s->retire_failure[0]) {
        log_write(LOG_LEVEL_WARNING, NULL, "removed days cannot be dropped from ClickHouse, and take space there: %s",
                  s->error.sentence);
    }
    (void)snprintf(s->retire_failure, sizeof s->retire_failure, "%s", s->error.sentence);
    s->retire_after = loop_now() + RETIRE_AGAIN_MS;
    s->step = SEALER_LOOK;
    loop_timer_set(s->timer, BACK_OFF_MS);
}

/* On the loop, after each step. */
static void sealer_advance(struct sealer *s)
{
    s->running = false;
    if (s->stopped) {
        return;
    }
    if (s->status == PROFD_CONFLICT) { /* data of the day was deleted: the next attempt begins */
        s->step = SEALER_LOOK;
        loop_timer_set(s->timer, BACK_OFF_MS);
        return;
    }
    if (s->status && s->step == SEALER_RETIRE) {
        sealer_fail_retiring(s);
        return;
    }
    if (s->status) {
        sealer_fail(s);
        return;
    }
    /* It works again when a block is visible, or when there is nothing to do. */
    if (s->back_off_ms && (s->step == SEALER_PUBLISH || (s->step == SEALER_BEGIN && !s->found) ||
                           (s->step == SEALER_LOOK && !s->totals.days_waiting))) {
        log_write(LOG_LEVEL_NOTICE, NULL, "past days are moved to ClickHouse again");
        s->back_off_ms = 0;
        s->counts.failure[0] = '\0';
    }
    const unsigned pause = sealer_choose(s);
    if (pause) {
        loop_timer_set(s->timer, pause);
    } else {
        sealer_on_timer(s);
    }
}

static void sealer_done(void *context, struct work_item *item)
{
    (void)item;
    sealer_advance(context);
}

static void sealer_job_done(struct writer_job *job)
{
    sealer_advance(container_of(job, struct sealer, job));
}

static void sealer_job_drop(struct writer_job *job)
{
    container_of(job, struct sealer, job)->running = false;
}

static const struct writer_job_type sealer_job_type = {
    .run = sealer_write, .done = sealer_job_done, .drop = sealer_job_drop};

static enum profd_status sealer_open(struct sealer *s, struct profd_error *e)
{
    void *contexts[1] = {s};
    const struct clickhouse_limits limits = sealer_limits(s);
    const struct work_config config = {.name = "profd-tier",
                                       .threads = 1,
                                       .contexts = contexts,
                                       .queue_max = 1,
                                       .queue_max_uid = 1,
                                       .batch_max = 1,
                                       .nice = 10,
                                       .run = sealer_run,
                                       .done = sealer_done,
                                       .done_context = s};

    TRY(store_sqlite_open_reader(s->config.database, &s->store, e));
    TRY(clickhouse_open(s->config.address, s->config.ca, &limits, &s->client, e));
    return work_new(s->config.loop, &config, &s->work, e);
}

enum profd_status sealer_start(const struct sealer_config *config, struct sealer **out, struct profd_error *e)
{
    struct sealer *s = calloc(1, sizeof *s);

    if (s) {
        s->config = *config;
        s->timer = loop_timer_new(config->loop, sealer_on_timer, s);
    }
    if (!s || !s->timer) {
        free(s);
        return profd_error_set(e, PROFD_NO_MEMORY, "no memory for the tier");
    }
    buffer_init(&s->sums, SIZE_MAX);
    buffer_init(&s->series, SIZE_MAX);
    const enum profd_status status = sealer_open(s, e);
    if (status) {
        sealer_free(s);
        return status;
    }
    loop_timer_set(s->timer, FIRST_MS);
    *out = s;
    return PROFD_OK;
}

bool sealer_is_idle(const struct sealer *s)
{
    return !s->running;
}

void sealer_stop(struct sealer *s)
{
    s->stopped = true;
    atomic_store(&s->ended, true);
    loop_timer_clear(s->timer);
}

void sealer_free(struct sealer *s)
{
    if (!s) {
        return;
    }
    sealer_stop(s);
    work_free(s->work);
    clickhouse_close(s->client);
    store_close(s->store);
    buffer_done(&s->sums);
    buffer_done(&s->series);
    loop_timer_free(s->timer);
    free(s);
}

void sealer_get_counts(const struct sealer *s, struct sealer_counts *out)
{
    *out = s->counts;
    if (!out->failure[0]) {
        (void)snprintf(out->failure, sizeof out->failure, "%s", s->retire_failure);
    }
}
