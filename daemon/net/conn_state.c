/* State, deadlines and identity of a connection: what every other file of it uses. */
#include "net/conn_internal.h"
#include "net/loop.h"

/* Allowed moves as data: bit n of row m says that m → n is one. */
static const uint8_t conn_moves[] = {
    [CONN_GREETING] = 1u << CONN_OPEN | 1u << CONN_DRAINING | 1u << CONN_CLOSED,
    [CONN_OPEN] = 1u << CONN_DRAINING | 1u << CONN_CLOSED,
    [CONN_DRAINING] = 1u << CONN_CLOSED,
    [CONN_CLOSED] = 0,
};

bool conn_move(struct conn *c, enum conn_state state)
{
    if (!(conn_moves[c->state] & 1u << state)) {
        return false;
    }
    c->state = state;
    return true;
}

void conn_prove(struct conn *c)
{
    if (c->unproven) {
        c->unproven = false;
        TAILQ_REMOVE(&c->group->unproven, c, unproven_next);
    }
}

void conn_arm_timer(struct conn *c)
{
    /* The deadline of a sender is suspended while the daemon does not read. */
    uint64_t first = c->paused_since ? 0 : c->read_deadline, now;
    struct timeval tv;

    if (!first || (c->write_deadline && c->write_deadline < first)) {
        first = c->write_deadline;
    }
    /* A timer that fires early looks again: moving a deadline back costs nothing. */
    if (!first || (c->armed && c->armed <= first)) {
        return;
    }
    now = loop_now();
    tv.tv_sec = (time_t)(first > now ? (first - now) / 1000u : 0);
    tv.tv_usec = (suseconds_t)(first > now ? (first - now) % 1000u * 1000u : 0);
    c->armed = first;
    evtimer_add(&c->timer_event, &tv);
}

void conn_set_read_deadline(struct conn *c, uint64_t at)
{
    c->read_deadline = at;
    conn_arm_timer(c);
}

void conn_set_write_deadline(struct conn *c, uint64_t at)
{
    c->write_deadline = at;
    conn_arm_timer(c);
}

conn_id conn_get_id(const struct conn *c)
{
    return c->id;
}

const struct peer *conn_get_peer(const struct conn *c)
{
    return &c->peer;
}

void *conn_get_user(const struct conn *c)
{
    return c->user;
}

enum peer_process conn_open_process(const struct conn *c, int *pidfd)
{
    return peer_open_process(c->fd, c->peer.pid, pidfd);
}
