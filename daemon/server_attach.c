#include "server_attach.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "log.h"

#define NICE 5 /* whoever waits for an acknowledgement or an answer comes first */
#define QUEUE (2u * LIMIT_HARVESTS_AT_ONCE)

static enum profd_status server_attach_open(struct server *s, struct server_attach *t, struct profd_error *e)
{
    void *contexts[1] = {s};
    const struct work_config config = {
        .name = "profd-harvest",
        .threads = 1,
        .contexts = contexts,
        .queue_max = QUEUE,
        .queue_max_uid = QUEUE,
        .batch_max = 1,
        .nice = NICE,
        .run = server_attach_run,
        .done = server_attach_was_read,
        .done_context = s,
    };
    char path[4096];
    enum profd_status status = server_database_path(s, path, sizeof path, e);

    if (!status)
        status = store_sqlite_open_reader(path, &t->store, e);
    if (!status)
        status = ingest_checker_new(t->store, &t->checker, e);
    if (!status)
        status = work_new(s->loop, &config, &t->work, e);
    return status;
}

enum profd_status server_attach_start(struct server *s, struct profd_error *e)
{
    struct server_attach *t = calloc(1, sizeof *t);

    if (!t)
        return profd_error_set(e, PROFD_NO_MEMORY, "no memory for live processes");
    s->attach = t;
    t->server = s;
    t->sync_task.run = server_attach_on_sync;
    t->descriptors = SIZE_MAX / 2;
    t->sweep_timer = loop_timer_new(s->loop, server_attach_on_sweep, s);
    t->unseen_timer = loop_timer_new(s->loop, server_attach_on_unseen, s);
    if (!t->sweep_timer || !t->unseen_timer)
        return profd_error_set(e, PROFD_NO_MEMORY, "no memory for live processes");
    server_attach_place_init(t);
    return server_attach_open(s, t, e);
}

static void server_attach_stop_one(struct server *s, struct server_attached *a)
{
    server_attach_want(s, a, a->due);
}

void server_attach_stop(struct server *s)
{
    loop_timer_clear(s->attach->unseen_timer);
    server_attach_each(s, server_attach_stop_one);
}

bool server_attach_is_idle(const struct server *s)
{
    const struct server_attach *t = s->attach;

    return (!t->ready_first || s->write_failed) && !t->in_hand && !work_pending(t->work) && !t->asked_first;
}

void server_attach_end_thread(struct server *s)
{
    struct server_attach *t = s->attach;

    if (!t || !t->work)
        return;
    work_stop(t->work); /* what is dropped makes room for others */
    work_drop(t->work, server_attach_drop, s);
    work_free(t->work);
    t->work = NULL;
}

static void server_attach_end_one(struct server *s, struct server_attached *a)
{
    a->conn = 0;
    a->kept = false; /* the manager keeps it for the next daemon */
    server_attach_forget(s, a);
}

/* Those that stood in the queue. */
static void server_attach_end_users(struct server_attach *t)
{
    struct server_attached_user *u, *next;

    for (size_t i = 0; i < SERVER_ATTACH_BUCKETS; i++)
        for (u = t->users[i]; u; u = next) {
            next = u->next;
            free(u);
        }
}

void server_attach_end(struct server *s)
{
    struct server_attach *t = s->attach;

    if (!t)
        return;
    server_attach_end_thread(s);
    server_attach_end_syncs(s);
    server_attach_each(s, server_attach_end_one);
    server_attach_end_users(t);
    server_attach_keep_end(s);
    loop_timer_free(t->sweep_timer);
    loop_timer_free(t->unseen_timer);
    ingest_checker_free(t->checker);
    store_close(t->store);
    free(t);
    s->attach = NULL;
}
