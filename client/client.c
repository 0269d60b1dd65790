/* The two queues of a client: bytes come in and are cut into frames, frames wait until they are sent. */
#include "client/client.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "proto/limits.h"

enum profd_status profd_client_new(const char *name, struct profd_client **out, struct profd_error *e)
{
    struct profd_client *c = calloc(1, sizeof *c);
    if (!c) {
        return profd_error_set(e, PROFD_NO_MEMORY, "no memory for a connection");
    }
    c->in_flight_max = LIMIT_IN_FLIGHT;
    c->payload_max = LIMIT_FRAME_PAYLOAD;
    struct message m = {.type = FRAME_HELLO};
    m.as.hello = (struct message_hello){FRAME_VERSION_OLDEST, FRAME_VERSION, name ? name : "libprofd"};
    uint8_t *frame;
    size_t size;
    uint32_t tag = 0;
    enum profd_status status = message_encode(&m, 0, 0, &frame, &size, e);
    if (status == PROFD_OK) {
        status = client_queue(c, frame, size, NULL, 0, &tag, true, e);
    }
    if (status != PROFD_OK) {
        profd_client_free(c);
        return status;
    }
    *out = c;
    return PROFD_OK;
}

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
    for (struct client_out *o = c->out_first, *next; o; o = next) {
        next = o->next;
        out_free(o);
    }
    for (struct client_in *in = c->in_first, *next; in; in = next) {
        next = in->next;
        in_free(in);
    }
    in_free(c->taken);
    free(c->asked);
    free(c->payload);
    free(c);
}

enum profd_status client_fail(struct profd_client *c, enum profd_status status, const struct profd_error *why,
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

static bool asked_reserve(struct profd_client *c)
{
    if (c->asked_count < c->asked_room) {
        return true;
    }
    size_t room = c->asked_room ? 2 * c->asked_room : 64;
    struct client_asked *grown = realloc(c->asked, room * sizeof *grown);
    if (grown) {
        c->asked = grown;
        c->asked_room = room;
    }
    return grown != NULL;
}

enum profd_status client_queue(struct profd_client *c, uint8_t *frame, size_t size, const int *fds, size_t fd_count,
                               uint32_t *tag, bool expect_answer, struct profd_error *e)
{
    enum profd_status status = PROFD_OK;
    struct profd_error dead = {""};
    struct client_out *o = NULL;
    if (c->state >= CLIENT_CLOSED) {
        status = client_fail(c, c->failure, &dead, e);
    } else if (size - FRAME_HEADER_SIZE > c->payload_max) {
        status = profd_error_set(e, PROFD_TOO_LARGE, "a message of %zu bytes; the daemon takes at most %u",
                                 size - FRAME_HEADER_SIZE, c->payload_max);
    } else {
        o = calloc(1, sizeof *o);
        if (!o || (expect_answer && !asked_reserve(c))) {
            status = profd_error_set(e, PROFD_NO_MEMORY, "no memory to send a message");
        }
    }
    if (status != PROFD_OK) {
        free(o);
        free(frame);
        for (size_t i = 0; i < fd_count; i++) {
            close(fds[i]);
        }
        return status;
    }
    struct frame f;
    (void)frame_decode(frame, &f, NULL); /* our own header: filled in every case */
    f.tag = *tag ? *tag : tag_new(c);
    frame_encode(&f, frame);
    *o = (struct client_out){.bytes = frame, .size = size, .fd_count = fd_count};
    for (size_t i = 0; i < fd_count; i++) {
        o->fds[i] = fds[i];
    }
    *(c->out_last ? &c->out_last->next : &c->out_first) = o;
    c->out_last = o;
    c->out_bytes += size;
    if (expect_answer) {
        c->asked[c->asked_count++] = (struct client_asked){f.tag, f.type};
    }
    *tag = f.tag;
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
    const struct client_out *o = c->out_first;
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
    struct client_out *o = c->out_first;
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
        c->out_first = o->next;
        if (!c->out_first) {
            c->out_last = NULL;
        }
        out_free(o);
    }
}

/* Grows the payload as bytes come: a header alone takes no memory. */
static bool payload_reserve(struct profd_client *c, size_t need)
{
    if (need <= c->payload_room) {
        return true;
    }
    size_t room = c->payload_room ? c->payload_room : 4096;
    while (room < need) {
        room *= 2;
    }
    uint8_t *grown = realloc(c->payload, room);
    if (grown) {
        c->payload = grown;
        c->payload_room = room;
    }
    return grown != NULL;
}

static enum profd_status header_take(struct profd_client *c, const uint8_t **p, size_t *n, struct profd_error *e)
{
    struct profd_error why = {""};
    size_t more = FRAME_HEADER_SIZE - c->header_got;
    more = more < *n ? more : *n;
    memcpy(c->header + c->header_got, *p, more);
    c->header_got += more;
    *p += more;
    *n -= more;
    if (c->header_got < FRAME_HEADER_SIZE) {
        return PROFD_OK;
    }
    enum profd_status status = frame_decode(c->header, &c->frame, &why);
    if (status != PROFD_OK) {
        return client_fail(c, status, &why, e);
    }
    if (frame_fds(&c->frame) != 0) {
        profd_error_set(&why, PROFD_PROTOCOL, "the daemon sends descriptors with a %s", frame_type_name(c->frame.type));
        return client_fail(c, PROFD_PROTOCOL, &why, e);
    }
    c->payload_got = 0;
    return PROFD_OK;
}

enum profd_status profd_client_feed(struct profd_client *c, const void *bytes, size_t n, struct profd_error *e)
{
    const uint8_t *p = bytes;
    struct profd_error why = {""};
    if (c->state == CLIENT_DEAD) {
        return client_fail(c, c->failure, &why, e);
    }
    in_free(c->taken);
    c->taken = NULL;
    while (n > 0 && c->state != CLIENT_CLOSED) {
        if (c->header_got < FRAME_HEADER_SIZE) {
            enum profd_status status = header_take(c, &p, &n, e);
            if (status != PROFD_OK) {
                return status;
            }
            if (c->header_got < FRAME_HEADER_SIZE) {
                return PROFD_OK;
            }
        }
        size_t more = c->frame.length - c->payload_got;
        more = more < n ? more : n;
        if (more > 0) {
            if (!payload_reserve(c, c->payload_got + more)) {
                profd_error_set(&why, PROFD_NO_MEMORY, "no memory for a message of %u bytes", c->frame.length);
                return client_fail(c, PROFD_NO_MEMORY, &why, e);
            }
            memcpy(c->payload + c->payload_got, p, more);
            c->payload_got += more;
            p += more;
            n -= more;
        }
        if (c->payload_got == c->frame.length) {
            c->header_got = 0;
            enum profd_status status = client_take_frame(c, &c->frame, c->payload, c->payload_got, e);
            if (status != PROFD_OK) {
                return status;
            }
        }
    }
    return PROFD_OK;
}

bool profd_client_next(struct profd_client *c, struct profd_event *event)
{
    struct client_in *in = c->in_first;
    if (!in) {
        return false;
    }
    c->in_first = in->next;
    if (!c->in_first) {
        c->in_last = NULL;
    }
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
        event->build_id = m->as.object.build_id;
        event->name = m->as.object.name;
        break;
    default: /* client_take_frame lets nothing else in */
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
