#include <stdlib.h>

#include "net/closer.h"
#include "net/loop.h"
#include "net/net_internal.h"

/* What one user may hold of what all share: reads in a pass of the loop, memory for bodies, descriptors to be closed.
 */

#define CROWD_MS 10 /* between two looks whether descriptors were closed */

struct conn_user *conn_user_open(struct conn_group *g, uint32_t uid)
{
    const struct conn_user none = {.uid = uid};
    struct conn_user *user = hashmap_find(&g->users, &uid, sizeof uid);

    if (!user) {
        user = hashmap_put(&g->users, &uid, sizeof uid, &none, sizeof none);
        if (user) {
            TAILQ_INIT(&user->postponed);
        }
    }
    return user;
}

void conn_user_release(struct conn_group *g, struct conn_user *user)
{
    if (!user->connections && !user->bytes && !user->answers && !user->queued) {
        hashmap_remove(&g->users, user);
    }
}

/* --- Each user's share of the loop. Of the connections of one user at most LIMIT_READS_PER_UID are read before the
 * loop looks for other events again; further ones are postponed, and read in the order in which they became readable.
 * So a user with thousands of connections delays the frames of another user by a bounded number of its own. */

/* Counts reads of this user anew in each pass of the loop; the time that the loop has cached is that of a pass. */
static void conn_share_begin(struct conn_group *g, struct conn_user *user)
{
    struct timeval now = {0};

    (void)event_base_gettimeofday_cached(g->config.base, &now);
    if (now.tv_sec != user->pass.tv_sec || now.tv_usec != user->pass.tv_usec) {
        user->pass = now;
        user->reads = 0;
    }
}

static void conn_share_schedule(struct conn_group *g)
{
    const struct timeval now = {0};

    evtimer_add(&g->share_event, &now); /* in the next pass, after the events of other users */
}

bool conn_share_take(struct conn *c)
{
    struct conn_group *g = c->group;
    struct conn_user *user = c->owner;

    if (c->granted) {
        c->granted = false;
        return true;
    }
    conn_share_begin(g, user);
    if (TAILQ_EMPTY(&user->postponed) && user->reads < LIMIT_READS_PER_UID) {
        user->reads++;
        return true;
    }
    c->postponed = true;
    TAILQ_INSERT_TAIL(&user->postponed, c, postponed_next);
    if (!user->queued) {
        user->queued = true;
        TAILQ_INSERT_TAIL(&g->sharing, user, next);
        g->sharing_count++;
    }
    conn_share_schedule(g);
    return false;
}

void conn_share_leave(struct conn *c)
{
    if (c->postponed) {
        c->postponed = false;
        TAILQ_REMOVE(&c->owner->postponed, c, postponed_next);
    }
}

void conn_share_serve(evutil_socket_t fd, short what, void *group)
{
    struct conn_group *g = group;
    struct conn *c;

    (void)fd;
    (void)what;
    for (size_t n = g->sharing_count; n > 0; n--) {
        struct conn_user *user = TAILQ_FIRST(&g->sharing); /* it stays while it is queued */

        conn_share_begin(g, user);
        user->reads = 0; /* what is postponed is read before what is new; the handlers run later in this pass */
        while (user->reads < LIMIT_READS_PER_UID && (c = TAILQ_FIRST(&user->postponed)) != NULL) {
            user->reads++;
            conn_share_leave(c);
            c->granted = true;
            event_active(&c->read_event, EV_READ, 0);
        }
        TAILQ_REMOVE(&g->sharing, user, next);
        if (TAILQ_EMPTY(&user->postponed)) {
            user->queued = false;
            g->sharing_count--;
            conn_user_release(g, user);
        } else {
            TAILQ_INSERT_TAIL(&g->sharing, user, next);
        }
    }
    if (g->sharing_count) {
        conn_share_schedule(g);
    }
}

void conn_crowd_look_soon(struct conn_group *g)
{
    const struct timeval soon = {.tv_usec = CROWD_MS * 1000};

    evtimer_add(&g->crowd_event, &soon);
}

bool conn_crowd(struct conn *c)
{
    struct conn_group *g = c->group;
    const bool crowded = !g->urgent && closer_count(g->config.closer, c->peer.uid) >= LIMIT_CLOSING_PER_UID;

    if (crowded && !c->crowded && g->crowded++ == 0) {
        conn_crowd_look_soon(g);
    }
    if (!crowded && c->crowded) {
        g->crowded--;
    }
    c->crowded = crowded;
    return crowded;
}

/* --- Memory for bodies: a budget for all connections. One user may hold half of it, so that incomplete frames of one
 * user do not block others. Small bodies may use the last eighth; large ones wait for the rest. If large bodies fill a
 * user's half, the user's small bodies get an eighth more, so that a blocked client of the same user cannot prevent a
 * HELLO. */

/* Gives memory for the body if it fits the budget, and starts the body's deadline. */
static bool conn_budget_give(struct conn *c)
{
    struct conn_group *g = c->group;
    const size_t n = c->frame.length;
    const bool large = n > LIMIT_FRAME_SMALL;
    const size_t all = large ? g->config.budget / 8 * 7 : g->config.budget;
    const size_t own = g->config.budget / 8 * (large ? 4 : 5);

    /* A body above the limits of an empty budget is let through alone: waiting would never end. */
    if (g->bodies && (n > all || g->bodies > all - n || (c->owner->bytes && (n > own || c->owner->bytes > own - n)))) {
        return false;
    }
    c->body.data = malloc(n ? n : 1);
    if (!c->body.data) {
        conn_fail(c, c->frame.tag, PROFD_NO_MEMORY, "no memory for the frame's body");
        return true;
    }
    c->body.size = c->body.charge = n;
    c->body.uid = c->peer.uid;
    c->owner->bytes += n;
    g->bodies += n;
    c->body_got = 0;
    c->body_ready = true;
    /* HELLO has a deadline of its own that its frame must not extend, unless it had to wait. */
    if (c->state != CONN_GREETING) {
        conn_set_read_deadline(c, loop_now() + g->config.body_ms + n * 1000u / g->config.body_rate);
    } else if (!c->read_deadline) {
        conn_set_read_deadline(c, loop_now() + g->config.hello_ms);
    }
    return true;
}

void conn_budget_leave(struct conn *c)
{
    if (c->waiting) {
        TAILQ_REMOVE(&c->group->waiting, c, wait_next);
        c->waiting = false;
    }
}

void conn_budget_ask(struct conn *c)
{
    if (!conn_budget_give(c)) {
        conn_set_read_deadline(c, 0);
        c->waiting = true;
        TAILQ_INSERT_TAIL(&c->group->waiting, c, wait_next);
    }
}

void conn_body_free(struct conn_group *g, struct conn_body *body)
{
    struct conn *c, *next;

    if (!body->data) {
        return;
    }
    free(body->data);
    g->bodies -= body->charge;
    struct conn_user *user = conn_user_open(g, body->uid); /* exists: it holds these bytes */
    if (user) {
        user->bytes -= body->charge;
        conn_user_release(g, user);
    }
    *body = (struct conn_body){0};
    if (g->draining) {
        return;
    }
    /* Admits the waiting bodies that fit now, in the order of arrival. */
    for (c = TAILQ_FIRST(&g->waiting); c; c = next) {
        next = TAILQ_NEXT(c, wait_next);
        if (conn_budget_give(c)) {
            conn_budget_leave(c);
            conn_touch(c);
        }
    }
}

enum profd_status conn_judge_answers(const struct conn *c, struct profd_error *e)
{
    if (c->owner->answers <= c->group->config.answers_max_uid) {
        return PROFD_OK;
    }
    return profd_error_set(e, PROFD_BUSY, "user %u has %zu bytes of unread answers; the limit is %zu", c->peer.uid,
                           c->owner->answers, c->group->config.answers_max_uid);
}
