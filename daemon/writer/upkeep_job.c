#include "writer/upkeep_job.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/log.h"
#include "core/container.h"
#include "net/loop.h"
#include "writer/health.h"
#include "writer/writer.h"

#define LINE 40u         /* "FROM TO\n", 19 digits each: times of this and the next two centuries */
#define TICK_NS 10000000 /* times of files are those of the clock's last tick */
#define LINES_MAX (4 * (off_t)DOWNTIME_MAX)

struct run_times {
    int fd;   /* -1: it cannot be written */
    off_t at; /* of the line of this run */
    int64_t start;
    bool begun;
    struct downtime downtime;
};

/* Adds the gap before the run that a line describes. *end: of the run before it, 0 if there is none. An invalid line is
 * skipped. */
static void run_times_take(struct downtime *d, const char line[LINE], int64_t *end)
{
    char text[LINE + 1];
    char *rest;

    memcpy(text, line, LINE);
    text[LINE] = 0;
    int64_t from = strtoll(text, &rest, 10);
    int64_t to = strtoll(rest, &rest, 10);
    if (*rest != '\n' || from <= 0 || to < from) {
        return;
    }
    if (*end && from > *end) {
        if (d->count == DOWNTIME_MAX) {
            memmove(d->gaps, d->gaps + 1, (DOWNTIME_MAX - 1) * sizeof *d->gaps);
            d->count--;
        }
        d->gaps[d->count++] = (struct downtime_gap){*end, from};
    }
    *end = to > *end ? to : *end;
}

/* Returns when the previous run last wrote to the database. If it was killed, that may be later than its line states.
 */
static int64_t run_times_find_written(int directory, const char *name)
{
    struct stat st;

    if (fstatat(directory, name, &st, AT_SYMLINK_NOFOLLOW)) {
        return 0;
    }
    return st.st_mtim.tv_sec * INT64_C(1000000000) + st.st_mtim.tv_nsec + TICK_NS;
}

/* Rewrites the earlier runs of a long file. Only their gaps are used, so each run is written as ending where the next
 * gap begins. */
static void run_times_shorten(struct run_times *r)
{
    const struct downtime *d = &r->downtime;
    char line[LINE + 1];

    r->at = 0;
    for (size_t i = 0; i < d->count; i++, r->at += LINE) {
        snprintf(line, sizeof line, "%019" PRId64 " %019" PRId64 "\n", i ? d->gaps[i - 1].to : d->gaps[i].from,
                 d->gaps[i].from);
        if (pwrite(r->fd, line, LINE, r->at) != (ssize_t)LINE) {
            return;
        }
    }
    if (ftruncate(r->fd, r->at)) {
        log_write(LOG_LEVEL_WARNING, "runs", "the file of runs cannot be shortened: %s", strerror(errno));
    }
}

struct run_times *run_times_open(int directory, int64_t now)
{
    struct run_times *r = calloc(1, sizeof *r);
    struct stat st;

    if (!r) {
        return NULL;
    }
    r->start = now;
    r->fd = openat(directory, "runs", O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK, 0600);
    if (r->fd < 0 || fstat(r->fd, &st) || !S_ISREG(st.st_mode)) {
        log_write(
            LOG_LEVEL_WARNING, "runs",
            "the file \"runs\" in the state directory cannot be opened: reports do not say when profd did not run");
        return r;
    }
    if (!geteuid() && !fstat(directory, &st) && st.st_uid && fchown(r->fd, st.st_uid, st.st_gid)) {
        log_write(LOG_LEVEL_WARNING, "runs", "the file of runs stays root's: %s", strerror(errno));
    }
    const int64_t database = run_times_find_written(directory, "profd.db");
    const int64_t log = run_times_find_written(directory, "profd.db-wal"), written = log > database ? log : database;
    char line[LINE];
    int64_t end = 0;

    for (r->at = 0; pread(r->fd, line, LINE, r->at) == (ssize_t)LINE; r->at += LINE) {
        run_times_take(&r->downtime, line, &end);
    }
    if (end && written > end) {
        end = written < now ? written : now;
    }
    snprintf(line, sizeof line, "%019" PRId64 " %019" PRId64, now, now);
    line[LINE - 1] = '\n';
    run_times_take(&r->downtime, line, &end);
    if (r->at > LINES_MAX * (off_t)LINE) {
        run_times_shorten(r);
    }
    return r;
}

void run_times_begin(struct run_times *r)
{
    r->begun = true;
    run_times_beat(r, r->start);
}

void run_times_beat(struct run_times *r, int64_t now)
{
    char line[LINE + 1];

    if (!r || r->fd < 0 || !r->begun) {
        return;
    }
    snprintf(line, sizeof line, "%019" PRId64 " %019" PRId64 "\n", r->start, now > r->start ? now : r->start);
    if (pwrite(r->fd, line, LINE, r->at) != (ssize_t)LINE) {
        log_write(LOG_LEVEL_WARNING, "runs", "the time of this run cannot be stored: %s", strerror(errno));
    }
}

const struct downtime *run_times_get_downtime(const struct run_times *r)
{
    return &r->downtime;
}

void run_times_close(struct run_times *r)
{
    if (r && r->fd >= 0) {
        close(r->fd);
    }
    free(r);
}

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
    enum profd_status failed;   /* of the slice before, so that a failure is logged once */
    struct upkeep_time trusted; /* the loop's copy of its anchor */
    uint64_t took_us;
    uint64_t hurried;            /* ms of loop_now: when a refused upload last requested a slice */
    bool confirmed;              /* the clock, since the latest slice began */
    uint64_t uploads;            /* stored when the latest slice was done */
    uint64_t due;                /* ms of loop_now: the next slice, unless an upload comes first */
    struct upkeep_counts counts; /* the loop's copy */
};

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

/* Each slice checks whether the disk is full. */
static enum profd_status upkeep_job_run(struct writer_job *job, struct store *store, struct profd_error *e)
{
    struct upkeep_job *u = container_of(job, struct upkeep_job, job);
    struct upkeep_time now = upkeep_job_time();
    const int64_t began = now.steady;
    enum profd_status status;

    do {
        const enum upkeep_task task = u->upkeep.task;
        const struct upkeep_time before = upkeep_job_time();

        /* Removals, and rolling up before them, may use the reserve. */
        u->upkeep.no_space = space_admit(u->config.space, store, e) != PROFD_OK;
        status = upkeep_run(&u->upkeep, store, before, e);
        if (status == PROFD_FULL && space_give_up(u->config.space)) {
            status = upkeep_run(&u->upkeep, store, before, e);
        }
        if (status == PROFD_IO || status == PROFD_DAMAGED) {
            (void)store_look(store, NULL); /* a reading verb may have met it; this updates the store's health */
        }
        now = upkeep_job_time();
        u->seconds[task] += (double)(now.steady - before.steady) / 1e9;
    } while (!status && now.steady - began < (int64_t)upkeep_budget(&u->upkeep) * 1000000);
    u->took_us = (uint64_t)(now.steady - began) / 1000;
    return status;
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
    struct upkeep_job *u = container_of(job, struct upkeep_job, job);
    const uint64_t uploads = upkeep_job_uploads(u);

    u->running = false;
    if (job->status == PROFD_STOPPING) {
        return;
    }
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
    if (job->status) {
        /* If the store has failed for good, its health has said so. */
        if (job->status != u->failed && !writer_check(u->config.writer, NULL)) {
            log_write(LOG_LEVEL_WARNING, "upkeep", "upkeep: %s", job->error.sentence);
        }
        u->failed = job->status;
        u->due = 0;
        loop_timer_set(u->timer, FAILED_MS);
        return;
    }
    u->failed = PROFD_OK;
    uint64_t pause = upkeep_pause(&u->upkeep, writer_pending(u->config.writer) > 0, uploads != u->uploads,
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

static const struct writer_job_type upkeep_job_type = {
    .run = upkeep_job_run, .done = upkeep_job_done, .changes_objects = true};

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
        return profd_no_memory(e);
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
