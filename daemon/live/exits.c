/* How the end of a process is noticed: by its handle and its connection, and before a SYNC is granted by asking. */
#include <poll.h>
#include <unistd.h>

#include "live/live_internal.h"

#define POLLS 256

static bool exits_has_ended(const struct live_process *a)
{
    struct pollfd p = {.fd = a->pidfd, .events = POLLIN};

    return a->pidfd >= 0 && poll(&p, 1, 0) > 0;
}

/* The process has ended. If its connection is open, another process has its descriptors: a child that was made without
 * the handlers of fork(), which counts into the same memory until it gets its own. Then the memory is read now, and for
 * the last time when the connection is closed. */
static void exits_end(struct live *l, struct live_process *a)
{
    const struct conn *c = a->conn ? conn_find(l->config.conns, a->conn) : NULL;

    if (!c || conn_has_hung_up(c)) {
        harvest_mark_exited(l, a);
        return;
    }
    sync_make_pending(l, a);
    harvest_want(l, a, true);
}

static void exits_on_end(void *context)
{
    struct live_process *a = context;

    exits_end(a->live, a);
}

void exits_watch(struct live *l, struct live_process *a, enum peer_process state, int pidfd)
{
    origin_find_place(l, a, pidfd);
    loop_watch_free(a->watch);
    a->watch = NULL;
    if (a->pidfd >= 0) {
        close(a->pidfd);
    }
    a->pidfd = pidfd;
    a->dead = false;
    table_file(l, a);
    if (state == PEER_DEAD || exits_has_ended(a)) {
        exits_end(l, a);
    } else if (pidfd >= 0) {
        a->watch = loop_watch_new(l->config.loop, pidfd, exits_on_end, a);
    }
}

/* exec keeps the process id and unmaps the memory of the earlier program. So if the same process has another memory
 * with a closed connection, that memory will not grow any more. The process id cannot have been reused, because then
 * the end of the process would have been seen. Each memory is examined once: marking removes it from the list. */
void exits_mark_earlier(struct live *l, const struct live_process *a)
{
    struct live_process *other = LIST_FIRST(&l->silent[a->origin.pid % LIVE_BUCKETS]), *next;

    for (; other; other = next) {
        next = LIST_NEXT(other, of_pid);
        if (other != a && other->origin.pid == a->origin.pid && other->uid == a->uid) {
            harvest_mark_exited(l, other);
        }
    }
}

/* True if a later program of the same process has attached. Then exec closed the connection of this one. */
static bool exits_has_later(const struct live *l, const struct live_process *a)
{
    const struct live_process *other = LIST_FIRST(&l->connected[a->origin.pid % LIVE_BUCKETS]);

    while (other && (other == a || other->origin.pid != a->origin.pid || other->uid != a->uid)) {
        other = LIST_NEXT(other, of_pid);
    }
    return other;
}

void live_hang_up(struct live *l, struct live_process *a)
{
    a->conn = 0;
    a->owed = false;
    page_close(a->page);
    table_file(l, a);
    /* If the daemon closes the connection, the process may still be running. */
    if (exits_has_ended(a) || (!l->stopping && (a->pidfd < 0 || exits_has_later(l, a)))) {
        harvest_mark_exited(l, a);
        return;
    }
    sync_make_pending(l, a);
    harvest_want(l, a, true);
}

/* Determines which of n processes have ended. */
static void exits_poll(struct live *l, struct live_process *const *some, struct pollfd *polls, nfds_t n)
{
    if (!n || poll(polls, n, 0) <= 0) {
        return;
    }
    for (nfds_t i = 0; i < n; i++) {
        if (polls[i].revents) {
            exits_end(l, some[i]); /* frees nothing: the last harvest is still to come */
        }
    }
}

/* Reads what the user's connections have sent, in as many passes of the loop as that takes, then looks for ended
 * processes. True when the SYNCs that were asked for by its beginning have been begun. */
static bool exits_hear(struct live *l, struct live_user *u)
{
    struct live_sync *sync;

    if (!conn_group_listen(l->config.conns, u->uid, &u->heard_at)) {
        return false;
    }
    /* A process may have ended before the loop handles the event of its handle, so the handles are asked. */
    struct live_process *some[POLLS];
    struct pollfd polls[POLLS];
    struct live_process *a;
    nfds_t n = 0;

    LIST_FOREACH(a, &l->processes, all)
    {
        if (a->uid != u->uid || a->dead || a->pidfd < 0) {
            continue;
        }
        some[n] = a;
        polls[n++] = (struct pollfd){.fd = a->pidfd, .events = POLLIN};
        if (n == POLLS) {
            exits_poll(l, some, polls, n);
            n = 0;
        }
    }
    exits_poll(l, some, polls, n);
    while ((sync = STAILQ_FIRST(&u->heard)) != NULL) {
        STAILQ_REMOVE_HEAD(&u->heard, next);
        sync_wait(l, u, sync);
    }
    return true;
}

/* Those that were asked for up to now wait for what has arrived up to now, which is read first. */
static bool exits_begin_hearing(struct live *l)
{
    struct live_user *u;
    bool any = false;

    TAILQ_FOREACH(u, &l->asking, next_asking)
    {
        if (STAILQ_EMPTY(&u->heard)) {
            STAILQ_CONCAT(&u->heard, &u->asked);
            u->heard_at = 0;
            any = true;
        }
    }
    return any;
}

void exits_on_sync(struct loop_task *task)
{
    struct live *l = container_of(task, struct live, sync_task);
    struct live_user *u = TAILQ_FIRST(&l->asking), *next;

    l->sync_posted = false;
    if (exits_begin_hearing(l)) {
        l->config.accept_waiting(l->config.context);
    }
    for (; u; u = next) {
        next = TAILQ_NEXT(u, next_asking);
        if (exits_hear(l, u) && STAILQ_EMPTY(&u->asked)) {
            sync_stop_asking(l, u);
        }
    }
    if (!TAILQ_EMPTY(&l->asking)) {
        sync_post(l);
    }
}
