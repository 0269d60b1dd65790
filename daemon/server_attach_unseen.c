/* Processes that the store knows and nobody has attached again: those that are no longer there ended while nobody
 * looked, and that is said (DECISIONS 24); the others may come back. Looked at when the daemon starts and every minute.
 */
#include <stdlib.h>
#include <string.h>

#include "log.h"
#include "server_attach.h"

#define LOOK_MS 60000
#define AGAIN_MS 200 /* there were more than one look may close */
#define CLOSE_MAX 256u

/* One that is to be closed. */
struct server_unseen_end {
    struct server_harvest harvest; /* first */
    uint32_t uid;
    uint8_t instance[STORE_INSTANCE_SIZE];
    struct server_unseen_end *next;
};

/* A look at all of them. */
struct server_unseen {
    struct server_harvest harvest; /* first */
    struct attach_origin here;
    int64_t now;
    struct server_unseen_end *ends;
    size_t count, bytes; /* of their snapshots */
    bool more;
};

static void server_unseen_stored(struct server *s, struct server_harvest *h)
{
    s->attach->in_hand--;
    server_note_store_status(s, h->status, &h->error);
    if (!h->status && h->outcome == STORE_HARVESTED)
        s->metrics.processes_unseen++;
    attach_harvest_done(&h->harvest);
    free(h);
    server_attach_dispatch(s);
}

/* On the harvesting thread, once for each instance that has not ended. */
static bool server_unseen_each(void *context, const struct store_instance *i)
{
    struct server_unseen *u = context;
    struct server_unseen_end *end;

    if (attach_still_lives(i->snapshot, i->snapshot_size, &u->here, server_attach_started))
        return true;
    if (u->count == CLOSE_MAX || (u->count && u->bytes + i->snapshot_size > LIMIT_HARVEST_BYTES)) {
        u->more = true;
        return false;
    }
    end = calloc(1, sizeof *end);
    if (!end)
        return false;
    if (attach_close_unseen(i, u->now, &end->harvest.harvest, NULL)) { /* damaged: store_verify tells of it */
        free(end);
        return true;
    }
    end->uid = i->uid;
    memcpy(end->instance, i->instance, sizeof end->instance);
    end->next = u->ends;
    u->ends = end;
    u->bytes += i->snapshot_size;
    u->count++;
    return true;
}

static void server_unseen_read(void *context, struct server_harvest *h)
{
    struct server_unseen *u = (struct server_unseen *)(void *)h;
    struct server *s = context;

    h->status = store_each_instance(s->attach->store, server_unseen_each, u, &h->error);
}

static void server_unseen_drop(struct server_unseen_end *end)
{
    attach_harvest_done(&end->harvest.harvest);
    free(end);
}

/* It is attached, so its end will be seen; or it is closed now. */
static bool server_unseen_close(struct server *s, struct server_unseen_end *end)
{
    struct server_harvest *h = &end->harvest;

    if (s->stopping || s->write_failed || server_attach_find(s->attach, end->uid, end->instance)) {
        server_unseen_drop(end);
        return false;
    }
    h->write = (struct server_write){.kind = SERVER_WRITE_HARVEST, .item = {.uid = end->uid}};
    h->write.item.weight = h->harvest.put.upload.counts_size + h->harvest.put.snapshot_size;
    h->stored = server_unseen_stored;
    s->attach->in_hand++;
    if (work_put(s->writer, &h->write.item))
        return true;
    s->attach->in_hand--;
    server_unseen_drop(end);
    return false;
}

static void server_unseen_was_read(struct server *s, struct server_harvest *h)
{
    struct server_unseen *u = (struct server_unseen *)(void *)h;
    struct server_unseen_end *end, *next;
    size_t closed = 0;

    s->attach->unseen_running = false;
    if (h->status && h->status != PROFD_STOPPING)
        log_write(LOG_LEVEL_WARNING, "live process", "processes that ended unseen: %s", h->error.sentence);
    for (end = u->ends; end; end = next) {
        next = end->next;
        closed += server_unseen_close(s, end);
    }
    if (closed)
        log_write(LOG_LEVEL_NOTICE, "live process", "%zu processes ended while nobody looked", closed);
    if (!s->stopping)
        loop_timer_set(s->attach->unseen_timer, u->more && closed ? AGAIN_MS : LOOK_MS);
    free(u);
}

void server_attach_look_unseen(struct server *s)
{
    struct server_attach *t = s->attach;
    struct server_unseen *u = t->unseen_running || s->stopping ? NULL : calloc(1, sizeof *u);

    if (!u) {
        loop_timer_set(t->unseen_timer, LOOK_MS);
        return;
    }
    server_attach_origin(t, 0, &u->here);
    u->now = server_clock();
    u->harvest.write.item = (struct work_item){.uid = UINT32_MAX, .weight = 1};
    u->harvest.read = server_unseen_read;
    u->harvest.was_read = server_unseen_was_read;
    t->unseen_running = work_put(t->work, &u->harvest.write.item);
    if (t->unseen_running)
        return;
    free(u);
    loop_timer_set(t->unseen_timer, LOOK_MS);
}

void server_attach_on_unseen(void *context)
{
    server_attach_look_unseen(context);
}
