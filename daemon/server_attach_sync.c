/* SYNC and live processes: what they had counted when they ended is durable before it is granted, although nobody may
 * have been told yet that they ended, or even that they were there. */
#include <poll.h>
#include <stdlib.h>

#include "log.h"
#include "server_attach.h"

#define POLLS 256
#define SYNCS_MAX 65536u /* that wait; then BUSY says so at once */

void server_attach_make_due(struct server *s, struct server_attached *a)
{
    struct server_attached_user *u = a->user;

    if (a->due)
        return;
    a->due = ++s->attach->turn;
    a->next_due = NULL;
    a->previous_due = u->due_last;
    if (u->due_last)
        u->due_last->next_due = a;
    else
        u->due_first = a;
    u->due_last = a;
}

static void server_attach_grant(struct server *s, struct server_sync *sync, bool failed)
{
    struct conn *c = conn_find(s->conns, sync->conn);

    if (c && failed)
        server_fail_job(c, sync->job);
    else if (c)
        server_end_job(c, sync->job);
    s->attach->syncs--;
    free(sync);
}

/* Grants the user's SYNCs whose turn has come. */
static void server_attach_grant_all(struct server *s, struct server_attached_user *u, bool failed)
{
    while (u->sync_first && (failed || !u->due_first || u->due_first->due > u->sync_first->turn)) {
        struct server_sync *sync = u->sync_first;

        u->sync_first = sync->next;
        if (!u->sync_first)
            u->sync_last = NULL;
        server_attach_grant(s, sync, failed);
    }
}

void server_attach_clear_due(struct server *s, struct server_attached *a)
{
    struct server_attached_user *u = a->user;

    if (!a->due)
        return;
    a->due = 0;
    if (a->previous_due)
        a->previous_due->next_due = a->next_due;
    else
        u->due_first = a->next_due;
    if (a->next_due)
        a->next_due->previous_due = a->previous_due;
    else
        u->due_last = a->previous_due;
    a->next_due = a->previous_due = NULL;
    server_attach_grant_all(s, u, false);
}

/* Asks the kernel which of n processes have ended. */
static void server_attach_ask(struct server *s, struct server_attached *const *some, struct pollfd *polls, nfds_t n)
{
    if (!n || poll(polls, n, 0) <= 0)
        return;
    for (nfds_t i = 0; i < n; i++)
        if (polls[i].revents)
            server_attach_bury(s, some[i]); /* frees nobody: the last harvest is still to come */
}

/* Those of the user that have ended, although their handles have not had their turn in the loop yet. */
static void server_attach_look_dead(struct server *s, uint32_t uid)
{
    struct server_attached *some[POLLS];
    struct pollfd polls[POLLS];
    nfds_t n = 0;

    for (size_t i = 0; i < SERVER_ATTACH_BUCKETS; i++)
        for (struct server_attached *a = s->attach->buckets[i]; a; a = a->next) {
            if (a->uid != uid || a->dead || a->pidfd < 0)
                continue;
            some[n] = a;
            polls[n++] = (struct pollfd){.fd = a->pidfd, .events = POLLIN};
            if (n == POLLS) {
                server_attach_ask(s, some, polls, n);
                n = 0;
            }
        }
    server_attach_ask(s, some, polls, n);
}

static void server_attach_wait(struct server *s, struct server_sync *sync)
{
    struct server_attached_user *u = server_attach_find_user(s->attach, sync->uid);

    if (!u || !u->due_first || s->write_failed) {
        server_attach_grant(s, sync, u && u->due_first);
        return;
    }
    sync->turn = s->attach->turn;
    if (u->sync_last)
        u->sync_last->next = sync;
    else
        u->sync_first = sync;
    u->sync_last = sync;
}

void server_attach_on_sync(struct loop_task *task)
{
    struct server_attach *t =
        (struct server_attach *)(void *)((char *)task - offsetof(struct server_attach, sync_task));
    struct server *s = t->server;
    struct server_sync *sync = t->asked_first, *next;
    bool looked = false;
    uint32_t uid = 0;

    t->asked_first = t->asked_last = NULL;
    t->sync_posted = false;
    if (sync)
        listener_accept(s->listeners[SERVER_UPLOAD].listener);
    for (; sync; sync = next) {
        next = sync->next;
        sync->next = NULL;
        if (!looked || uid != sync->uid) {
            uid = sync->uid;
            looked = true;
            conn_group_listen(s->conns, uid);
            server_attach_look_dead(s, uid);
        }
        server_attach_wait(s, sync);
    }
}

void server_attach_sync(struct server *s, struct conn *c, uint64_t job)
{
    struct server_attach *t = s->attach;
    struct server_sync *sync = t->syncs < SYNCS_MAX ? calloc(1, sizeof *sync) : NULL;

    if (!sync) {
        log_write(LOG_LEVEL_WARNING, "sync", "a SYNC of user %u was refused: %zu wait", conn_get_peer(c)->uid,
                  t->syncs);
        server_fail_job(c, job);
        return;
    }
    sync->conn = conn_get_id(c);
    sync->uid = conn_get_peer(c)->uid;
    sync->job = job;
    t->syncs++;
    if (t->asked_last)
        t->asked_last->next = sync;
    else
        t->asked_first = sync;
    t->asked_last = sync;
    if (!t->sync_posted)
        loop_post(s->loop, &t->sync_task);
    t->sync_posted = true;
}

void server_attach_fail_syncs(struct server *s)
{
    for (size_t i = 0; i < SERVER_ATTACH_BUCKETS; i++)
        for (struct server_attached_user *u = s->attach->users[i]; u; u = u->next)
            server_attach_grant_all(s, u, true);
}

void server_attach_end_syncs(struct server *s)
{
    struct server_attach *t = s->attach;
    struct server_sync *sync, *next;

    for (sync = t->asked_first; sync; sync = next) {
        next = sync->next;
        free(sync);
    }
    t->asked_first = t->asked_last = NULL;
    for (size_t i = 0; i < SERVER_ATTACH_BUCKETS; i++)
        for (struct server_attached_user *u = t->users[i]; u; u = u->next) {
            for (sync = u->sync_first; sync; sync = next) {
                next = sync->next;
                free(sync);
            }
            u->sync_first = u->sync_last = NULL;
        }
}
