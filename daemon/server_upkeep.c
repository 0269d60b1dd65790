/* Upkeep goes on between batches of uploads. There is one job; it comes back to the loop after each slice, which
 * decides when the next one is put. */
#include "server_upkeep.h"

#include <stdlib.h>
#include <sys/statvfs.h>
#include <time.h>

#include "log.h"
#include "server_parts.h"

#define FIRST_MS 200
#define LOOK_MS 1000
#define FAILED_MS 1000 /* no space, no memory: a second later it may be otherwise */
#define QUEUE_FULL_MS 50
#define SPACE_ENOUGH (8ull << 20) /* bytes free on the disk: worth another try */

struct server_upkeep {
    struct server_job job; /* first */
    struct loop_timer *timer;
    bool running; /* the writer has the job, and upkeep with it */
    struct upkeep upkeep;
    double seconds[UPKEEP_TASKS];
    enum profd_status status, failed; /* failed: of the latest slice, so that the log is told once */
    struct profd_error error;
    uint64_t took_us;
    uint64_t uploads;               /* stored when the latest slice was done */
    uint64_t due;                   /* ms of loop_now: the next slice, if no upload comes before */
    struct server_upkeep_view view; /* the loop's copy */
};

static struct upkeep_time server_upkeep_time(void)
{
    struct timespec t;

    clock_gettime(CLOCK_BOOTTIME, &t);
    return (struct upkeep_time){.wall = server_clock(), .steady = t.tv_sec * INT64_C(1000000000) + t.tv_nsec};
}

static void server_upkeep_run(struct server *s, struct server_job *job)
{
    struct server_upkeep *u = (struct server_upkeep *)(void *)job;
    const int64_t began = server_upkeep_time().steady;
    struct upkeep_time now;

    do {
        const enum upkeep_task task = u->upkeep.task;
        const int64_t before = server_upkeep_time().steady;

        u->status = upkeep_run(&u->upkeep, s->write_store, server_upkeep_time(), &u->error);
        now = server_upkeep_time();
        u->seconds[task] += (double)(now.steady - before) / 1e9;
    } while (!u->status && now.steady - began < (int64_t)upkeep_budget(&u->upkeep) * 1000000);
    u->took_us = (uint64_t)(now.steady - began) / 1000;
}

static void server_upkeep_put(struct server *s)
{
    struct server_upkeep *u = s->upkeep;

    if (u->running || s->stopping || s->write_failed)
        return;
    u->running = work_put(s->writer, &u->job.write.item);
    if (!u->running)
        loop_timer_set(u->timer, QUEUE_FULL_MS);
}

/* A write found no space, perhaps a while ago: has somebody made some? The next upload is the real test. */
static void server_space_look(struct server *s)
{
    struct statvfs fs;

    if (s->full && !statvfs(s->config->state_dir, &fs) && (uint64_t)fs.f_bavail * fs.f_frsize >= SPACE_ENOUGH) {
        s->full = false;
        log_write(LOG_LEVEL_NOTICE, "space", "there is space again in %s", s->config->state_dir);
    }
}

void server_space_note(struct server *s, enum profd_status status, const struct profd_error *e)
{
    if (status == PROFD_FULL && !s->full) {
        s->full = true;
        s->full_error = *e;
        log_write(LOG_LEVEL_ERROR, "space", "uploads are refused until there is space: %s", e->sentence);
    } else if (!status && s->full) {
        s->full = false;
        log_write(LOG_LEVEL_NOTICE, "space", "there is space again in %s", s->config->state_dir);
    }
}

/* Looks once a second whether there may be something to do. */
static void server_upkeep_on_timer(void *context)
{
    struct server *s = context;
    struct server_upkeep *u = s->upkeep;
    const uint64_t now = loop_now();

    server_space_look(s);
    if (now < u->due && u->due - now > LOOK_MS && s->metrics.uploads_ok == u->uploads)
        loop_timer_set(u->timer, LOOK_MS);
    else if (now < u->due && s->metrics.uploads_ok == u->uploads)
        loop_timer_set(u->timer, u->due - now);
    else
        server_upkeep_put(s);
}

static void server_upkeep_done(struct server *s, struct server_job *job)
{
    struct server_upkeep *u = (struct server_upkeep *)(void *)job;
    struct server_upkeep_view *v = &u->view;
    uint64_t pause;

    u->running = false;
    for (int i = 0; i < UPKEEP_TASKS; i++) {
        v->tasks[i] = u->upkeep.slices[i];
        v->uploads[i] = u->upkeep.uploads[i];
        v->rows[i] = u->upkeep.rows[i];
        v->seconds[i] = u->seconds[i];
    }
    v->backlog_bytes = upkeep_backlog(&u->upkeep);
    /* A slice that had nothing to write says nothing about space. */
    if (u->status) {
        server_note_store_status(s, u->status, &u->error);
        if (u->status != u->failed)
            log_write(LOG_LEVEL_WARNING, "upkeep", "upkeep: %s", u->error.sentence);
        u->failed = u->status;
        u->due = 0;
        loop_timer_set(u->timer, FAILED_MS);
        return;
    }
    u->failed = PROFD_OK;
    pause = upkeep_pause(&u->upkeep, work_pending(s->writer) > 0, s->metrics.uploads_ok != u->uploads,
                         (u->took_us + 999) / 1000, server_upkeep_time());
    u->uploads = s->metrics.uploads_ok;
    u->due = loop_now() + pause;
    if (pause)
        loop_timer_set(u->timer, pause < LOOK_MS ? pause : LOOK_MS);
    else
        server_upkeep_put(s);
}

static void server_upkeep_drop(struct server *s, struct server_job *job)
{
    (void)job;
    s->upkeep->running = false;
}

void server_upkeep_hurry(struct server *s)
{
    server_upkeep_put(s);
}

enum profd_status server_upkeep_start(struct server *s, struct profd_error *e)
{
    const struct store_policy policy = {.raw_age = s->config->raw_age,
                                        .raw_bytes = s->config->raw_bytes,
                                        .keep_age = s->config->keep_age,
                                        .keep_bytes = s->config->keep_bytes};
    struct server_upkeep *u = calloc(1, sizeof *u);

    if (u)
        u->timer = loop_timer_new(s->loop, server_upkeep_on_timer, s);
    if (!u || !u->timer) {
        free(u);
        return profd_error_set(e, PROFD_NO_MEMORY, "no memory for upkeep");
    }
    server_job_init(&u->job, server_upkeep_run, server_upkeep_done, server_upkeep_drop);
    upkeep_init(&u->upkeep, &policy, server_upkeep_time());
    s->upkeep = u;
    loop_timer_set(u->timer, FIRST_MS);
    return PROFD_OK;
}

void server_upkeep_end(struct server *s)
{
    if (!s->upkeep)
        return;
    loop_timer_free(s->upkeep->timer);
    free(s->upkeep);
    s->upkeep = NULL;
}

void server_upkeep_view(const struct server *s, struct server_upkeep_view *out)
{
    *out = s->upkeep ? s->upkeep->view : (struct server_upkeep_view){.full = false};
    out->full = s->full;
    server_scrub_view(s, out);
}
