/* Memory for bodies: a budget for all connections, of which one user may hold half, so that nobody's half-sent frames
 * keep others from delivering. Small bodies may use the last eighth, large ones wait for the rest; and small ones of a
 * user whose large ones fill his half get an eighth more, or his own hanging client would keep him from saying HELLO.
 */
#include <stdlib.h>

#include "net/conn_inside.h"
#include "net/loop.h"

static bool conn_budget_fits(const struct conn *c)
{
    const struct conn_group *g = c->group;
    const bool large = c->frame.length > LIMIT_FRAME_SMALL;
    const size_t n = c->frame.length, all = large ? g->config.budget / 8 * 7 : g->config.budget;
    const size_t own = g->config.budget / 8 * (large ? 4 : 5);

    /* A body above the limits of an empty budget is let through alone: waiting would never end. */
    if (!g->bodies)
        return true;
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
    if (c->state != CONN_GREETING)
        conn_set_read_deadline(c, loop_now() + g->config.body_ms + n * 1000u / g->config.body_rate);
    else if (!c->read_deadline)
        conn_set_read_deadline(c, loop_now() + g->config.hello_ms);
}

static void conn_budget_unlink(struct conn *c)
{
    struct conn_group *g = c->group;

    if (c->wait_previous)
        c->wait_previous->wait_next = c->wait_next;
    else
        g->wait_first = c->wait_next;
    if (c->wait_next)
        c->wait_next->wait_previous = c->wait_previous;
    else
        g->wait_last = c->wait_previous;
    c->wait_next = c->wait_previous = NULL;
    c->waiting = false;
}

void conn_budget_leave(struct conn *c)
{
    if (c->waiting)
        conn_budget_unlink(c);
}

void conn_budget_ask(struct conn *c)
{
    struct conn_group *g = c->group;

    if (conn_budget_fits(c)) {
        conn_budget_give(c);
        return;
    }
    conn_set_read_deadline(c, 0);
    c->waiting = true;
    c->wait_previous = g->wait_last;
    if (g->wait_last)
        g->wait_last->wait_next = c;
    else
        g->wait_first = c;
    g->wait_last = c;
}

/* Lets in those that fit now, first come first served among those who may. */
static void conn_budget_serve(struct conn_group *g)
{
    struct conn *c = g->wait_first, *next;

    for (; c; c = next) {
        next = c->wait_next;
        if (!conn_budget_fits(c))
            continue;
        conn_budget_unlink(c);
        conn_budget_give(c);
        conn_touch(c);
    }
}

void conn_body_free(struct conn_group *g, struct conn_body *body)
{
    struct tally_entry *tally;

    if (!body->data)
        return;
    free(body->data);
    g->bodies -= body->charge;
    tally = tally_open(&g->tally, body->uid); /* exists: it holds these bytes */
    if (tally) {
        tally->bytes -= body->charge;
        tally_release(&g->tally, tally);
    }
    *body = (struct conn_body){0};
    if (g->wait_first && !g->draining)
        conn_budget_serve(g);
}
