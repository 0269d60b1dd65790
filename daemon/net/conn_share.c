/* Each user's share of the loop. Of the connections of one user at most LIMIT_READS_PER_UID are read before the loop
 * looks for other events again; further ones are postponed, and read in the order in which they became readable. So a
 * user with thousands of connections delays the frames of another user by a bounded number of its own. */
#include "net/conn_internal.h"

/* Have reads of this user been counted in this pass of the loop? The time that the loop has cached is that of a pass.
 */
static void conn_share_begin(struct conn_group *g, struct tally_entry *t)
{
    struct timeval now = {0};

    (void)event_base_gettimeofday_cached(g->config.base, &now);
    if (now.tv_sec != t->pass.tv_sec || now.tv_usec != t->pass.tv_usec) {
        t->pass = now;
        t->reads = 0;
    }
}

static void conn_share_schedule(struct conn_group *g)
{
    const struct timeval now = {0};

    evtimer_add(&g->share_event, &now); /* in the next pass, after the events of other users */
}

static void conn_share_postpone(struct conn *c)
{
    struct conn_group *g = c->group;
    struct tally_entry *t = c->tally;

    c->postponed = true;
    TAILQ_INSERT_TAIL(&t->postponed, c, postponed_next);
    if (!t->queued) {
        t->queued = true;
        TAILQ_INSERT_TAIL(&g->sharing, t, next);
        g->sharing_count++;
    }
    conn_share_schedule(g);
}

bool conn_share_take(struct conn *c)
{
    struct tally_entry *t = c->tally;

    if (c->granted) {
        c->granted = false;
        return true;
    }
    conn_share_begin(c->group, t);
    if (TAILQ_EMPTY(&t->postponed) && t->reads < LIMIT_READS_PER_UID) {
        t->reads++;
        return true;
    }
    conn_share_postpone(c);
    return false;
}

void conn_share_leave(struct conn *c)
{
    if (c->postponed) {
        c->postponed = false;
        TAILQ_REMOVE(&c->tally->postponed, c, postponed_next);
    }
}

/* Their handlers run later in this pass. */
static void conn_share_grant(struct tally_entry *t)
{
    struct conn *c;

    while (t->reads < LIMIT_READS_PER_UID && (c = TAILQ_FIRST(&t->postponed)) != NULL) {
        t->reads++;
        conn_share_leave(c);
        c->granted = true;
        event_active(&c->read_event, EV_READ, 0);
    }
}

void conn_share_serve(evutil_socket_t fd, short what, void *group)
{
    struct conn_group *g = group;

    (void)fd;
    (void)what;
    for (size_t n = g->sharing_count; n > 0; n--) {
        struct tally_entry *t = TAILQ_FIRST(&g->sharing); /* it stays while it is queued */

        conn_share_begin(g, t);
        t->reads = 0; /* what is postponed is read before what is new */
        conn_share_grant(t);
        TAILQ_REMOVE(&g->sharing, t, next);
        if (TAILQ_EMPTY(&t->postponed)) {
            t->queued = false;
            g->sharing_count--;
            tally_release(&g->tally, t);
        } else {
            TAILQ_INSERT_TAIL(&g->sharing, t, next);
        }
    }
    if (g->sharing_count) {
        conn_share_schedule(g);
    }
}
