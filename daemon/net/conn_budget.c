/* Memory for bodies: a budget for all connections. One user may hold half of it, so that incomplete frames of one user
 * do not block others. Small bodies may use the last eighth; large ones wait for the rest. If large bodies fill a
 * user's half, the user's small bodies get an eighth more, so that a blocked client of the same user cannot prevent a
 * HELLO. */
#include <stdlib.h>

#include "net/conn_internal.h"
#include "net/loop.h"

static bool conn_budget_fits(const struct conn *c)
{
    const struct conn_group *g = c->group;
    const bool large = c->frame.length > LIMIT_FRAME_SMALL;
    const size_t n = c->frame.length, all = large ? g->config.budget / 8 * 7 : g->config.budget;
    const size_t own = g->config.budget / 8 * (large ? 4 : 5);

    /* A body above the limits of an empty budget is let through alone: waiting would never end. */
    if (!g->bodies) {
        return true;
    }
    return n <= all && g->bodies <= all - n && (!c->tally->bytes || (n <= own && c->tally->bytes <= own - n));
}

/* Gives the memory and starts the body's deadline. */
static void conn_budget_give(struct conn *c)
{
    struct conn_group *g = c->group;
    const size_t n = c->frame.length;

    c->body.data = malloc(n ? n : 1);
    if (!c->body.data) {
        conn_fail(c, c->frame.tag, PROFD_NO_MEMORY, "no memory for the frame's body");
        return;
    }
    c->body.size = c->body.charge = n;
    c->body.uid = c->peer.uid;
    c->tally->bytes += n;
    g->bodies += n;
    c->body_got = 0;
    c->body_ready = true;
    /* HELLO has a deadline of its own that its frame must not extend, unless it had to wait. */
    if (c->state != CONN_GREETING) {
        conn_set_read_deadline(c, loop_now() + g->config.body_ms + n * 1000u / g->config.body_rate);
    } else if (!c->read_deadline) {
        conn_set_read_deadline(c, loop_now() + g->config.hello_ms);
    }
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
    if (conn_budget_fits(c)) {
        conn_budget_give(c);
        return;
    }
    conn_set_read_deadline(c, 0);
    c->waiting = true;
    TAILQ_INSERT_TAIL(&c->group->waiting, c, wait_next);
}

/* Admits the waiting bodies that fit now, in the order of arrival. */
static void conn_budget_serve(struct conn_group *g)
{
    struct conn *c = TAILQ_FIRST(&g->waiting), *next;

    for (; c; c = next) {
        next = TAILQ_NEXT(c, wait_next);
        if (!conn_budget_fits(c)) {
            continue;
        }
        conn_budget_leave(c);
        conn_budget_give(c);
        conn_touch(c);
    }
}

void conn_body_free(struct conn_group *g, struct conn_body *body)
{
    struct tally_entry *tally;

    if (!body->data) {
        return;
    }
    free(body->data);
    g->bodies -= body->charge;
    tally = tally_open(&g->tally, body->uid); /* exists: it holds these bytes */
    if (tally) {
        tally->bytes -= body->charge;
        tally_release(&g->tally, tally);
    }
    *body = (struct conn_body){0};
    if (!TAILQ_EMPTY(&g->waiting) && !g->draining) {
        conn_budget_serve(g);
    }
}
