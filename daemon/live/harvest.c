#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>

#include "base/log.h"
#include "core/container.h"
#include "live/live_internal.h"

/* Stores harvests on the writer's thread: one transaction for all in the batch. */

static void store_run(struct store *store, struct writer_job *const *jobs, size_t n)
{
    struct store_upload *puts = calloc(n, sizeof *puts);
    enum store_outcome *outcomes = malloc(n * sizeof *outcomes);
    struct profd_error e = {""};
    enum profd_status status = writer_job_check_space(jobs[0], &e);

    if (!status && (!puts || !outcomes)) {
        status = profd_no_memory(&e);
    }
    for (size_t i = 0; i < n && !status; i++) {
        puts[i] = container_of(jobs[i], struct live_harvest, job)->harvest.put;
    }
    status = status ? status : store_put_uploads(store, puts, n, outcomes, &e);
    for (size_t i = 0; i < n; i++) {
        struct live_harvest *h = container_of(jobs[i], struct live_harvest, job);

        h->job.status = status;
        h->outcome = status ? STORE_STALE : outcomes[i];
        h->job.error = e;
        if (!status && outcomes[i] == STORE_OVER_SHARE) {
            h->job.status = store_share_refuse(store, puts[i].uid, &h->job.error);
        }
    }
    free(outcomes);
    free(puts);
}

static void store_done(struct writer_job *job)
{
    struct live_harvest *h = container_of(job, struct live_harvest, job);

    h->stored(h->live, h);
}

const struct writer_job_type live_harvest_type = {.run_all = store_run, .done = store_done};

/* Schedules harvests. Each user's processes form a queue, and the queues are served round robin, so that one user with
 * many processes cannot starve another. At most one harvest of a process is in flight. */

#define FIRST_MS 1000 /* age of a process: until the interval is reached, it is read each time its age has doubled */
#define RETRY_MS 1000 /* retry after lack of space or memory */
#define SWEEP_MS 1000 /* longest time between two runs of the scheduler */
#define SWEEP_MIN_MS 50
#define PATIENCE 20 /* reading one process may take at most this part of the thread's time */

static void harvest_queue_user(struct live *l, struct live_user *u)
{
    if (u->ready) {
        return;
    }
    u->ready = true;
    u->next_ready = NULL;
    if (l->ready_last) {
        l->ready_last->next_ready = u;
    } else {
        l->ready_first = u;
    }
    l->ready_last = u;
}

void harvest_want(struct live *l, struct live_process *a, bool first)
{
    struct live_user *u = a->user;

    if (a->stage == LIVE_PENDING) {
        return;
    }
    if (a->stage != LIVE_IDLE) {
        a->again = true;
        return;
    }
    a->stage = LIVE_PENDING;
    a->next_ready = first ? u->ready_first : NULL;
    if (!u->ready_last) {
        u->ready_first = u->ready_last = a;
    } else if (first) {
        u->ready_first = a;
    } else {
        u->ready_last = u->ready_last->next_ready = a;
    }
    harvest_queue_user(l, u);
    harvest_dispatch(l);
}

void harvest_mark_exited(struct live *l, struct live_process *a)
{
    loop_watch_free(a->watch);
    a->watch = NULL;
    if (a->dead) {
        return;
    }
    a->dead = true;
    table_file(l, a);
    sync_make_pending(l, a);
    harvest_want(l, a, true);
}

/* The next process of the user at the front of the queue of users. */
static struct live_process *harvest_take_ready(struct live *l)
{
    struct live_user *u = l->ready_first;
    struct live_process *a = u->ready_first;

    l->ready_first = u->next_ready;
    if (!l->ready_first) {
        l->ready_last = NULL;
    }
    u->ready = false;
    u->ready_first = a->next_ready;
    if (!u->ready_first) {
        u->ready_last = NULL;
    } else {
        harvest_queue_user(l, u);
    }
    return a;
}

/* Snapshots beyond the limit are dropped from memory and read from the store again. */
static void harvest_keep_snapshot(struct live *l, struct live_process *a)
{
    l->kept_bytes -= a->kept_bytes;
    a->kept_bytes = attach_get_kept(a->process);
    if (l->kept_bytes + a->kept_bytes > LIMIT_ATTACH_SNAPSHOTS) {
        attach_let_go(a->process);
        a->kept_bytes = 0;
        a->resume = true;
    }
    l->kept_bytes += a->kept_bytes;
}

/* A temporary failure of the store or of reading: try again later. */
static void harvest_put_off(struct live *l, struct live_process *a)
{
    harvest_keep_snapshot(l, a);
    a->stage = LIVE_IDLE;
    a->again = false;
    a->next_at = loop_now() + RETRY_MS;
    harvest_sweep(l);
}

static void harvest_read(void *context, struct live_harvest *h);
static void harvest_was_read_one(struct live *l, struct live_harvest *h);
static void harvest_stored(struct live *l, struct live_harvest *h);

void harvest_dispatch(struct live *l)
{
    while (l->work && l->ready_first && l->in_flight < LIMIT_HARVESTS_AT_ONCE &&
           l->in_flight_bytes < LIMIT_HARVEST_BYTES && !writer_check(l->config.writer, NULL)) {
        struct live_process *a = harvest_take_ready(l);

        a->stage = LIVE_READING;
        a->ending = a->dead;
        a->look = !a->dead && !a->conn;
        a->hears = !a->dead && a->conn;
        a->again = false;
        a->read_ms = loop_now();
        a->harvest.job.status = PROFD_OK;
        a->harvest.job.type = &live_harvest_type;
        a->harvest.job.item.uid = a->uid;
        a->harvest.live = l;
        a->harvest.read = harvest_read;
        a->harvest.was_read = harvest_was_read_one;
        a->harvest.stored = harvest_stored;
        a->harvest.job.item.weight = 1;
        /* The size of a harvest is bounded by what its process has written. */
        struct stat st;
        a->weight = fstat(a->memory, &st) ? 0 : (size_t)st.st_blocks * 512;
        l->in_flight++;
        l->in_flight_bytes += a->weight;
        if (!work_put(l->work, &a->harvest.job.item)) {
            l->in_flight--;
            l->in_flight_bytes -= a->weight;
            harvest_put_off(l, a);
        }
    }
}

/* A process with an instance that the store may have under another user. */
struct harvest_namesake {
    const struct live_process *a;
    bool same, maybe; /* it is that process; it may be, and cannot be proved */
    uint32_t uid;
};

static bool harvest_on_namesake(void *context, const struct store_instance *i)
{
    struct harvest_namesake *n = context;
    const struct attach_origin *here = &n->a->origin;
    struct attach_origin origin;

    if (attach_get_origin(i->snapshot, i->snapshot_size, &origin, NULL) ||
        memcmp(origin.boot, here->boot, sizeof origin.boot) != 0 || strcmp(origin.host, here->host) != 0) {
        return true;
    }
    if (origin.pid && origin.started && here->pid && here->started) {
        if (origin.pid != here->pid || origin.started != here->started) {
            return true; /* another process, whatever it calls itself */
        }
        n->same = search_has_user(here, n->a->uid);
    }
    n->maybe = !n->same;
    n->uid = i->uid;
    return false;
}

/* A process that changes its user, and attaches again, keeps its instance, and with it the user that the store knows it
 * by: else all that it counted would be stored again. An instance alone proves nothing: it must be the same process, by
 * number and start time as the kernel knows them, and one of the user that attached now. */
static enum profd_status harvest_find_former(struct store *store, struct live_process *a, struct profd_error *e)
{
    struct harvest_namesake n = {.a = a};
    TRY(store_each_namesake(store, a->instance, harvest_on_namesake, &n, e));

    FAIL_IF(n.maybe, e, PROFD_CONFLICT,
            "user %u has a process with this instance; it cannot be verified that this is the same process", n.uid);
    if (n.same) {
        attach_set_user(a->process, n.uid);
    }
    return PROFD_OK;
}

/* The stored snapshot, from an earlier daemon or connection. */
static enum profd_status harvest_resume(struct store *store, struct live_process *a, struct profd_error *e)
{
    uint64_t generation;
    uint8_t *snapshot = NULL;
    size_t size = 0;
    enum profd_status status = store_get_instance(store, a->uid, a->instance, &generation, &snapshot, &size, e);

    if (!status && !generation) {
        status = harvest_find_former(store, a, e);
    }
    if (!status && attach_get_user(a->process) != a->uid) {
        status = store_get_instance(store, attach_get_user(a->process), a->instance, &generation, &snapshot, &size, e);
    }
    if (!status) {
        status = attach_resume(a->process, generation, snapshot, size, e);
    }
    free(snapshot);
    if (!status) {
        a->resume = false;
    }
    return status;
}

/* True if the process has more seccomp filters than when it began to count. */
static bool harvest_has_new_filters(const struct live_process *a)
{
    return origin_count_filters(&a->origin) > attach_get_filters(a->process);
}

static void harvest_read_one(struct live *l, struct live_process *a)
{
    struct live_harvest *h = &a->harvest;
    struct timespec before, after;
    enum attach_end end;

    struct process_place *place = attach_get_place(a->process);

    if (place && place->waits) {
        place_find_pod(place, l->config.links);
    }
    a->left = a->look && search_has_unmapped(&a->origin, a->inode);
    end = a->ending || a->left ? ATTACH_ENDED : ATTACH_LIVES;

    clock_gettime(CLOCK_MONOTONIC, &before);
    if (a->hears) { /* so it runs the program that has this memory */
        attach_set_cpu(a->process, origin_read_cpu(&a->origin));
        a->more_filters = harvest_has_new_filters(a);
    }
    if (a->resume) {
        h->job.status = harvest_resume(l->store, a, &h->job.error);
    }
    if (!h->job.status) {
        h->job.status = attach_harvest(a->process, l->builds, writer_objects_generation(l->config.writer), loop_clock(),
                                       end, &h->harvest, &h->job.error);
    }
    clock_gettime(CLOCK_MONOTONIC, &after);
    a->read_us = (uint64_t)((after.tv_sec - before.tv_sec) * 1000000 + (after.tv_nsec - before.tv_nsec) / 1000);
}

static void harvest_read(void *context, struct live_harvest *h)
{
    harvest_read_one(context, container_of(h, struct live_process, harvest));
}

void harvest_run(void *context, struct work_item *const *items, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        struct live_harvest *h = container_of(items[i], struct live_harvest, job.item);

        h->read(context, h);
    }
}

/* Nothing of the process is stored: its memory is invalid, or its snapshot cannot be continued. */
static void harvest_refuse(struct live *l, struct live_process *a)
{
    const struct live_harvest *h = &a->harvest;
    const struct profd_error why = h->job.error;
    const enum profd_status status = h->job.status;

    refusals_add(&l->counts.harvests_refused, status);
    log_write(LOG_LEVEL_WARNING, "live process", "process %u of user %u is no longer read: %s", a->origin.pid, a->uid,
              why.sentence);
    live_count_refused(l, &a->uid);
    table_note_refused(l, a->uid, a->instance);
    answer_dismiss(l, a, status == PROFD_DAMAGED ? PROFD_CONFLICT : status, why.sentence);
    process_remove(l, a);
}

/* No harvest of it is in flight any more. */
static void harvest_finish(struct live *l, struct live_process *a)
{
    const uint64_t rest = a->read_us * PATIENCE / 1000;
    const uint64_t most = (uint64_t)l->config.harvest_interval / 1000000u;
    const uint64_t age = loop_now() - a->began;
    const uint64_t young = age < FIRST_MS ? FIRST_MS : age; /* so that a new process appears soon in lists */
    const uint64_t interval = most < young ? most : young;

    const bool more = a->harvest.harvest.more; /* there was more than one harvest may bring */

    attach_harvest_done(&a->harvest.harvest);
    harvest_keep_snapshot(l, a);
    a->stage = LIVE_IDLE;
    a->next_at = a->read_ms + (rest > interval ? rest : interval);
    summary_copy(a);
    answer_acknowledge(l, a);
    if (a->ending && a->dead && !more) {
        l->counts.ended++;
        process_remove(l, a);
    } else if (a->again || a->dead || more) {
        harvest_want(l, a, a->pending);
    } else {
        sync_clear_pending(l, a);
    }
    harvest_sweep(l);
}

static void harvest_stored(struct live *l, struct live_harvest *h)
{
    struct live_process *a = container_of(h, struct live_process, harvest);
    struct conn *c = a->conn ? conn_find(l->config.conns, a->conn) : NULL;

    l->in_flight--;
    l->in_flight_bytes -= a->weight;
    if (h->job.status) {
        attach_harvest_done(&h->harvest);
        log_write(LOG_LEVEL_WARNING, "counts that wait",
                  "counts of process %u of user %u stay in its memory and are stored later: %s", a->origin.pid, a->uid,
                  h->job.error.sentence);
        harvest_put_off(l, a);
    } else if (h->outcome == STORE_STALE) {
        attach_harvest_done(&h->harvest);
        a->resume = true;
        a->stage = LIVE_IDLE;
        harvest_want(l, a, a->pending);
    } else {
        attach_settle(a->process, &h->harvest);
        l->counts.harvests++;
        l->counts.relabelled += h->outcome == STORE_RELABELLED;
        l->counts.samples += h->harvest.ticks;
        l->counts.calls += h->harvest.calls;
        durations_add(&l->counts.seconds, (double)(loop_now() - a->read_ms) / 1000.0);
        if (c) {
            l->config.request_objects(l->config.context, c, h->harvest.missing, h->harvest.missing_count);
            a->ask = h->harvest.missing_count > 0; /* with the next heartbeat, when it was sent */
        }
        harvest_finish(l, a);
    }
    harvest_dispatch(l);
}

/* The process turned out to be another user's. The service manager's name for it contains the user. */
static bool harvest_change_user(struct live *l, struct live_process *a)
{
    const bool pending = a->pending;

    fdstore_drop(l, a);
    sync_clear_pending(l, a);
    if (!table_change_user(l, a, attach_get_user(a->process))) {
        return false;
    }
    a->harvest.job.item.uid = a->uid;
    if (pending) {
        sync_make_pending(l, a);
    }
    fdstore_keep(l, a);
    return true;
}

/* Read; now to the writer. */
static void harvest_was_read_one(struct live *l, struct live_harvest *h)
{
    struct live_process *a = container_of(h, struct live_process, harvest);

    l->in_flight_bytes -= a->weight;
    a->filtered = a->filtered || a->more_filters;
    a->weight = h->harvest.put.counts_size + h->harvest.put.snapshot_size;
    if (attach_get_user(a->process) != a->uid && !harvest_change_user(l, a) && !h->job.status) {
        h->job.status = profd_error_set(&h->job.error, PROFD_NO_MEMORY, "no memory for a live process");
    }
    if (a->left && !a->conn) { /* checked before the memory was read, so nothing more will be counted */
        loop_watch_free(a->watch);
        a->watch = NULL;
        a->dead = a->ending = true;
        table_file(l, a);
    }
    if (!h->job.status && h->harvest.any) {
        a->stage = LIVE_STORING;
        l->in_flight_bytes += a->weight;
        h->job.item.weight = a->weight;
        if (writer_put(l->config.writer, &h->job)) {
            return;
        }
        l->in_flight_bytes -= a->weight;
        h->job.status = profd_error_set(&h->job.error, PROFD_BUSY, "the queue of counts to be stored is full");
    }
    l->in_flight--;
    if (!h->job.status) {
        harvest_finish(l, a);
    } else if (profd_status_retry(h->job.status) || h->job.status == PROFD_IO) {
        log_write(LOG_LEVEL_INFO, "live process", "process %u of user %u: %s", a->origin.pid, a->uid,
                  h->job.error.sentence);
        attach_harvest_done(&h->harvest);
        harvest_put_off(l, a);
    } else {
        harvest_refuse(l, a);
    }
    harvest_dispatch(l);
}

void harvest_was_read(void *context, struct work_item *item)
{
    struct live_harvest *h = container_of(item, struct live_harvest, job.item);

    h->was_read(context, h);
}

void harvest_drop(void *context, struct work_item *item)
{
    struct live_harvest *h = container_of(item, struct live_harvest, job.item);

    h->job.status = profd_error_set(&h->job.error, PROFD_STOPPING, "the daemon is stopping");
    h->was_read(context, h);
}

static void harvest_sweep_one(struct live *l, struct live_process *a)
{
    if (a->page && a->conn) {
        if (a->ask) { /* a process that reads its connection makes system calls, which a new filter may punish */
            a->filtered = a->filtered || harvest_has_new_filters(a);
        }
        page_beat(a->page, a->ask, a->filtered);
        a->ask = false;
    }
    if (a->stage == LIVE_IDLE && loop_now() >= a->next_at) {
        harvest_want(l, a, a->pending);
    }
}

static void harvest_advance_one(struct live *l, struct live_process *a)
{
    const uint64_t latest = loop_now() + (uint64_t)l->config.harvest_interval / 1000000u;

    a->next_at = a->next_at < latest ? a->next_at : latest;
}

void live_set_interval(struct live *l, int64_t interval)
{
    l->config.harvest_interval = interval;
    table_each(l, harvest_advance_one);
}

void harvest_sweep(struct live *l)
{
    const uint64_t some = (uint64_t)l->config.harvest_interval / 4000000u; /* a quarter of the interval, in ms */

    if (l->sweeping || l->stopping || !l->count) {
        return;
    }
    l->sweeping = true;
    loop_timer_set(l->sweep_timer, some < SWEEP_MIN_MS ? SWEEP_MIN_MS : some > SWEEP_MS ? SWEEP_MS : some);
}

void harvest_on_sweep(void *context)
{
    struct live *l = context;

    l->sweeping = false;
    table_each(l, harvest_sweep_one);
    fdstore_retry(l);
    harvest_sweep(l);
}
