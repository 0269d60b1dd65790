/* The events of a connection: start, bytes to read or write, missed deadline, end. conn_leave settles it after each. */
#include <stdlib.h>

#include "net/closer.h"
#include "net/conn_internal.h"
#include "net/loop.h"

static bool conn_has_output(const struct conn *c)
{
    return !STAILQ_EMPTY(&c->outputs) || !STAILQ_EMPTY(&c->sources);
}

void conn_free(struct conn *c)
{
    struct conn_group *g = c->group;
    struct conn_slot *slot = &g->slots[(uint32_t)c->id];

    event_del(&c->read_event);
    event_del(&c->write_event);
    event_del(&c->timer_event);
    conn_prove(c);
    conn_share_leave(c);
    conn_budget_leave(c);
    conn_body_free(g, &c->body);
    conn_fds_close(c, c->fds, &c->fd_count);
    conn_output_clear(c);
    free(c->held);
    closer_close_connection(g->config.closer, c->peer.uid, c->fd);
    g->crowded -= c->crowded;
    if (c->user && g->config.closed) {
        g->config.closed(g->config.context, c->user);
    }
    slot->conn = NULL;
    slot->generation++;
    slot->next_free = g->slot_free;
    g->slot_free = (uint32_t)c->id + 1;
    g->counts.connections--;
    c->tally->connections--;
    tally_release(&g->tally, c->tally);
    free(c);
}

void conn_enter(struct conn *c)
{
    c->busy++;
}

static void conn_note_pause(struct conn *c, bool paused)
{
    if (paused && !c->paused_since) {
        c->paused_since = loop_now();
    } else if (!paused && c->paused_since) {
        const uint64_t pause = loop_now() - c->paused_since;

        c->paused_since = 0;
        if (c->read_deadline) {
            conn_set_read_deadline(c, c->read_deadline + pause);
        }
    }
}

/* Adds or removes an event. libevent does not add one that is activated and waits for its handler: it is deleted first.
 * Nothing is lost by that: the connection is settled just now, and what can be read makes it readable again. */
static void conn_arm_event(struct event *event, bool wanted, bool *armed)
{
    if (wanted != *armed) {
        event_del(event);
        if (wanted) {
            event_add(event, NULL);
        }
        *armed = wanted;
    }
}

static void conn_arm_events(struct conn *c)
{
    conn_arm_event(&c->read_event, conn_may_read(c) && !c->held, &c->reading);
    conn_arm_event(&c->write_event, conn_has_output(c), &c->writing);
}

void conn_leave(struct conn *c)
{
    if (c->busy > 1) {
        c->busy--;
        return;
    }
    if (c->gone) {
        (void)conn_is_deaf(c);
    }
    /* Answers go out before more is read; both may free what the other waits for. */
    if (conn_has_output(c)) {
        conn_write(c);
    }
    while (c->held && conn_may_read(c)) {
        conn_note_pause(c, false);
        conn_read_held(c);
        if (conn_has_output(c)) {
            conn_write(c);
        }
    }
    c->busy--;
    if (c->state == CONN_DRAINING && !c->in_flight && !conn_has_output(c)) {
        conn_move(c, CONN_CLOSED);
    }
    if (c->broken) {
        conn_move(c, CONN_CLOSED);
    }
    if (c->state == CONN_CLOSED) {
        conn_free(c);
        return;
    }
    conn_note_pause(c, !conn_may_read(c) && !c->failed);
    conn_arm_events(c);
}

static void conn_on_readable(evutil_socket_t fd, short what, void *context)
{
    struct conn *c = context;

    (void)fd;
    (void)what;
    conn_enter(c);
    if (conn_share_take(c) && conn_may_read(c) && !c->held) {
        conn_read(c);
    }
    conn_leave(c);
}

static void conn_on_writable(evutil_socket_t fd, short what, void *context)
{
    struct conn *c = context;

    (void)fd;
    (void)what;
    conn_enter(c); /* leaving writes */
    conn_leave(c);
}

static void conn_on_timer(evutil_socket_t fd, short what, void *context)
{
    struct conn *c = context;
    const uint64_t now = loop_now();
    struct profd_error e;

    (void)fd;
    (void)what;
    c->armed = 0;
    conn_enter(c);
    if (c->write_deadline && now >= c->write_deadline) {
        c->group->counts.failed++;
        c->broken = true; /* it does not even take the answer to earlier requests */
    } else if (c->read_deadline && now >= c->read_deadline && !c->paused_since) {
        c->read_deadline = 0;
        if (c->state == CONN_GREETING) {
            profd_error_set(&e, PROFD_TIMEOUT, "no HELLO within %u ms of connecting", c->group->config.hello_ms);
        } else if (c->header_got < FRAME_HEADER_SIZE) {
            profd_error_set(&e, PROFD_TIMEOUT, "a frame's header was not complete within %u ms",
                            c->group->config.header_ms);
        } else {
            profd_error_set(&e, PROFD_TIMEOUT, "%zu of the frame's %u bytes came in time (%u ms and 1 s per %zu bytes)",
                            c->body_got, c->frame.length, c->group->config.body_ms, c->group->config.body_rate);
        }
        conn_fail(c, c->header_got < FRAME_HEADER_SIZE ? 0 : c->frame.tag, PROFD_TIMEOUT, e.sentence);
    }
    conn_arm_timer(c);
    conn_leave(c);
}

void conn_start(struct conn *c)
{
    struct event_base *base = c->group->config.base;

    event_assign(&c->read_event, base, c->fd, EV_READ | EV_PERSIST, conn_on_readable, c);
    event_assign(&c->write_event, base, c->fd, EV_WRITE | EV_PERSIST, conn_on_writable, c);
    evtimer_assign(&c->timer_event, base, conn_on_timer, c);
    conn_set_read_deadline(c, loop_now() + c->group->config.hello_ms);
    conn_enter(c);
    conn_leave(c);
}
