/* What becomes of a frame: greeting, or its handler. */
#include <string.h>

#include "net/conn_internal.h"

#define HELLO_MAX 4096

static const struct conn_handler *conn_find_handler(const struct conn *c)
{
    static const struct conn_handler hello = {.type = FRAME_HELLO};
    const struct conn_config *config = &c->group->config;

    if (c->state == CONN_GREETING) {
        return c->frame.type == FRAME_HELLO ? &hello : NULL;
    }
    for (size_t i = 0; i < config->handler_count; i++) {
        if (config->handlers[i].type == c->frame.type) {
            return &config->handlers[i];
        }
    }
    return NULL;
}

/* Why a frame cannot be taken, before memory is: in a sentence of its own for each rule. */
static enum profd_status conn_judge_header(const struct conn *c, struct profd_error *e)
{
    const struct conn_handler *h = conn_find_handler(c);
    const char *name = frame_type_name(c->frame.type);
    const unsigned fds = frame_fds(&c->frame);

    if (c->state == CONN_GREETING && !h) {
        return profd_error_set(e, PROFD_PROTOCOL, "%s before HELLO", name ? name : "something");
    }
    if (c->state == CONN_OPEN && c->frame.type == FRAME_HELLO) {
        return profd_error_set(e, PROFD_PROTOCOL, "a second HELLO");
    }
    if (!h) {
        return profd_error_set(e, PROFD_UNKNOWN_TYPE, "this daemon does not accept %s", name ? name : "such frames");
    }
    if (fds < h->fds_min || fds > h->fds_max) {
        return profd_error_set(e, PROFD_PROTOCOL, "%s has %u descriptors, it must have %u to %u", name, fds, h->fds_min,
                               h->fds_max);
    }
    if (c->state == CONN_GREETING && c->frame.length > HELLO_MAX) {
        return profd_error_set(e, PROFD_TOO_LARGE, "a HELLO of %u bytes, at most %d", c->frame.length, HELLO_MAX);
    }
    return PROFD_OK;
}

void conn_take_header(struct conn *c)
{
    struct profd_error e = {""};
    enum profd_status status = frame_decode(c->header, &c->frame, &e);

    /* The first bytes of an untrusted client may be anything: the error states what was expected. */
    if (status && c->state == CONN_GREETING && status != PROFD_UNKNOWN_VERSION) {
        profd_error_wrap(&e, status, "the first frame is not a HELLO");
    }
    if (!status) {
        status = conn_judge_header(c, &e);
    }
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
    if (status) {
        message_done(&in);
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
    message_done(&in);
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

/* Frame and descriptors out of the connection, which is then ready for the next header. */
static enum profd_status conn_take_parts(struct conn *c, struct conn_frame *f, struct profd_error *e)
{
    const unsigned n = frame_fds(&c->frame);

    f->header = c->frame;
    f->body = c->body;
    c->body = (struct conn_body){0};
    c->body_ready = false;
    c->header_got = c->body_got = 0;
    conn_set_read_deadline(c, 0);
    if (c->fd_count < n) {
        return profd_error_set(e, PROFD_PROTOCOL, "the frame announced %u descriptors, %u were received", n,
                               c->fd_count);
    }
    memcpy(f->fds, c->fds, n * sizeof *f->fds);
    f->fd_count = n;
    c->fd_count -= n;
    memmove(c->fds, c->fds + n, c->fd_count * sizeof *c->fds);
    return PROFD_OK;
}

void conn_take_frame(struct conn *c)
{
    const struct conn_handler *h = conn_find_handler(c);
    const bool greeting = c->state == CONN_GREETING;
    struct conn_frame f = {.fd_count = 0};
    struct profd_error e = {""};
    enum profd_status status = conn_take_parts(c, &f, &e);

    if (status) {
        conn_fail(c, f.header.tag, status, e.sentence);
    } else if (greeting) {
        conn_greet(c, &f);
    } else {
        conn_prove(c);
    }
    /* Unread answers brake a living peer; after a hang-up there are none, and new ones have no reader. */
    if (!status && !greeting && !(h->answer_only && conn_is_deaf(c))) {
        if (h->answered) {
            c->in_flight++;
        }
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
