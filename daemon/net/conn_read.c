/* From bytes to frames. One scratch block serves all connections: what is kept of a connection that says nothing
 * is its struct, of one in the middle of a frame that frame. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include "net/closer.h"
#include "net/conn_internal.h"
#include "net/loop.h"

bool conn_may_read(const struct conn *c)
{
    return (c->state == CONN_GREETING || c->state == CONN_OPEN) && !c->failed && !c->broken && !c->waiting &&
           !c->crowded && !c->postponed && c->in_flight < c->group->config.in_flight_max &&
           c->output_bytes + c->source_bytes < c->group->config.output_high;
}

static size_t conn_feed_header(struct conn *c, const uint8_t *bytes, size_t n)
{
    size_t want = FRAME_HEADER_SIZE - c->header_got;

    if (want > n) {
        want = n;
    }
    if (!c->header_got && c->state == CONN_OPEN) {
        conn_set_read_deadline(c, loop_now() + c->group->config.header_ms);
    }
    memcpy(c->header + c->header_got, bytes, want);
    c->header_got += want;
    if (c->header_got == FRAME_HEADER_SIZE) {
        conn_take_header(c);
    }
    return want;
}

static size_t conn_feed_body(struct conn *c, const uint8_t *bytes, size_t n)
{
    size_t want = c->body.size - c->body_got;

    if (want > n) {
        want = n;
    }
    memcpy(c->body.data + c->body_got, bytes, want);
    c->body_got += want;
    return want;
}

/* Looks at bytes until they or the permission to look end. Returns how many were used. */
static size_t conn_feed(struct conn *c, const uint8_t *bytes, size_t n)
{
    size_t used = 0;

    /* A frame without a body is whole with its header: one more round when no byte is left. */
    while (conn_may_read(c) && (used < n || c->body_ready)) {
        if (c->body_ready) {
            used += conn_feed_body(c, bytes + used, n - used);
        } else {
            used += conn_feed_header(c, bytes + used, n - used);
        }
        if (c->body_ready && c->body_got == c->body.size) {
            conn_take_frame(c);
        } else if (used == n) {
            break;
        }
    }
    return used;
}

/* Keeps what may not be looked at yet. */
static void conn_hold(struct conn *c, const uint8_t *bytes, size_t n)
{
    c->held = malloc(n);
    if (!c->held) {
        conn_fail(c, 0, PROFD_NO_MEMORY, "no memory for bytes that were read");
        return;
    }
    memcpy(c->held, bytes, n);
    c->held_size = n;
    c->held_at = 0;
}

static void conn_check_fds(struct conn *c)
{
    struct profd_error e;

    if (c->held || c->failed || c->broken || c->waiting || c->state == CONN_DRAINING) {
        return;
    }
    if (conn_fds_check(c, &e)) {
        conn_fail(c, c->header_got == FRAME_HEADER_SIZE ? c->frame.tag : 0, PROFD_PROTOCOL, e.sentence);
    }
}

void conn_read_held(struct conn *c)
{
    c->asked = false;
    c->held_at += conn_feed(c, c->held + c->held_at, c->held_size - c->held_at);
    if (c->held_at == c->held_size || c->failed || c->broken) {
        free(c->held);
        c->held = NULL;
        conn_check_fds(c);
    }
}

static ssize_t conn_receive(struct conn *c, uint8_t *into, size_t most)
{
    union {
        struct cmsghdr align;
        char bytes[CMSG_SPACE(CLOSER_FDS_MAX * sizeof(int))];
    } control;
    struct iovec io = {.iov_base = into, .iov_len = most};
    struct msghdr m = {.msg_iov = &io, .msg_iovlen = 1, .msg_control = control.bytes, .msg_controllen = sizeof control};
    enum profd_status status = PROFD_OK;
    struct profd_error e;
    ssize_t n;

    do {
        n = recvmsg(c->fd, &m, MSG_CMSG_CLOEXEC | MSG_DONTWAIT);
    } while (n < 0 && errno == EINTR);
    if (n > 0) {
        status = conn_fds_take(c, &m, &e);
    }
    if (status) {
        conn_fail(c, 0, status, e.sentence);
        return -1;
    }
    if (n < 0 && errno != EAGAIN) {
        c->broken = true; /* reset by the peer */
    }
    return n;
}

void conn_read(struct conn *c)
{
    uint8_t *scratch = c->group->scratch, *into = scratch;
    size_t most = CONN_SCRATCH, used;
    ssize_t n;

    /* A large body is read straight to its place. */
    const bool straight = c->body_ready && c->body.size - c->body_got >= CONN_SCRATCH;
    if (straight) {
        into = c->body.data + c->body_got;
        most = c->body.size - c->body_got;
        if (most > 4 * (size_t)CONN_SCRATCH) {
            most = 4 * (size_t)CONN_SCRATCH;
        }
    }
    if (conn_fds_crowd(c)) {
        return;
    }
    c->asked = false;
    n = conn_receive(c, into, most);
    if (n < 0) {
        return;
    }
    if (!n) { /* the sender has finished, but may still read its answers */
        conn_set_read_deadline(c, 0);
        conn_move(c, c->state == CONN_GREETING ? CONN_CLOSED : CONN_DRAINING);
        return;
    }
    if (straight) {
        c->body_got += (size_t)n;
        if (c->body_got == c->body.size) {
            conn_take_frame(c);
        }
    } else {
        used = conn_feed(c, scratch, (size_t)n);
        if (used < (size_t)n && !c->failed && !c->broken && c->state != CONN_CLOSED) {
            conn_hold(c, scratch + used, (size_t)n - used);
        }
    }
    conn_check_fds(c);
}
