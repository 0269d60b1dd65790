/* SYNC and live processes: the counts of processes that have ended are durable before a SYNC is acknowledged, even if
 * the daemon has not yet been notified of their end or of their ATTACH. */
#include "live/live_internal.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

void awaited_free(struct live_awaited *list)
{
    for (struct live_awaited *next; list; list = next) {
        next = list->next;
        loop_watch_free(list->watch);
        if (list->pidfd >= 0) {
            close(list->pidfd);
        }
        free(list);
    }
}

/* The orphans are checked again: this one will be found to have ended. */
static void awaited_on_end(void *context)
{
    struct live *l = context;

    if (!l->stopping) {
        loop_timer_set(l->orphan_timer, 0);
    }
}

/* True if a is a later program of the same process. exec has unmapped the memory of the earlier one. */
static bool awaited_is_later(const struct live_process *a, const struct live_awaited *w)
{
    return a->uid == w->uid && a->origin.pid == w->origin.pid && a->origin.started == w->origin.started && a->conn &&
           memcmp(a->instance, w->instance, sizeof w->instance) != 0;
}

void awaited_end_earlier(struct live *l, const struct live_process *a)
{
    for (const struct live_awaited *w = l->awaited; w; w = w->next) {
        if (awaited_is_later(a, w)) {
            table_note_refused(l, w->uid, w->instance);
        }
    }
}

void awaited_set(struct live *l, struct live_awaited *list)
{
    awaited_free(l->awaited);
    l->awaited = list;
    l->awaited_count = 0;
    for (const struct live_awaited *w = list; w; w = w->next) {
        l->awaited_count += w->pidfd >= 0;
    }
    table_share(l);
    for (struct live_awaited *w = list; w && !l->stopping; w = w->next) {
        const struct live_process *a = LIST_FIRST(&l->connected[w->origin.pid % LIVE_BUCKETS]);

        while (a && !awaited_is_later(a, w)) {
            a = LIST_NEXT(a, of_pid);
        }
        if (a) {
            table_note_refused(l, w->uid, w->instance);
        } else if (w->pidfd >= 0 && !table_find(l, w->uid, w->instance)) {
            w->watch = loop_watch_new(l->config.loop, w->pidfd, awaited_on_end, l);
        }
    }
}

#define SYNCS_MAX 65536u /* that wait; then BUSY says so at once */

void sync_make_pending(struct live *l, struct live_process *a)
{
    struct live_user *u = a->user;

    if (a->pending) {
        return;
    }
    a->pending = ++l->sequence;
    a->next_pending = NULL;
    a->previous_pending = u->pending_last;
    if (u->pending_last) {
        u->pending_last->next_pending = a;
    } else {
        u->pending_first = a;
    }
    u->pending_last = a;
}

static void sync_grant(struct live *l, struct live_sync *sync, enum profd_status status)
{
    l->syncs--;
    sync->granted(sync, status);
}

/* Grants the user's SYNCs that wait for nothing any more, or all if they have failed. */
static void sync_grant_all(struct live *l, struct live_user *u, bool failed)
{
    struct live_sync *sync;

    while ((sync = STAILQ_FIRST(&u->syncs)) != NULL &&
           (failed || !u->pending_first || u->pending_first->pending > sync->sequence)) {
        STAILQ_REMOVE_HEAD(&u->syncs, next);
        sync_grant(l, sync, failed ? PROFD_IO : PROFD_OK);
    }
}

void sync_clear_pending(struct live *l, struct live_process *a)
{
    struct live_user *u = a->user;

    if (!a->pending) {
        return;
    }
    a->pending = 0;
    if (a->previous_pending) {
        a->previous_pending->next_pending = a->next_pending;
    } else {
        u->pending_first = a->next_pending;
    }
    if (a->next_pending) {
        a->next_pending->previous_pending = a->previous_pending;
    } else {
        u->pending_last = a->previous_pending;
    }
    a->next_pending = a->previous_pending = NULL;
    sync_grant_all(l, u, false);
}

void sync_wait(struct live *l, struct live_user *u, struct live_sync *sync)
{
    if (!u->pending_first || writer_check(l->config.writer, NULL)) {
        sync_grant(l, sync, u->pending_first ? PROFD_IO : PROFD_OK);
        return;
    }
    sync->sequence = l->sequence;
    STAILQ_INSERT_TAIL(&u->syncs, sync, next);
}

void sync_post(struct live *l)
{
    if (!l->sync_posted) {
        loop_post(l->config.loop, &l->sync_task);
    }
    l->sync_posted = true;
}

void sync_stop_asking(struct live *l, struct live_user *u)
{
    u->asking = false;
    TAILQ_REMOVE(&l->asking, u, next_asking);
    table_close_user(l, u);
}

enum profd_status live_sync(struct live *l, struct live_sync *sync, struct profd_error *e)
{
    struct live_user *u;

    FAIL_IF(l->syncs >= SYNCS_MAX, e, PROFD_BUSY, "%zu SYNC requests wait; the limit is %u", l->syncs, SYNCS_MAX);
    u = table_open_user(l, sync->uid);
    FAIL_IF(!u, e, PROFD_NO_MEMORY, "no memory for a SYNC");
    l->syncs++;
    STAILQ_INSERT_TAIL(&u->asked, sync, next);
    if (!u->asking) {
        u->asking = true;
        TAILQ_INSERT_TAIL(&l->asking, u, next_asking);
    }
    sync_post(l);
    return PROFD_OK;
}

void live_count_refused(struct live *l, const uint32_t *uid)
{
    struct live_user *u = uid ? table_open_user(l, *uid) : NULL;

    if (u) {
        u->refused_count++;
    } else {
        l->refused_count++;
    }
}

void live_tell(const struct live *l, uint32_t uid, uint64_t *run, uint64_t *refused)
{
    const struct live_user *u = table_find_user(l, uid);

    *run = l->config.run;
    *refused = l->refused_count + (u ? u->refused_count : 0);
}

void live_fail_syncs(struct live *l)
{
    for (size_t i = 0; i < LIVE_BUCKETS; i++) {
        for (struct live_user *u = l->users[i]; u; u = u->next) {
            sync_grant_all(l, u, true);
        }
    }
}

static void sync_end_list(struct live *l, struct live_syncs *list)
{
    struct live_sync *sync;

    while ((sync = STAILQ_FIRST(list)) != NULL) {
        STAILQ_REMOVE_HEAD(list, next);
        sync_grant(l, sync, PROFD_STOPPING);
    }
}

void sync_end(struct live *l)
{
    for (size_t i = 0; i < LIVE_BUCKETS; i++) {
        for (struct live_user *u = l->users[i]; u; u = u->next) {
            sync_end_list(l, &u->syncs);
            sync_end_list(l, &u->heard);
            sync_end_list(l, &u->asked);
        }
    }
}
