/* The two queues of a client: bytes come in and are cut into frames, frames wait until they are sent. */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "lib/client.h"
#include "lib/executable.h"
#include "lib/profd_upload.h"
#include "proto/limits.h"

static void out_free(struct client_out *o)
{
    for (size_t i = 0; i < o->fd_count; i++) {
        close(o->fds[i]);
    }
    free(o->bytes);
    free(o);
}

static void in_free(struct client_in *in)
{
    if (in) {
        message_done(&in->message);
        free(in);
    }
}

void profd_client_free(struct profd_client *c)
{
    if (!c) {
        return;
    }
    for (struct client_out *o; (o = STAILQ_FIRST(&c->out)) != NULL;) {
        STAILQ_REMOVE_HEAD(&c->out, link);
        out_free(o);
    }
    for (struct client_in *in; (in = STAILQ_FIRST(&c->in)) != NULL;) {
        STAILQ_REMOVE_HEAD(&c->in, link);
        in_free(in);
    }
    in_free(c->taken);
    free(c->asked);
    free(c->payload);
    free(c);
}

/* Makes the client dead with that sentence; returns status. */
static enum profd_status fail(struct profd_client *c, enum profd_status status, const struct profd_error *why,
                              struct profd_error *e)
{
    if (c->state < CLIENT_CLOSED) {
        c->state = CLIENT_DEAD;
        c->failure = status;
        c->error = *why;
    }
    return profd_error_set(e, c->failure, "%s", c->error.sentence);
}

/* A tag that no unanswered request has: tags of the daemon's own questions may be echoed among them. */
static uint32_t tag_new(struct profd_client *c)
{
    for (bool used = true; used;) {
        c->tag = c->tag % 0x7fffffffu + 1;
        used = false;
        for (size_t i = 0; i < c->asked_count; i++) {
            used |= c->asked[i].tag == c->tag;
        }
    }
    return c->tag;
}

enum profd_status client_queue(struct profd_client *c, uint8_t *frame, size_t size, const int *fds, size_t fd_count,
                               uint32_t with, uint32_t *tag, struct profd_error *e)
{
    enum profd_status status = PROFD_OK;
    struct frame_header f;
    (void)frame_decode(frame, &f, NULL); /* our own header: filled in every case */
    const bool expect_answer = f.type != FRAME_DECLINE;
    struct profd_error dead = {""};
    struct client_out *o = NULL;
    if (c->state >= CLIENT_CLOSED) {
        status = fail(c, c->failure, &dead, e);
    } else if (size - FRAME_HEADER_SIZE > c->payload_max) {
        status = profd_error_set(e, PROFD_TOO_LARGE, "a message of %zu bytes; the limit of the daemon is %u",
                                 size - FRAME_HEADER_SIZE, c->payload_max);
    } else {
        o = calloc(1, sizeof *o);
        if (!o || (expect_answer && !LIST_GROW(c->asked, c->asked_count, c->asked_capacity))) {
            status = profd_error_set(e, PROFD_NO_MEMORY, "no memory to send a message");
        }
    }
    if (status != PROFD_OK) {
        free(o);
        free(frame);
        executable_close_fds(fds, fd_count);
        return status;
    }
    f.tag = with ? with : tag_new(c);
    frame_encode(&f, frame);
    *o = (struct client_out){.bytes = frame, .size = size, .fd_count = fd_count};
    for (size_t i = 0; i < fd_count; i++) {
        o->fds[i] = fds[i];
    }
    STAILQ_INSERT_TAIL(&c->out, o, link);
    c->out_bytes += size;
    if (expect_answer) {
        c->asked[c->asked_count++] = (struct client_asked){f.tag, f.type};
    }
    if (tag) {
        *tag = f.tag;
    }
    return PROFD_OK;
}

/* Encodes and queues with this tag, or a new one if it is 0. Descriptors are taken over in every case. */
static enum profd_status ask(struct profd_client *c, const struct message *m, const int *fds, size_t fd_count,
                             uint32_t with, uint32_t *tag, struct profd_error *e)
{
    uint8_t *frame = NULL;
    size_t size = 0;
    uint16_t flags = (uint16_t)(fd_count << FRAME_FLAG_FDS_SHIFT);
    enum profd_status status = message_encode(m, flags, 0, &frame, &size, e);
    if (status != PROFD_OK) {
        executable_close_fds(fds, fd_count);
        return status;
    }
    return client_queue(c, frame, size, fds, fd_count, with, tag, e);
}

enum profd_status profd_client_new(const char *name, struct profd_client **out, struct profd_error *e)
{
    struct profd_client *c = calloc(1, sizeof *c);
    FAIL_IF(!c, e, PROFD_NO_MEMORY, "no memory for a connection");
    STAILQ_INIT(&c->out);
    STAILQ_INIT(&c->in);
    c->in_flight_max = LIMIT_IN_FLIGHT;
    c->payload_max = LIMIT_FRAME_PAYLOAD;
    const struct message m = {.type = FRAME_HELLO,
                              .as.hello = {FRAME_VERSION, FRAME_VERSION, name ? name : "libprofd"}};
    enum profd_status status = ask(c, &m, NULL, 0, 0, NULL, e);
    if (status != PROFD_OK) {
        profd_client_free(c);
        return status;
    }
    *out = c;
    return PROFD_OK;
}

size_t client_queued(const struct profd_client *c)
{
    return c->out_bytes;
}

size_t profd_client_in_flight(const struct profd_client *c)
{
    return c->asked_count;
}

void profd_client_output(const struct profd_client *c, const void **bytes, size_t *n, int fds[2], size_t *fd_count)
{
    const struct client_out *o = STAILQ_FIRST(&c->out);
    *bytes = NULL;
    *n = *fd_count = 0;
    /* Until the version is agreed only HELLO goes out. */
    if (!o || c->state >= CLIENT_CLOSED || (c->state == CLIENT_GREETING && o->bytes[5] != FRAME_HELLO)) {
        return;
    }
    *bytes = o->bytes + o->done;
    *n = o->size - o->done;
    if (o->done == 0) {
        for (size_t i = 0; i < o->fd_count; i++) {
            fds[i] = o->fds[i];
        }
        *fd_count = o->fd_count;
    }
}

void profd_client_sent(struct profd_client *c, size_t n)
{
    struct client_out *o = STAILQ_FIRST(&c->out);
    if (!o || n == 0) {
        return;
    }
    for (size_t i = 0; i < o->fd_count; i++) { /* they went with the first byte */
        close(o->fds[i]);
    }
    o->fd_count = 0;
    size_t left = o->size - o->done;
    n = n < left ? n : left;
    o->done += n;
    c->out_bytes -= n;
    if (o->done == o->size) {
        STAILQ_REMOVE_HEAD(&c->out, link);
        out_free(o);
    }
}

/* --- what comes in: each type of frame has the moment when it may come --- */

/* Removes the first request with that tag and one of the types; false if there is none. */
static bool asked_take(struct profd_client *c, uint32_t tag, unsigned types, bool keep)
{
    for (size_t i = 0; i < c->asked_count; i++) {
        if (c->asked[i].tag == tag && (types & (1u << c->asked[i].type))) {
            if (!keep) {
                memmove(&c->asked[i], &c->asked[i + 1], (c->asked_count - i - 1) * sizeof c->asked[0]);
                c->asked_count--;
            }
            return true;
        }
    }
    return false;
}

/* The first answer of a connection, whatever its tag. */
static enum profd_status take_welcome(struct profd_client *c, const struct message_welcome *w, struct profd_error *why)
{
    if (c->state != CLIENT_GREETING) {
        return profd_error_set(why, PROFD_PROTOCOL, "the daemon sent WELCOME twice");
    }
    if (w->version != FRAME_VERSION) {
        return profd_error_set(why, PROFD_UNKNOWN_VERSION,
                               "the daemon chose protocol version %u; this client supports %u", w->version,
                               FRAME_VERSION);
    }
    if (w->payload_max > 0 && w->payload_max < c->payload_max) {
        c->payload_max = w->payload_max;
    }
    if (w->in_flight_max > 0 && w->in_flight_max < c->in_flight_max) {
        c->in_flight_max = w->in_flight_max;
    }
    c->run = w->run;
    c->refused = w->refused;
    c->claims = w->claims;
    memmove(c->asked, c->asked + 1, --c->asked_count * sizeof *c->asked); /* HELLO is always the first */
    c->state = CLIENT_OPEN;
    return PROFD_OK;
}

/* An answer must be one to a request. */
static enum profd_status frame_admit(struct profd_client *c, const struct frame_header *f, const struct message *m,
                                     struct profd_error *why)
{
    const unsigned replied = 1u << FRAME_QUERY | 1u << FRAME_ADMIN, hello = 1u << FRAME_HELLO;
    bool asked = true;
    switch (f->type) {
    case FRAME_WELCOME:
        return take_welcome(c, &m->as.welcome, why);
    case FRAME_ACK:
        asked = asked_take(c, f->tag, ~(replied | hello), false);
        if (asked && m->as.ack.run != 0) {
            c->run = m->as.ack.run;
            c->refused = m->as.ack.refused;
        }
        break;
    case FRAME_NACK: /* one without a tag is of the connection as a whole */
        asked = f->tag == 0 || c->state == CLIENT_GREETING || asked_take(c, f->tag, ~hello, false);
        break;
    case FRAME_REPLY:
        asked = asked_take(c, f->tag, replied, !(f->flags & FRAME_FLAG_LAST));
        break;
    default: /* WANT_OBJECT is a question of the daemon's own */
        break;
    }
    return asked ? PROFD_OK
                 : profd_error_set(why, PROFD_PROTOCOL, "unexpected %s from the daemon for tag %u",
                                   frame_type_name(f->type), f->tag);
}

static enum profd_status frame_open(const struct frame_header *f, const uint8_t *payload, size_t n, struct message *m,
                                    struct profd_error *why)
{
    if (!(f->flags & FRAME_FLAG_COMPRESSED)) {
        return message_decode(f->type, payload, n, m, why);
    }
    uint8_t *inflated;
    size_t size;
    enum profd_status status = frame_inflate(payload, n, LIMIT_FRAME_PAYLOAD, &inflated, &size, why);
    if (status == PROFD_OK) {
        status = message_decode(f->type, inflated, size, m, why);
        free(inflated);
    }
    return status;
}

/* Takes a whole frame; the payload stays the caller's. */
static enum profd_status frame_take(struct profd_client *c, const struct frame_header *f, const uint8_t *payload,
                                    size_t n, struct profd_error *e)
{
    static const uint8_t none[1];
    struct profd_error why = {""};
    const bool known = f->type == FRAME_WELCOME || f->type == FRAME_ACK || f->type == FRAME_NACK ||
                       f->type == FRAME_WANT_OBJECT || f->type == FRAME_REPLY;
    if (!known || (c->state == CLIENT_GREETING && f->type != FRAME_WELCOME && f->type != FRAME_NACK)) {
        profd_error_set(&why, PROFD_PROTOCOL, "the daemon sends %s %s", frame_type_name(f->type),
                        known ? "before WELCOME" : "to a client");
        return fail(c, PROFD_PROTOCOL, &why, e);
    }
    struct client_in *in = calloc(1, sizeof *in);
    if (!in) {
        profd_error_set(&why, PROFD_NO_MEMORY, "no memory for an answer");
        return fail(c, PROFD_NO_MEMORY, &why, e);
    }
    enum profd_status status = frame_open(f, payload ? payload : none, n, &in->message, &why);
    if (status == PROFD_OK) {
        status = frame_admit(c, f, &in->message, &why);
        if (status != PROFD_OK) {
            message_done(&in->message);
        }
    }
    if (status != PROFD_OK) {
        free(in);
        return fail(c, status, &why, e);
    }
    in->frame = *f;
    if (f->type == FRAME_NACK && c->state == CLIENT_GREETING) {
        in->frame.tag = 0;
    }
    STAILQ_INSERT_TAIL(&c->in, in, link);
    if (in->frame.type == FRAME_NACK && in->frame.tag == 0) { /* reported as an event; nothing more is sent or read */
        c->state = CLIENT_CLOSED;
        c->failure = profd_status_known(in->message.as.nack.status) && in->message.as.nack.status != PROFD_OK
                         ? (enum profd_status)in->message.as.nack.status
                         : PROFD_INTERNAL;
        profd_error_set(&c->error, c->failure, "%s", in->message.as.nack.sentence);
    }
    return PROFD_OK;
}

enum profd_status profd_client_feed(struct profd_client *c, const void *bytes, size_t n, struct profd_error *e)
{
    const uint8_t *p = bytes;
    struct profd_error why = {""};
    if (c->state == CLIENT_DEAD) {
        return fail(c, c->failure, &why, e);
    }
    in_free(c->taken);
    c->taken = NULL;
    while (n > 0 && c->state != CLIENT_CLOSED) {
        if (c->header_got < FRAME_HEADER_SIZE) {
            size_t left = FRAME_HEADER_SIZE - c->header_got;
            left = left < n ? left : n;
            memcpy(c->header + c->header_got, p, left);
            c->header_got += left;
            p += left;
            n -= left;
            if (c->header_got < FRAME_HEADER_SIZE) {
                return PROFD_OK;
            }
            enum profd_status status = frame_decode(c->header, &c->frame, &why);
            if (status == PROFD_OK && frame_fds(&c->frame) != 0) {
                status = profd_error_set(&why, PROFD_PROTOCOL, "the daemon sends descriptors with a %s",
                                         frame_type_name(c->frame.type));
            }
            if (status != PROFD_OK) {
                return fail(c, status, &why, e);
            }
            c->payload_got = 0;
        }
        size_t more = c->frame.length - c->payload_got;
        more = more < n ? more : n;
        if (more > 0) {
            size_t capacity = c->payload_capacity ? c->payload_capacity : 4096;
            while (capacity < c->payload_got + more) {
                capacity *= 2;
            }
            /* The payload's memory grows as its bytes arrive, so that a header alone takes none. */
            uint8_t *grown = capacity > c->payload_capacity ? realloc(c->payload, capacity) : c->payload;
            if (grown) {
                c->payload = grown;
                c->payload_capacity = capacity;
            } else {
                profd_error_set(&why, PROFD_NO_MEMORY, "no memory for a message of %u bytes", c->frame.length);
                return fail(c, PROFD_NO_MEMORY, &why, e);
            }
            memcpy(c->payload + c->payload_got, p, more);
            c->payload_got += more;
            p += more;
            n -= more;
        }
        if (c->payload_got == c->frame.length) {
            c->header_got = 0;
            TRY(frame_take(c, &c->frame, c->payload, c->payload_got, e));
        }
    }
    return PROFD_OK;
}

bool profd_client_next(struct profd_client *c, struct profd_event *event)
{
    struct client_in *in = STAILQ_FIRST(&c->in);
    if (!in) {
        return false;
    }
    STAILQ_REMOVE_HEAD(&c->in, link);
    in_free(c->taken);
    c->taken = in;
    const struct message *m = &in->message;
    *event = (struct profd_event){
        .tag = in->frame.tag, .sentence = "", .build_id = "", .name = "", .content_type = "", .etag = "", .body = ""};
    switch (m->type) {
    case FRAME_WELCOME:
        event->kind = PROFD_EVENT_READY;
        event->name = m->as.welcome.daemon;
        break;
    case FRAME_ACK:
        event->kind = PROFD_EVENT_ACK;
        event->duplicate = m->as.ack.duplicate;
        break;
    case FRAME_NACK:
        event->kind = in->frame.tag == 0 ? PROFD_EVENT_CLOSED : PROFD_EVENT_NACK;
        /* A code of a later version: what matters is whether to retry, and the sentence. */
        event->status = profd_status_known(m->as.nack.status) && m->as.nack.status != PROFD_OK
                            ? (enum profd_status)m->as.nack.status
                            : PROFD_INTERNAL;
        event->retry = m->as.nack.retry;
        event->retry_after_ms = m->as.nack.retry_after_ms;
        event->sentence = m->as.nack.sentence;
        break;
    case FRAME_WANT_OBJECT:
        event->kind = PROFD_EVENT_WANT_OBJECT;
        event->build_id = m->as.want_object.build_id;
        event->name = m->as.want_object.name;
        break;
    default: /* frame_take lets nothing else in */
        event->kind = PROFD_EVENT_REPLY;
        event->http_status = (int)m->as.reply.http_status;
        event->content_type = m->as.reply.content_type;
        event->etag = m->as.reply.etag;
        event->body = m->as.reply.body.data;
        event->body_size = m->as.reply.body.size;
        event->done = m->as.reply.done;
        event->total = m->as.reply.total;
        event->last = (in->frame.flags & FRAME_FLAG_LAST) != 0;
        break;
    }
    return true;
}

/* What a client says: one function a message. */

enum profd_status profd_client_send_upload(struct profd_client *c, const struct profd_upload *u,
                                           const struct profd_id *id, uint32_t *tag, struct profd_error *e)
{
    uint8_t *frame;
    size_t size;
    TRY(upload_encode(u, id, &frame, &size, e));
    return client_queue(c, frame, size, NULL, 0, 0, tag, e);
}

enum profd_status profd_client_send_query(struct profd_client *c, const char *target, const char *if_none_match,
                                          uint32_t *tag, struct profd_error *e)
{
    size_t n = strlen(target);
    FAIL_IF(target[0] != '/' || n > LIMIT_QUERY_BYTES, e, PROFD_BAD_QUERY,
            "a query of %zu bytes: it must begin with / and have at most %u", n, LIMIT_QUERY_BYTES);
    const struct message m = {.type = FRAME_QUERY, .as.query = {target, if_none_match ? if_none_match : ""}};
    return ask(c, &m, NULL, 0, 0, tag, e);
}

enum profd_status profd_client_send_admin(struct profd_client *c, const char *verb, const char *const *arguments,
                                          size_t n, uint32_t *tag, struct profd_error *e)
{
    FAIL_IF(n > LIMIT_ADMIN_ARGUMENTS, e, PROFD_USAGE, "%s with %zu arguments, at most %u", verb, n,
            LIMIT_ADMIN_ARGUMENTS);
    const struct message m = {.type = FRAME_ADMIN, .as.admin = {verb, n, arguments}};
    return ask(c, &m, NULL, 0, 0, tag, e);
}

enum profd_status client_send_files(struct profd_client *c, const struct profd_event *want,
                                    const struct message_object *object, const int *fds, size_t fd_count, uint32_t *tag,
                                    struct profd_error *e)
{
    struct message m = {.type = FRAME_OBJECT, .as.object = *object};
    m.as.object.build_id = want ? want->build_id : "";
    return ask(c, &m, fds, fd_count, want ? want->tag : 0, tag, e);
}

enum profd_status profd_client_send_object(struct profd_client *c, const struct profd_event *want,
                                           const struct profd_executable *x, uint32_t *tag, struct profd_error *e)
{
    int fds[2];
    size_t fd_count = 0;
    TRY(executable_dup_fds(x, fds, &fd_count, e));
    const struct message_object m = {.name = x->path, .code = x->code};
    return client_send_files(c, want, &m, fds, fd_count, tag, e);
}

enum profd_status profd_client_send_decline(struct profd_client *c, const struct profd_event *want, const char *reason,
                                            struct profd_error *e)
{
    const struct message m = {.type = FRAME_DECLINE, .as.decline = {want->build_id, reason}};
    return ask(c, &m, NULL, 0, want->tag, NULL, e);
}

enum profd_status profd_client_send_sync(struct profd_client *c, uint32_t *tag, struct profd_error *e)
{
    return ask(c, &(struct message){.type = FRAME_SYNC}, NULL, 0, 0, tag, e);
}
