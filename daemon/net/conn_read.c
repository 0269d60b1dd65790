#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include "net/closer.h"
#include "net/loop.h"
#include "net/net_internal.h"

/* From bytes to a frame and its handler. One scratch block serves all connections: what is kept of a connection that
 * says nothing is its struct, of one in the middle of a frame that frame. */

#define HELLO_MAX 4096

bool conn_may_read(const struct conn *c)
{
    return (c->state == CONN_GREETING || c->state == CONN_OPEN) && !c->failed && !c->broken && !c->waiting &&
           !c->crowded && !c->postponed && c->in_flight < c->group->config.in_flight_max &&
           c->output_bytes + c->source_bytes < c->group->config.output_high;
}

void conn_prove(struct conn *c)
{
    if (c->unproven) {
        c->unproven = false;
        TAILQ_REMOVE(&c->group->unproven, c, unproven_next);
    }
}

/* Why a frame cannot be taken, before memory is: in a sentence of its own for each rule. Finds its handler. */
static enum profd_status conn_judge_header(struct conn *c, struct profd_error *e)
{
    const struct conn_config *config = &c->group->config;
    const char *name = frame_type_name(c->frame.type);
    const unsigned fds = frame_fds(&c->frame);
    unsigned fds_min = 0, fds_max = 0;

    c->handler = NULL;
    if (c->state == CONN_GREETING) {
        FAIL_IF(c->frame.type != FRAME_HELLO, e, PROFD_PROTOCOL, "%s before HELLO", name ? name : "something");
    } else {
        FAIL_IF(c->frame.type == FRAME_HELLO, e, PROFD_PROTOCOL, "a second HELLO");
        for (size_t i = 0; i < config->handler_count && !c->handler; i++) {
            c->handler = config->handlers[i].type == c->frame.type ? &config->handlers[i] : NULL;
        }
        FAIL_IF(!c->handler, e, PROFD_UNKNOWN_TYPE, "this daemon does not accept %s", name ? name : "such frames");
        fds_min = c->handler->fds_min;
        fds_max = c->handler->fds_max;
    }
    FAIL_IF(fds < fds_min || fds > fds_max, e, PROFD_PROTOCOL, "%s has %u descriptors, it must have %u to %u", name,
            fds, fds_min, fds_max);
    FAIL_IF(!c->handler && c->frame.length > HELLO_MAX, e, PROFD_TOO_LARGE, "a HELLO of %u bytes, at most %d",
            c->frame.length, HELLO_MAX);
    return PROFD_OK;
}

static void conn_take_header(struct conn *c)
{
    struct profd_error e = {""};
    enum profd_status status = frame_decode(c->header, &c->frame, &e);

    /* The first bytes of an untrusted client may be anything: the error states what was expected. */
    if (status && c->state == CONN_GREETING && status != PROFD_UNKNOWN_VERSION) {
        profd_error_wrap(&e, status, "the first frame is not a HELLO");
    }
    status = status ? status : conn_judge_header(c, &e);
    if (status) {
        conn_fail(c, c->frame.tag, status, e.sentence);
        return;
    }
    c->group->counts.frames++;
    conn_budget_ask(c);
}

static void conn_greet(struct conn *c, const struct conn_frame *f)
{
    const struct conn_config *config = &c->group->config;
    struct message in = {0}, out = {.type = FRAME_WELCOME};
    struct profd_error e = {""};
    enum profd_status status;

    if (f->header.flags & FRAME_FLAG_COMPRESSED) {
        status = profd_error_set(&e, PROFD_PROTOCOL, "a HELLO must not be compressed");
    } else {
        status = message_decode(FRAME_HELLO, f->body.data, f->body.size, &in, &e);
    }
    if (!status && (in.as.hello.version_oldest > FRAME_VERSION || in.as.hello.version_newest < FRAME_VERSION ||
                    in.as.hello.version_oldest > in.as.hello.version_newest)) {
        status = profd_error_set(&e, PROFD_UNKNOWN_VERSION, "the client speaks versions %u to %u, the daemon %d",
                                 in.as.hello.version_oldest, in.as.hello.version_newest, FRAME_VERSION);
    }
    message_done(&in);
    if (status) {
        conn_fail(c, f->header.tag, status, e.sentence);
        return;
    }
    out.as.welcome.version = FRAME_VERSION;
    out.as.welcome.payload_max = LIMIT_FRAME_PAYLOAD;
    out.as.welcome.in_flight_max = (uint32_t)config->in_flight_max;
    out.as.welcome.daemon = config->daemon;
    out.as.welcome.claims = c->peer.may_claim;
    if (config->welcome) {
        config->welcome(config->context, c, &out.as.welcome);
    }
    if (config->opened) {
        c->user = config->opened(config->context, c);
        if (!c->user) {
            conn_fail(c, f->header.tag, PROFD_NO_MEMORY, "no memory for the connection");
            return;
        }
    }
    conn_move(c, CONN_OPEN);
    conn_send(c, &out, 0, f->header.tag);
}

/* The frame is whole: the connection is ready for the next header, and the handler runs. */
static void conn_take_frame(struct conn *c)
{
    const struct conn_handler *h = c->handler;
    const unsigned n = frame_fds(&c->frame);
    struct conn_frame f = {.header = c->frame, .body = c->body};
    struct profd_error e = {""};
    enum profd_status status;

    c->body = (struct conn_body){0};
    c->body_ready = false;
    c->header_got = c->body_got = 0;
    conn_set_read_deadline(c, 0);
    if (c->fd_count < n) {
        profd_error_set(&e, PROFD_PROTOCOL, "the frame announced %u descriptors, %u were received", n, c->fd_count);
        conn_fail(c, f.header.tag, PROFD_PROTOCOL, e.sentence);
        conn_body_free(c->group, &f.body);
        return;
    }
    memcpy(f.fds, c->fds, n * sizeof *f.fds);
    f.fd_count = n;
    c->fd_count -= n;
    memmove(c->fds, c->fds + n, c->fd_count * sizeof *c->fds);
    if (!h) {
        conn_greet(c, &f);
    } else {
        conn_prove(c);
    }
    /* Unread answers brake a living peer; after a hang-up there are none, and new ones have no reader. */
    if (h && !(h->answer_only && conn_is_deaf(c))) {
        c->in_flight += h->answered;
        status = h->handle(h->context, c, &f, &e);
        if (status && h->answered) {
            conn_nack(c, f.header.tag, status, e.sentence, 100);
        } else if (status) {
            conn_fail(c, f.header.tag, status, e.sentence);
        }
        if (h->answer_only && c->in_flight) {
            conn_hangup_watch(c->group);
        }
    }
    conn_body_free(c->group, &f.body);
    conn_fds_close(c, f.fds, &f.fd_count);
}

void conn_frame_take_body(struct conn_frame *f, struct conn_body *body)
{
    *body = f->body;
    f->body = (struct conn_body){0};
}

int conn_frame_take_fd(struct conn_frame *f, unsigned i)
{
    int fd = -1;

    if (i < f->fd_count) {
        fd = f->fds[i];
        f->fds[i] = -1;
    }
    return fd;
}

/* Looks at bytes until they or the permission to look end. Returns how many were used. */
static size_t conn_feed(struct conn *c, const uint8_t *bytes, size_t n)
{
    size_t used = 0;

    /* A frame without a body is whole with its header: one more round when no byte is left. */
    while (conn_may_read(c) && (used < n || c->body_ready)) {
        const bool body = c->body_ready;
        uint8_t *into = body ? c->body.data + c->body_got : c->header + c->header_got;
        size_t want = body ? c->body.size - c->body_got : FRAME_HEADER_SIZE - c->header_got;

        want = want < n - used ? want : n - used;
        if (!body && !c->header_got && c->state == CONN_OPEN) {
            conn_set_read_deadline(c, loop_now() + c->group->config.header_ms);
        }
        memcpy(into, bytes + used, want);
        used += want;
        if (body) {
            c->body_got += want;
        } else {
            c->header_got += want;
        }
        if (!body && c->header_got == FRAME_HEADER_SIZE) {
            conn_take_header(c);
        }
        if (c->body_ready && c->body_got == c->body.size) {
            conn_take_frame(c);
        } else if (used == n) {
            break;
        }
    }
    return used;
}

/* Everything that was read has been looked at: every waiting descriptor must have a frame that it can belong to.
 * Descriptors that arrived belong to bytes that arrived: to the frame that has begun, if there is one. */
static void conn_check_fds(struct conn *c)
{
    const bool whole = c->header_got == FRAME_HEADER_SIZE;
    const unsigned allowed = whole ? frame_fds(&c->frame) : c->header_got ? LIMIT_FRAME_FDS : 0;
    struct profd_error e;

    if (c->held || c->failed || c->broken || c->waiting || c->state == CONN_DRAINING || c->fd_count <= allowed) {
        return;
    }
    profd_error_set(&e, PROFD_PROTOCOL, "%u descriptors were received that no frame announced", c->fd_count - allowed);
    conn_fail(c, whole ? c->frame.tag : 0, PROFD_PROTOCOL, e.sentence);
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

/* Appends the descriptors of one recvmsg to those that wait for their frame. recvmsg may return later descriptors
 * together with earlier bytes, never the reverse: they wait in order until their frame is complete.
 * PROTOCOL if there are too many, BUSY if the process has no free descriptors. */
static enum profd_status conn_take_fds(struct conn *c, struct msghdr *m, struct profd_error *e)
{
    bool fits = true;

    for (struct cmsghdr *h = CMSG_FIRSTHDR(m); h; h = CMSG_NXTHDR(m, h)) {
        const bool rights = h->cmsg_level == SOL_SOCKET && h->cmsg_type == SCM_RIGHTS;
        const size_t n = rights ? (h->cmsg_len - CMSG_LEN(0)) / sizeof(int) : 0;

        for (size_t i = 0; i < n; i++) {
            int fd;

            memcpy(&fd, CMSG_DATA(h) + i * sizeof fd, sizeof fd);
            if (c->fd_count < CONN_FDS_MAX) {
                c->fds[c->fd_count++] = fd;
                c->group->counts.descriptors++;
            } else {
                closer_close(c->group->config.closer, c->peer.uid, fd);
                fits = false;
            }
        }
    }
    FAIL_IF(m->msg_flags & MSG_CTRUNC, e, PROFD_BUSY, "the daemon has no free descriptors for those that were sent");
    return fits ? PROFD_OK
                : profd_error_set(e, PROFD_PROTOCOL, "more than %d descriptors wait for the frame they belong to",
                                  CONN_FDS_MAX);
}

void conn_read(struct conn *c)
{
    union {
        struct cmsghdr align;
        char bytes[CMSG_SPACE(CLOSER_FDS_MAX * sizeof(int))];
    } control;
    uint8_t *scratch = c->group->scratch;
    struct iovec io = {.iov_base = scratch, .iov_len = CONN_SCRATCH};
    struct msghdr m = {.msg_iov = &io, .msg_iovlen = 1, .msg_control = control.bytes, .msg_controllen = sizeof control};
    const size_t left = c->body_ready ? c->body.size - c->body_got : 0;
    const bool straight = left >= CONN_SCRATCH; /* a large body is read straight to its place */
    struct profd_error e;
    ssize_t n;

    if (conn_crowd(c)) {
        return;
    }
    if (straight) {
        io.iov_base = c->body.data + c->body_got;
        io.iov_len = left < 4 * (size_t)CONN_SCRATCH ? left : 4 * (size_t)CONN_SCRATCH;
    }
    c->asked = false;
    do {
        n = recvmsg(c->fd, &m, MSG_CMSG_CLOEXEC | MSG_DONTWAIT);
    } while (n < 0 && errno == EINTR);
    if (n < 0) {
        c->broken = c->broken || errno != EAGAIN; /* reset by the peer */
        return;
    }
    if (!n) { /* the sender has finished, but may still read its answers */
        conn_set_read_deadline(c, 0);
        conn_move(c, c->state == CONN_GREETING ? CONN_CLOSED : CONN_DRAINING);
        return;
    }
    enum profd_status status = conn_take_fds(c, &m, &e);
    if (status) {
        conn_fail(c, 0, status, e.sentence);
        return;
    }
    if (straight) {
        c->body_got += (size_t)n;
        if (c->body_got == c->body.size) {
            conn_take_frame(c);
        }
        conn_check_fds(c);
        return;
    }
    size_t used = conn_feed(c, scratch, (size_t)n);
    if (used < (size_t)n && !c->failed && !c->broken && c->state != CONN_CLOSED) { /* what may not be looked at yet */
        c->held_size = (size_t)n - used;
        c->held_at = 0;
        c->held = malloc(c->held_size);
        if (c->held) {
            memcpy(c->held, scratch + used, c->held_size);
        } else {
            conn_fail(c, 0, PROFD_NO_MEMORY, "no memory for bytes that were read");
        }
    }
    conn_check_fds(c);
}
