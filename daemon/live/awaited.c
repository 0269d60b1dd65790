/* Processes of an earlier daemon that live and have not attached again. Their end, or that they run another program, is
 * known at once, so that reports do not say not-read of a process that will never be read. */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "live/live_internal.h"

void awaited_free(struct live_awaited *list)
{
    for (struct live_awaited *next; list; list = next) {
        next = list->next;
        watch_free(list->watch);
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

static void awaited_watch(struct live *l, struct live_awaited *w)
{
    const struct live_process *a = LIST_FIRST(&l->connected[w->origin.pid % LIVE_BUCKETS]);

    while (a && !awaited_is_later(a, w)) {
        a = LIST_NEXT(a, of_pid);
    }
    if (a) {
        table_note_refused(l, w->uid, w->instance);
    } else if (w->pidfd >= 0 && !table_find(l, w->uid, w->instance)) {
        w->watch = watch_new(l->config.loop, w->pidfd, awaited_on_end, l);
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
        awaited_watch(l, w);
    }
}
