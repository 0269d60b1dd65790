/* When who is read, by the harvesting thread, and what becomes of it. Users take turns; nobody is in hand twice. */
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>

#include "log.h"
#include "server_attach.h"

#define FIRST_MS 1000 /* of a process: then it is read whenever it is twice as old, until the interval is reached */
#define RETRY_MS 1000 /* no space, no memory: a second later it may be otherwise */
#define SWEEP_MS 1000 /* at most between two looks at who is due */
#define SWEEP_MIN_MS 50
#define PATIENCE 20 /* who takes long to read is read more rarely: a twentieth of the thread's time each */

static void server_attach_queue_user(struct server_attach *t, struct server_attached_user *u)
{
    if (u->ready)
        return;
    u->ready = true;
    u->next_ready = NULL;
    if (t->ready_last)
        t->ready_last->next_ready = u;
    else
        t->ready_first = u;
    t->ready_last = u;
}

void server_attach_want(struct server *s, struct server_attached *a, bool first)
{
    struct server_attached_user *u = a->user;

    if (a->stage == SERVER_ATTACHED_WANTED)
        return;
    if (a->stage != SERVER_ATTACHED_IDLE) {
        a->again = true;
        return;
    }
    a->stage = SERVER_ATTACHED_WANTED;
    a->next_ready = first ? u->ready_first : NULL;
    if (!u->ready_last)
        u->ready_first = u->ready_last = a;
    else if (first)
        u->ready_first = a;
    else
        u->ready_last = u->ready_last->next_ready = a;
    server_attach_queue_user(s->attach, u);
    server_attach_dispatch(s);
}

void server_attach_bury(struct server *s, struct server_attached *a)
{
    watch_free(a->watch);
    a->watch = NULL;
    if (a->dead)
        return;
    a->dead = true;
    server_attach_make_due(s, a);
    server_attach_want(s, a, true);
}

/* The next one of the user whose turn it is. */
static struct server_attached *server_attach_take_ready(struct server_attach *t)
{
    struct server_attached_user *u = t->ready_first;
    struct server_attached *a = u->ready_first;

    t->ready_first = u->next_ready;
    if (!t->ready_first)
        t->ready_last = NULL;
    u->ready = false;
    u->ready_first = a->next_ready;
    if (!u->ready_first)
        u->ready_last = NULL;
    else
        server_attach_queue_user(t, u);
    return a;
}

/* Snapshots that are too many to be kept are read from the store again. */
static void server_attach_keep_snapshot(struct server_attach *t, struct server_attached *a)
{
    t->kept_bytes -= a->kept_bytes;
    a->kept_bytes = attach_get_kept(a->process);
    if (t->kept_bytes + a->kept_bytes > LIMIT_ATTACH_SNAPSHOTS) {
        attach_let_go(a->process);
        a->kept_bytes = 0;
        a->resume = true;
    }
    t->kept_bytes += a->kept_bytes;
}

/* A look at the store or the memory failed for a reason that passes: later again. */
static void server_attach_put_off(struct server *s, struct server_attached *a)
{
    server_attach_keep_snapshot(s->attach, a);
    a->stage = SERVER_ATTACHED_IDLE;
    a->again = false;
    a->next_at = loop_now() + RETRY_MS;
    server_attach_sweep(s);
}

/* A harvest is at most as large as what its process has written. */
static size_t server_attach_guess(const struct server_attached *a)
{
    struct stat st;

    return fstat(a->memory, &st) ? 0 : (size_t)st.st_blocks * 512;
}

void server_attach_dispatch(struct server *s)
{
    struct server_attach *t = s->attach;

    while (t->work && t->ready_first && t->in_hand < LIMIT_HARVESTS_AT_ONCE && t->in_hand_bytes < LIMIT_HARVEST_BYTES &&
           !s->write_failed) {
        struct server_attached *a = server_attach_take_ready(t);

        a->stage = SERVER_ATTACHED_READING;
        a->ending = a->dead;
        a->again = false;
        a->read_ms = loop_now();
        a->harvest.status = PROFD_OK;
        a->harvest.write.item.weight = 1;
        a->weight = server_attach_guess(a);
        t->in_hand++;
        t->in_hand_bytes += a->weight;
        if (!work_put(t->work, &a->harvest.write.item)) {
            t->in_hand--;
            t->in_hand_bytes -= a->weight;
            server_attach_put_off(s, a);
        }
    }
}

/* What was durable when another daemon, or an earlier connection, let go of the process. */
static enum profd_status server_attach_resume(struct store *store, struct server_attached *a, struct profd_error *e)
{
    uint64_t generation;
    uint8_t *snapshot = NULL;
    size_t size = 0;
    enum profd_status status = store_get_instance(store, a->uid, a->instance, &generation, &snapshot, &size, e);

    if (!status)
        status = attach_resume(a->process, generation, snapshot, size, e);
    free(snapshot);
    if (!status)
        a->resume = false;
    return status;
}

static void server_attach_read_one(struct server *s, struct server_attached *a)
{
    const enum attach_end end = a->ending ? ATTACH_ENDED : ATTACH_LIVES;
    struct server_harvest *h = &a->harvest;
    struct timespec before, after;

    clock_gettime(CLOCK_MONOTONIC, &before);
    if (a->resume)
        h->status = server_attach_resume(s->attach->store, a, &h->error);
    if (!h->status)
        h->status = attach_harvest(a->process, s->attach->checker, atomic_load(&s->objects_generation), server_clock(),
                                   end, &h->harvest, &h->error);
    clock_gettime(CLOCK_MONOTONIC, &after);
    a->read_us = (uint64_t)((after.tv_sec - before.tv_sec) * 1000000 + (after.tv_nsec - before.tv_nsec) / 1000);
}

static void server_attach_read(void *context, struct server_harvest *h)
{
    server_attach_read_one(context, (struct server_attached *)(void *)h);
}

void server_attach_run(void *context, struct work_item *const *items, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        struct server_harvest *h = (struct server_harvest *)(void *)items[i];

        h->read(context, h);
    }
}

/* Nothing of it is stored: it lied, or its snapshot cannot be continued. */
static void server_attach_refuse(struct server *s, struct server_attached *a)
{
    struct conn *c = a->conn ? conn_find(s->conns, a->conn) : NULL;
    const struct server_harvest *h = &a->harvest;
    const struct profd_error why = h->error;
    const enum profd_status status = h->status;

    s->metrics.harvests_refused[status < METRICS_STATUSES ? status : 0]++;
    log_write(LOG_LEVEL_WARNING, "live process", "process %u of user %u is not read any more: %s", a->origin.pid,
              a->uid, why.sentence);
    server_attach_forget(s, a);
    if (c)
        conn_fail(c, 0, status == PROFD_DAMAGED ? PROFD_CONFLICT : status, why.sentence);
}

/* It is in nobody's hand any more. */
static void server_attach_finish(struct server *s, struct server_attached *a)
{
    const uint64_t rest = a->read_us * PATIENCE / 1000;
    const uint64_t most = (uint64_t)s->config->harvest_interval / 1000000u;
    const uint64_t age = loop_now() - a->began;
    const uint64_t young = age < FIRST_MS ? FIRST_MS : age; /* who looks at a new process does not wait for long */
    const uint64_t interval = most < young ? most : young;

    const bool more = a->harvest.harvest.more; /* there was more than one harvest may bring */

    attach_harvest_done(&a->harvest.harvest);
    server_attach_keep_snapshot(s->attach, a);
    a->stage = SERVER_ATTACHED_IDLE;
    a->next_at = a->read_ms + (rest > interval ? rest : interval);
    server_attach_copy_facts(a);
    if (a->ending && a->dead && !more) {
        s->metrics.processes_ended++;
        server_attach_forget(s, a);
    } else if (a->again || a->dead || more) {
        server_attach_want(s, a, a->due);
    } else {
        server_attach_clear_due(s, a);
    }
    server_attach_sweep(s);
}

static void server_attach_stored(struct server *s, struct server_harvest *h)
{
    struct server_attached *a = (struct server_attached *)(void *)h;
    struct conn *c = a->conn ? conn_find(s->conns, a->conn) : NULL;

    s->attach->in_hand--;
    s->attach->in_hand_bytes -= a->weight;
    if (h->status) {
        attach_harvest_done(&h->harvest);
        server_attach_put_off(s, a);
        server_note_store_status(s, h->status, &h->error); /* may end connections */
    } else if (h->outcome == STORE_STALE) {
        attach_harvest_done(&h->harvest);
        a->resume = true;
        a->stage = SERVER_ATTACHED_IDLE;
        server_attach_want(s, a, a->due);
    } else {
        attach_settle(a->process, &h->harvest);
        server_note_store_status(s, PROFD_OK, NULL);
        s->metrics.harvests++;
        s->metrics.samples += h->harvest.ticks;
        s->metrics.calls += h->harvest.calls;
        metrics_add_seconds(&s->metrics.harvest_seconds, (double)(loop_now() - a->read_ms) / 1000.0);
        if (c)
            server_want_objects(s, c, h->harvest.wanted, h->harvest.wanted_count);
        server_attach_finish(s, a);
    }
    server_attach_dispatch(s);
}

/* Read; now to the writer. */
static void server_attach_read_done(struct server *s, struct server_harvest *h)
{
    struct server_attached *a = (struct server_attached *)(void *)h;
    struct server_attach *t = s->attach;

    t->in_hand_bytes -= a->weight;
    a->weight = h->harvest.put.upload.counts_size + h->harvest.put.snapshot_size;
    if (!h->status && h->harvest.any) {
        a->stage = SERVER_ATTACHED_STORING;
        t->in_hand_bytes += a->weight;
        h->write.item.weight = a->weight;
        if (work_put(s->writer, &h->write.item))
            return;
        t->in_hand_bytes -= a->weight;
        h->status = profd_error_set(&h->error, PROFD_BUSY, "too much waits to be stored");
    }
    t->in_hand--;
    if (!h->status) {
        server_attach_finish(s, a);
    } else if (profd_status_retry(h->status) || h->status == PROFD_IO) {
        log_write(LOG_LEVEL_INFO, "live process", "process %u of user %u: %s", a->origin.pid, a->uid,
                  h->error.sentence);
        attach_harvest_done(&h->harvest);
        server_attach_put_off(s, a);
    } else {
        server_attach_refuse(s, a);
    }
    server_attach_dispatch(s);
}

void server_attach_hand(struct server_attached *a)
{
    a->harvest.write.kind = SERVER_WRITE_HARVEST;
    a->harvest.write.item.uid = a->uid;
    a->harvest.read = server_attach_read;
    a->harvest.was_read = server_attach_read_done;
    a->harvest.stored = server_attach_stored;
}

void server_attach_was_read(void *context, struct work_item *item)
{
    struct server_harvest *h = (struct server_harvest *)(void *)item;

    h->was_read(context, h);
}

void server_attach_drop(void *context, struct work_item *item)
{
    struct server_harvest *h = (struct server_harvest *)(void *)item;

    h->status = profd_error_set(&h->error, PROFD_STOPPING, "the daemon is stopping");
    h->was_read(context, h);
}

static void server_attach_sweep_one(struct server *s, struct server_attached *a)
{
    if (a->stage == SERVER_ATTACHED_IDLE && loop_now() >= a->next_at)
        server_attach_want(s, a, a->due);
}

void server_attach_sweep(struct server *s)
{
    struct server_attach *t = s->attach;
    const uint64_t some = (uint64_t)s->config->harvest_interval / 4000000u; /* a quarter of the interval, in ms */

    if (t->sweeping || s->stopping || !t->count)
        return;
    t->sweeping = true;
    loop_timer_set(t->sweep_timer, some < SWEEP_MIN_MS ? SWEEP_MIN_MS : some > SWEEP_MS ? SWEEP_MS : some);
}

void server_attach_on_sweep(void *context)
{
    struct server *s = context;

    s->attach->sweeping = false;
    server_attach_each(s, server_attach_sweep_one);
    server_attach_keep_again(s);
    server_attach_sweep(s);
}
