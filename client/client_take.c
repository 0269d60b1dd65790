/* What a client believes: each type of frame has the moment when it may come. */
#include "client/client.h"

#include <stdlib.h>
#include <string.h>

#include "proto/limits.h"

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

static enum profd_status not_asked(const struct frame *f, struct profd_error *why)
{
    return profd_error_set(why, PROFD_PROTOCOL, "the daemon answers %s to tag %u, which asked for no such thing",
                           frame_type_name(f->type), f->tag);
}

static enum profd_status take_welcome(struct profd_client *c, const struct frame *f, const struct message *m,
                                      struct profd_error *why)
{
    (void)f; /* the first answer of a connection, whatever its tag */
    const struct message_welcome *w = &m->as.welcome;
    if (c->state != CLIENT_GREETING) {
        return profd_error_set(why, PROFD_PROTOCOL, "the daemon says WELCOME twice");
    }
    if (w->version < FRAME_VERSION_OLDEST || w->version > FRAME_VERSION) {
        return profd_error_set(why, PROFD_UNKNOWN_VERSION,
                               "the daemon chose protocol version %u; %u to %u are spoken here", w->version,
                               FRAME_VERSION_OLDEST, FRAME_VERSION);
    }
    if (w->payload_max > 0 && w->payload_max < c->payload_max) {
        c->payload_max = w->payload_max;
    }
    if (w->in_flight_max > 0 && w->in_flight_max < c->in_flight_max) {
        c->in_flight_max = w->in_flight_max;
    }
    memmove(c->asked, c->asked + 1, --c->asked_count * sizeof *c->asked); /* HELLO is always the first */
    c->state = CLIENT_OPEN;
    return PROFD_OK;
}

static enum profd_status take_ack(struct profd_client *c, const struct frame *f, const struct message *m,
                                  struct profd_error *why)
{
    (void)m;
    const unsigned types = 1u << FRAME_UPLOAD | 1u << FRAME_OBJECT | 1u << FRAME_SYNC | 1u << FRAME_DECLINE;
    return asked_take(c, f->tag, types, false) ? PROFD_OK : not_asked(f, why);
}

static enum profd_status take_nack(struct profd_client *c, const struct frame *f, const struct message *m,
                                   struct profd_error *why)
{
    (void)m;
    if (f->tag == 0 || c->state == CLIENT_GREETING) {
        return PROFD_OK; /* of the connection as a whole */
    }
    return asked_take(c, f->tag, ~(1u << FRAME_HELLO), false) ? PROFD_OK : not_asked(f, why);
}

static enum profd_status take_want(struct profd_client *c, const struct frame *f, const struct message *m,
                                   struct profd_error *why)
{
    (void)c;
    (void)f;
    (void)m;
    (void)why;
    return PROFD_OK;
}

static enum profd_status take_reply(struct profd_client *c, const struct frame *f, const struct message *m,
                                    struct profd_error *why)
{
    (void)m;
    return asked_take(c, f->tag, 1u << FRAME_QUERY | 1u << FRAME_ADMIN, !(f->flags & FRAME_FLAG_LAST))
               ? PROFD_OK
               : not_asked(f, why);
}

typedef enum profd_status (*take_function)(struct profd_client *, const struct frame *, const struct message *,
                                           struct profd_error *);

static take_function take_find(unsigned type)
{
    static const struct {
        unsigned type;
        take_function take;
    } takes[] = {
        {FRAME_WELCOME, take_welcome},  {FRAME_ACK, take_ack},     {FRAME_NACK, take_nack},
        {FRAME_WANT_OBJECT, take_want}, {FRAME_REPLY, take_reply},
    };
    for (size_t i = 0; i < sizeof takes / sizeof takes[0]; i++) {
        if (takes[i].type == type) {
            return takes[i].take;
        }
    }
    return NULL;
}

static enum profd_status frame_open(const struct frame *f, const uint8_t *payload, size_t n, struct message *m,
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

enum profd_status client_take_frame(struct profd_client *c, const struct frame *f, const uint8_t *payload, size_t n,
                                    struct profd_error *e)
{
    static const uint8_t none[1];
    struct profd_error why = {""};
    take_function take = take_find(f->type);
    if (!take || (c->state == CLIENT_GREETING && f->type != FRAME_WELCOME && f->type != FRAME_NACK)) {
        profd_error_set(&why, PROFD_PROTOCOL, "the daemon sends %s %s", frame_type_name(f->type),
                        take ? "before WELCOME" : "to a client");
        return client_fail(c, PROFD_PROTOCOL, &why, e);
    }
    struct client_in *in = calloc(1, sizeof *in);
    if (!in) {
        profd_error_set(&why, PROFD_NO_MEMORY, "no memory for an answer");
        return client_fail(c, PROFD_NO_MEMORY, &why, e);
    }
    enum profd_status status = frame_open(f, payload ? payload : none, n, &in->message, &why);
    if (status == PROFD_OK) {
        status = take(c, f, &in->message, &why);
        if (status != PROFD_OK) {
            message_done(&in->message);
        }
    }
    if (status != PROFD_OK) {
        free(in);
        return client_fail(c, status, &why, e);
    }
    in->frame = *f;
    if (f->type == FRAME_NACK && c->state == CLIENT_GREETING) {
        in->frame.tag = 0;
    }
    *(c->in_last ? &c->in_last->next : &c->in_first) = in;
    c->in_last = in;
    if (in->frame.type == FRAME_NACK && in->frame.tag == 0) { /* told as an event; nothing more is sent or read */
        c->state = CLIENT_CLOSED;
        c->failure = profd_status_known(in->message.as.nack.status) && in->message.as.nack.status != PROFD_OK
                         ? (enum profd_status)in->message.as.nack.status
                         : PROFD_INTERNAL;
        profd_error_set(&c->error, c->failure, "%s", in->message.as.nack.sentence);
    }
    return PROFD_OK;
}
