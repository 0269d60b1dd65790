#include "writer/upkeep_job.h"

#include <stdbool.h>
#include <stdlib.h>
#include <time.h>

#include "core/container.h"
#include "base/log.h"
#include "net/loop.h"
#include "writer/space.h"
#include "writer/writer.h"

#define FIRST_MS 200
#define LOOK_MS 1000
#define FAILED_MS 1000 /* retry after lack of space or memory */
#define QUEUE_FULL_MS 50
#define HURRY_MS 50 /* limits the share of the writer's time that refused uploads can cause */

struct upkeep_job {
    struct writer_job job;
    struct upkeep_job_config config;
    struct loop_timer *timer;
    bool running, stopped; /* running: the writer has the job, and upkeep with it */
    bool changed;          /* the policy, while it was running */
    struct upkeep upkeep;
    double seconds[UPKEEP_TASKS];
    enum profd_status status, failed; /* whether the latest slice failed, so that a failure is logged once */
    struct profd_error error;
    struct upkeep_time trusted; /* the loop's copy of its anchor */
    uint64_t took_us;
    uint64_t hurried;            /* ms of loop_now: when a refused upload last requested a slice */
    bool confirmed;              /* the clock, since the latest slice began */
    uint64_t uploads;            /* stored when the latest slice was done */
    uint64_t due;                /* ms of loop_now: the next slice, unless an upload comes first */
    struct upkeep_counts counts; /* the loop's copy */
};

static struct upkeep_job *upkeep_job_of(struct writer_job *job)
{
    return container_of(job, struct upkeep_job, job);
}

static struct upkeep_time upkeep_job_time(void)
{
    struct timespec t;

    clock_gettime(CLOCK_BOOTTIME, &t);
    return (struct upkeep_time){.wall = loop_clock(), .steady = t.tv_sec * INT64_C(1000000000) + t.tv_nsec};
}

static uint64_t upkeep_job_uploads(const struct upkeep_job *u)
{
    return u->config.get_uploads(u->config.context);
}

/* Runs one slice. Removals, and rolling up before them, may use the reserve. */
static void upkeep_job_slice(struct upkeep_job *u, struct store *store)
{
    const struct upkeep_time now = upkeep_job_time();

    u->upkeep.no_space = space_admit(u->config.space, store, &u->error) != PROFD_OK;
    u->status = upkeep_run(&u->upkeep, store, now, &u->error);
    if (u->status == PROFD_FULL && space_give_up(u->config.space)) {
        u->status = upkeep_run(&u->upkeep, store, now, &u->error);
    }
    if (u->status == PROFD_IO || u->status == PROFD_DAMAGED) {
        (void)store_look(store, NULL); /* a reading verb may have met it: the store's health says so at once */
    }
}

static void upkeep_job_run_one(struct upkeep_job *u, struct store *store)
{
    const int64_t began = upkeep_job_time().steady;
    struct upkeep_time now;

    do {
        const enum upkeep_task task = u->upkeep.task;
        const int64_t before = upkeep_job_time().steady;

        upkeep_job_slice(u, store);
        now = upkeep_job_time();
        u->seconds[task] += (double)(now.steady - before) / 1e9;
    } while (!u->status && now.steady - began < (int64_t)upkeep_budget(&u->upkeep) * 1000000);
    u->took_us = (uint64_t)(now.steady - began) / 1000;
}

static void upkeep_job_run(struct store *store, const struct profd_error *full, struct writer_job *const *jobs,
                           size_t n)
{
    (void)full; /* each slice finds out anew */
    for (size_t i = 0; i < n; i++) {
        upkeep_job_run_one(upkeep_job_of(jobs[i]), store);
    }
}

static void upkeep_job_put(struct upkeep_job *u)
{
    if (u->running || u->stopped || writer_check(u->config.writer, NULL)) {
        return;
    }
    u->upkeep.policy = u->config.policy;
    u->upkeep.confirmed |= u->confirmed;
    u->confirmed = false;
    u->running = writer_put(u->config.writer, &u->job);
    if (!u->running) {
        loop_timer_set(u->timer, QUEUE_FULL_MS);
    }
}

/* Checks once a second whether there may be work. */
static void upkeep_job_on_timer(void *context)
{
    struct upkeep_job *u = context;
    const uint64_t now = loop_now();
    const bool idle = now < u->due && upkeep_job_uploads(u) == u->uploads;

    if (space_look(u->config.space, u->config.health) || !idle) {
        upkeep_job_put(u);
    } else {
        loop_timer_set(u->timer, u->due - now > LOOK_MS ? LOOK_MS : u->due - now);
    }
}

static void upkeep_job_done(struct writer_job *job)
{
    struct upkeep_job *u = upkeep_job_of(job);
    const uint64_t uploads = upkeep_job_uploads(u);
    uint64_t pause;

    u->running = false;
    u->trusted = u->upkeep.anchor;
    for (int i = 0; i < UPKEEP_TASKS; i++) {
        u->counts.seconds[i] = u->seconds[i];
    }
    u->counts.rolled_up = u->upkeep.uploads[UPKEEP_COMPACT];
    u->counts.backlog_bytes = upkeep_backlog(&u->upkeep);
    const double ahead = (double)u->upkeep.ahead / 1e9;

    if (ahead > 0 && u->counts.clock_ahead <= 0) {
        log_write(LOG_LEVEL_WARNING, NULL,
                  "the clock is %.1f days ahead of the time at which profd last ran, or has jumped: no data and no ids "
                  "of uploads are removed because of their age until it has been so for 24 hours; set the clock right "
                  "if it is wrong, or use profctl retention --confirm-clock",
                  ahead / 86400);
    }
    u->counts.clock_ahead = ahead;
    if (u->status) {
        /* If the store has failed for good, its health has said so. */
        if (u->status != u->failed && !writer_check(u->config.writer, NULL)) {
            log_write(LOG_LEVEL_WARNING, "upkeep", "upkeep: %s", u->error.sentence);
        }
        u->failed = u->status;
        u->due = 0;
        loop_timer_set(u->timer, FAILED_MS);
        return;
    }
    u->failed = PROFD_OK;
    pause = upkeep_pause(&u->upkeep, writer_pending(u->config.writer) > 0, uploads != u->uploads,
                         (u->took_us + 999) / 1000, upkeep_job_time());
    pause = u->changed ? 0 : pause;
    u->changed = false;
    u->uploads = uploads;
    u->due = loop_now() + pause;
    if (pause) {
        loop_timer_set(u->timer, pause < LOOK_MS ? pause : LOOK_MS);
    } else {
        upkeep_job_put(u);
    }
}

static void upkeep_job_drop(struct writer_job *job)
{
    upkeep_job_of(job)->running = false;
}

static const struct writer_job_type upkeep_job_type = {
    .run = upkeep_job_run, .done = upkeep_job_done, .drop = upkeep_job_drop, .changes_objects = true};

void upkeep_job_set_policy(struct upkeep_job *u, const struct store_policy *policy)
{
    u->config.policy = *policy;
    u->changed = u->running;
    upkeep_job_put(u);
}

double upkeep_job_confirm_clock(struct upkeep_job *u)
{
    const double ahead = u->counts.clock_ahead;

    if (ahead > 0) {
        u->confirmed = true;
        u->changed = u->running;
        upkeep_job_put(u);
    }
    return ahead;
}

int64_t upkeep_job_clock(const struct upkeep_job *u)
{
    return upkeep_judge_time(u->trusted, upkeep_job_time());
}

void upkeep_job_hurry(struct upkeep_job *u)
{
    upkeep_job_put(u);
}

void upkeep_job_free_space(struct upkeep_job *u)
{
    if (loop_now() - u->hurried < HURRY_MS) {
        return;
    }
    u->hurried = loop_now();
    upkeep_job_put(u);
}

enum profd_status upkeep_job_start(const struct upkeep_job_config *config, struct upkeep_job **out,
                                   struct profd_error *e)
{
    struct upkeep_job *u = calloc(1, sizeof *u);

    if (u) {
        u->timer = loop_timer_new(config->loop, upkeep_job_on_timer, u);
    }
    if (!u || !u->timer) {
        free(u);
        return profd_error_set(e, PROFD_NO_MEMORY, "no memory for upkeep");
    }
    u->config = *config;
    u->job = (struct writer_job){.item = {.uid = WRITER_UID_NONE, .weight = 1}, .type = &upkeep_job_type};
    const struct upkeep_time now = upkeep_job_time();

    upkeep_init(&u->upkeep, &config->policy, now);
    if (!store_get_totals(config->store, &u->upkeep.totals, NULL)) { /* else the first slice tries again */
        upkeep_read_clock(&u->upkeep, now);
    }
    u->trusted = u->upkeep.anchor;
    loop_timer_set(u->timer, FIRST_MS);
    *out = u;
    return PROFD_OK;
}

void upkeep_job_stop(struct upkeep_job *u)
{
    u->stopped = true;
    loop_timer_clear(u->timer);
}

void upkeep_job_free(struct upkeep_job *u)
{
    if (u) {
        loop_timer_free(u->timer);
    }
    free(u);
}

void upkeep_job_get_counts(const struct upkeep_job *u, struct upkeep_counts *out)
{
    *out = u->counts;
}
