#include "tier/steps.h"

#include <inttypes.h>
#include <stdio.h>

#include "core/container.h"
#include "base/log.h"
#include "net/loop.h"
#include "tier/statement.h"

#define STATEMENT_BYTES 4096u
#define FIRST_MS 100u
#define CONNECT_MS 5000u
#define ANSWER_MS 300000u /* reading a block back */

static bool is_in(uint32_t set, int step)
{
    return set >> step & 1;
}

static void steps_fail(struct steps *s, const struct steps_lane *l)
{
    unsigned pause = STEPS_BACK_OFF_MS;

    /* CONFLICT: data of the day was deleted, or the block has left: it begins again. */
    if (l->status != PROFD_CONFLICT && !s->type->excuse(s, l->status, &l->error)) {
        s->failures++;
        (void)snprintf(s->failure, sizeof s->failure, "%s", l->error.sentence);
        if (!s->back_off_ms) {
            log_write(LOG_LEVEL_WARNING, NULL, "%s: %s", s->type->failing, l->error.sentence);
        }
        pause = s->back_off_ms ? 2 * s->back_off_ms : STEPS_BACK_OFF_MS;
        s->back_off_ms = pause = pause < s->type->back_off_ms_most ? pause : s->type->back_off_ms_most;
    }
    s->step = 0;
    loop_timer_set(s->timer, pause);
}

static void steps_begin(void *context);

/* On the loop, after a lane or the job. */
static void steps_advance(struct steps *s)
{
    if (--s->running || s->stopped) {
        return;
    }
    for (unsigned i = 0; i < STEPS_LANES; i++) {
        if (s->lanes[i].status) {
            steps_fail(s, &s->lanes[i]);
            return;
        }
    }
    unsigned pause = s->type->choose(s);
    if (pause) {
        loop_timer_set(s->timer, pause);
    } else {
        steps_begin(s);
    }
}

static void steps_read(void *context, struct work_item *const *items, size_t n)
{
    struct steps *s = context;
    struct steps_lane *l = container_of(items[0], struct steps_lane, item);

    (void)n; /* there is one */
    l->status = s->type->read(s, (unsigned)(l - s->lanes), &l->error);
}

static void steps_read_done(void *context, struct work_item *item)
{
    (void)item;
    steps_advance(context);
}

static enum profd_status steps_write(struct writer_job *job, struct store *store, struct profd_error *e)
{
    struct steps *s = container_of(job, struct steps, job);
    const uint64_t began = loop_now();
    enum profd_status status = is_in(s->type->writing_when_full, s->step) ? PROFD_OK : writer_job_check_space(job, e);

    status = status ? status : s->type->write(s, store, e);
    s->took = loop_now() - began;
    return status;
}

static void steps_write_done(struct writer_job *job)
{
    struct steps *s = container_of(job, struct steps, job);

    s->lanes[0].status = job->status;
    s->lanes[0].error = job->error;
    steps_advance(s);
}

static void steps_begin(void *context)
{
    static const struct writer_job_type job = {.run = steps_write, .done = steps_write_done};
    struct steps *s = context;

    if (s->running || s->stopped) {
        return;
    }
    if (writer_check(s->config.writer, NULL) || (s->type->is_ready && !s->type->is_ready(s))) {
        loop_timer_set(s->timer, s->type->look_ms);
        return;
    }
    for (unsigned i = 0; i < STEPS_LANES; i++) {
        s->lanes[i].status = PROFD_OK;
    }
    if (is_in(s->type->writing, s->step)) {
        s->running = !writer_submit(s->config.writer, &s->job, &job, &s->lanes[0].error);
    } else {
        const unsigned lanes = is_in(s->type->parallel, s->step) ? s->lane_count : 1;

        while (s->running < lanes && work_put(s->work, &s->lanes[s->running].item)) {
            s->running++;
        }
    }
    if (!s->running) {
        loop_timer_set(s->timer, STEPS_BACK_OFF_MS);
    }
}

static bool steps_is_ended(void *context)
{
    const struct steps *s = context;

    return atomic_load(&s->ended);
}

enum profd_status steps_start(struct steps *s, const struct steps_type *type, const struct sealer_config *config,
                              struct profd_error *e)
{
    void *contexts[STEPS_LANES] = {s, s};

    s->type = type;
    s->config = *config;
    s->limits = (struct clickhouse_limits){.connect_ms = CONNECT_MS,
                                           .answer_ms = ANSWER_MS,
                                           .reply_bytes = type->reply_bytes,
                                           .stopped = steps_is_ended,
                                           .context = s};
    s->lane_count = type->parallel && !config->address->replicated ? STEPS_LANES : 1;
    s->timer = loop_timer_new(config->loop, steps_begin, s);
    TRY(s->timer ? PROFD_OK : profd_no_memory(e));
    TRY(store_sqlite_open_reader(config->database, &s->store, e));
    for (unsigned i = 0; i < s->lane_count; i++) {
        TRY(clickhouse_open(config->address, config->ca, &s->limits, &s->lanes[i].client, e));
    }
    const struct work_config work = {.name = type->thread,
                                     .threads = s->lane_count,
                                     .contexts = contexts,
                                     .queue_max = STEPS_LANES,
                                     .queue_max_uid = STEPS_LANES,
                                     .batch_max = 1,
                                     .nice = 10,
                                     .run = steps_read,
                                     .done = steps_read_done,
                                     .done_context = s};
    TRY(work_new(config->loop, &work, &s->work, e));
    loop_timer_set(s->timer, FIRST_MS);
    return PROFD_OK;
}

void steps_stop(struct steps *s)
{
    s->stopped = true;
    atomic_store(&s->ended, true);
    if (s->timer) {
        loop_timer_clear(s->timer);
    }
}

void steps_done(struct steps *s)
{
    steps_stop(s);
    work_free(s->work);
    for (unsigned i = 0; i < STEPS_LANES; i++) {
        clickhouse_close(s->lanes[i].client);
    }
    store_close(s->store);
    if (s->timer) {
        loop_timer_free(s->timer);
    }
}

enum profd_status steps_check_block(struct steps *s, const struct store_block *block, uint64_t sums, uint64_t bytes,
                                    uint64_t checksum, struct profd_error *e)
{
    struct buffer statement;
    struct row_reader r;

    buffer_init(&statement, STATEMENT_BYTES);
    statement_check_block(&statement, block);
    TRY(clickhouse_read(s->lanes[0].client, &statement, &r, e));
    const uint64_t got = rows_u64(&r), got_bytes = rows_u64(&r), got_checksum = rows_u64(&r);
    const bool cut = r.cut || rows_more(&r);
    rows_close(&r);
    return !cut && got == sums && got_bytes == bytes && got_checksum == checksum
               ? PROFD_OK
               : profd_error_set(e, PROFD_PROTOCOL,
                                 "ClickHouse has %" PRIu64 " sums of %" PRIu64 " bytes with checksum %016" PRIx64
                                 " of block %" PRIu64 ", which has %" PRIu64 " sums of %" PRIu64
                                 " bytes with checksum %016" PRIx64 "%s",
                                 got, got_bytes, got_checksum, block->number, sums, bytes, checksum,
                                 sums && got > sums && !(got % sums)
                                     ? "; a cluster with replicas needs internal_replication "
                                       "in remote_servers of each server"
                                     : "");
}

void steps_work(struct steps *s)
{
    if (s->back_off_ms) {
        log_write(LOG_LEVEL_NOTICE, NULL, "%s", s->type->working);
        s->back_off_ms = 0;
        s->failure[0] = '\0';
    }
}

unsigned steps_pause(const struct steps *s)
{
    return writer_pending(s->config.writer) > 0 ? 3 * (unsigned)s->took : 0;
}
