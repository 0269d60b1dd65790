#include "proto/message.h"

#include <stdlib.h>
#include <string.h>

#include "proto/deflate.h"
#include "proto/frame.h"
#include "proto/limits.h"
#include "proto/profd.pb-c.h"

/* The generated struct of one message, whatever its type. */
union wire {
    ProtobufCMessage base;
    Profd__Wire__Hello hello;
    Profd__Wire__Welcome welcome;
    Profd__Wire__Upload upload;
    Profd__Wire__Ack ack;
    Profd__Wire__Nack nack;
    Profd__Wire__WantObject want_object;
    Profd__Wire__Object object;
    Profd__Wire__Decline decline;
    Profd__Wire__Query query;
    Profd__Wire__Reply reply;
    Profd__Wire__Admin admin;
};

/* Generated structs have no const; packing only reads. NULL counts as "". */
static char *wire_text(const char *text)
{
    static char empty[1];
    union {
        const char *from;
        char *to;
    } cast = {.from = text};
    return text == NULL ? empty : cast.to;
}

static ProtobufCBinaryData wire_bytes(struct message_bytes bytes)
{
    union {
        const uint8_t *from;
        uint8_t *to;
    } cast = {.from = bytes.data};
    return (ProtobufCBinaryData){bytes.size, cast.to};
}

/* Submessages and pointers to them, in one block (*block) that the caller frees. */
static enum profd_status wire_fill_lists(const struct message_upload *u, Profd__Wire__Upload *w, void **block,
                                         struct profd_error *e)
{
    if (u->build_count > LIMIT_BUILDS) {
        return profd_error_set(e, PROFD_TOO_LARGE, "%zu builds, at most %u", u->build_count, LIMIT_BUILDS);
    }
    if (u->label_count > LIMIT_LABELS) {
        return profd_error_set(e, PROFD_TOO_LARGE, "%zu labels, at most %u", u->label_count, LIMIT_LABELS);
    }
    struct lists {
        Profd__Wire__Build builds[LIMIT_BUILDS];
        Profd__Wire__Build *build_at[LIMIT_BUILDS];
        Profd__Wire__Label labels[LIMIT_LABELS];
        Profd__Wire__Label *label_at[LIMIT_LABELS];
    } *lists = malloc(sizeof *lists);
    if (lists == NULL) {
        return profd_error_set(e, PROFD_NO_MEMORY, "no memory to encode an upload");
    }
    for (size_t i = 0; i < u->build_count; i++) {
        profd__wire__build__init(&lists->builds[i]);
        lists->builds[i].build_id = wire_text(u->builds[i].build_id);
        lists->builds[i].name = wire_text(u->builds[i].name);
        lists->build_at[i] = &lists->builds[i];
    }
    for (size_t i = 0; i < u->label_count; i++) {
        profd__wire__label__init(&lists->labels[i]);
        lists->labels[i].name = wire_text(u->labels[i].name);
        lists->labels[i].value = wire_text(u->labels[i].value);
        lists->label_at[i] = &lists->labels[i];
    }
    w->n_builds = u->build_count;
    w->builds = lists->build_at;
    w->n_labels = u->label_count;
    w->labels = lists->label_at;
    *block = lists;
    return PROFD_OK;
}

static enum profd_status wire_fill_upload(const struct message_upload *u, Profd__Wire__Upload *w, void **block,
                                          struct profd_error *e)
{
    profd__wire__upload__init(w);
    w->sender = wire_bytes(u->sender);
    w->sequence = u->sequence;
    w->start = u->start;
    w->end = u->end;
    w->program = u->program;
    w->counts = wire_bytes(u->counts);
    w->inexact = u->inexact;
    w->processes_started = u->processes_started;
    w->host = wire_text(u->host);
    w->process = wire_bytes(u->process);
    return wire_fill_lists(u, w, block, e);
}

static void wire_fill_greeting(const struct message *m, union wire *w)
{
    if (m->type == FRAME_HELLO) {
        profd__wire__hello__init(&w->hello);
        w->hello.version_oldest = m->as.hello.version_oldest;
        w->hello.version_newest = m->as.hello.version_newest;
        w->hello.client = wire_text(m->as.hello.client);
        return;
    }
    profd__wire__welcome__init(&w->welcome);
    w->welcome.version = m->as.welcome.version;
    w->welcome.payload_max = m->as.welcome.payload_max;
    w->welcome.in_flight_max = m->as.welcome.in_flight_max;
    w->welcome.daemon = wire_text(m->as.welcome.daemon);
    w->welcome.run = m->as.welcome.run;
    w->welcome.refused = m->as.welcome.refused;
}

static void wire_fill_object(const struct message *m, union wire *w)
{
    if (m->type == FRAME_WANT_OBJECT) {
        profd__wire__want_object__init(&w->want_object);
        w->want_object.build_id = wire_text(m->as.object.build_id);
        w->want_object.name = wire_text(m->as.object.name);
        return;
    }
    profd__wire__object__init(&w->object);
    w->object.build_id = wire_text(m->as.object.build_id);
    w->object.name = wire_text(m->as.object.name);
}

static void wire_fill_reply(const struct message_reply *r, Profd__Wire__Reply *w)
{
    profd__wire__reply__init(w);
    w->http_status = r->http_status;
    w->content_type = wire_text(r->content_type);
    w->etag = wire_text(r->etag);
    w->body = wire_bytes(r->body);
    w->done = r->done;
    w->total = r->total;
}

static void wire_fill_admin(const struct message_admin *a, Profd__Wire__Admin *w)
{
    union {
        const char *const *from;
        char **to;
    } cast = {.from = a->arguments};
    profd__wire__admin__init(w);
    w->verb = wire_text(a->verb);
    w->n_arguments = a->argument_count;
    w->arguments = cast.to;
}

static void wire_fill_nack(const struct message_nack *n, Profd__Wire__Nack *w)
{
    profd__wire__nack__init(w);
    w->status = n->status;
    w->retry = n->retry;
    w->retry_after_ms = n->retry_after_ms;
    w->sentence = wire_text(n->sentence);
}

/* SYNC and ATTACH have no fields: *empty becomes true. */
static enum profd_status wire_fill(const struct message *m, union wire *w, bool *empty, void **block,
                                   struct profd_error *e)
{
    switch (m->type) {
    case FRAME_HELLO:
    case FRAME_WELCOME:
        wire_fill_greeting(m, w);
        return PROFD_OK;
    case FRAME_UPLOAD:
        return wire_fill_upload(&m->as.upload, &w->upload, block, e);
    case FRAME_ACK:
        profd__wire__ack__init(&w->ack);
        w->ack.duplicate = m->as.ack.duplicate;
        w->ack.run = m->as.ack.run;
        w->ack.refused = m->as.ack.refused;
        return PROFD_OK;
    case FRAME_NACK:
        wire_fill_nack(&m->as.nack, &w->nack);
        return PROFD_OK;
    case FRAME_WANT_OBJECT:
    case FRAME_OBJECT:
        wire_fill_object(m, w);
        return PROFD_OK;
    case FRAME_DECLINE:
        profd__wire__decline__init(&w->decline);
        w->decline.build_id = wire_text(m->as.decline.build_id);
        w->decline.reason = wire_text(m->as.decline.reason);
        return PROFD_OK;
    case FRAME_QUERY:
        profd__wire__query__init(&w->query);
        w->query.target = wire_text(m->as.query.target);
        w->query.if_none_match = wire_text(m->as.query.if_none_match);
        return PROFD_OK;
    case FRAME_REPLY:
        wire_fill_reply(&m->as.reply, &w->reply);
        return PROFD_OK;
    case FRAME_ADMIN:
        wire_fill_admin(&m->as.admin, &w->admin);
        return PROFD_OK;
    case FRAME_SYNC:
    case FRAME_ATTACH:
        *empty = true;
        return PROFD_OK;
    default:
        return profd_error_set(e, PROFD_UNKNOWN_TYPE, "message type %u cannot be encoded", m->type);
    }
}

/* Replaces the plain payload after the header by its compressed form. */
static enum profd_status wire_compress(uint8_t **frame, size_t *payload, struct profd_error *e)
{
    size_t capacity = deflate_bound(*payload), size;
    uint8_t *block = malloc(FRAME_HEADER_SIZE + capacity);
    if (block == NULL) {
        return profd_error_set(e, PROFD_NO_MEMORY, "no memory to compress a payload of %zu bytes", *payload);
    }
    enum profd_status status =
        deflate_pack(*frame + FRAME_HEADER_SIZE, *payload, true, block + FRAME_HEADER_SIZE, capacity, &size, e);
    if (status == PROFD_OK && size > LIMIT_FRAME_PAYLOAD) {
        status = profd_error_set(e, PROFD_TOO_LARGE, "payload of %zu bytes: at most %u fit a frame", size,
                                 LIMIT_FRAME_PAYLOAD);
    }
    if (status != PROFD_OK) {
        free(block);
        return status;
    }
    free(*frame);
    *frame = block;
    *payload = size;
    return PROFD_OK;
}

static enum profd_status wire_pack(const struct message *m, const ProtobufCMessage *wire, uint16_t flags, uint32_t tag,
                                   uint8_t **out, size_t *out_size, struct profd_error *e)
{
    size_t payload = wire == NULL ? 0 : protobuf_c_message_get_packed_size(wire);
    if (payload > LIMIT_FRAME_PAYLOAD) {
        return profd_error_set(e, PROFD_TOO_LARGE, "%s of %zu bytes: at most %u fit a frame", frame_type_name(m->type),
                               payload, LIMIT_FRAME_PAYLOAD);
    }
    uint8_t *frame = malloc(FRAME_HEADER_SIZE + payload);
    if (frame == NULL) {
        return profd_error_set(e, PROFD_NO_MEMORY, "no memory for a frame of %zu bytes", payload);
    }
    if (wire != NULL) {
        protobuf_c_message_pack(wire, frame + FRAME_HEADER_SIZE);
    }
    enum profd_status status = flags & FRAME_FLAG_COMPRESSED ? wire_compress(&frame, &payload, e) : PROFD_OK;
    if (status != PROFD_OK) {
        free(frame);
        return status;
    }
    frame_encode(&(struct frame){.length = (uint32_t)payload,
                                 .version = FRAME_VERSION,
                                 .type = (uint8_t)m->type,
                                 .flags = flags,
                                 .tag = tag},
                 frame);
    *out = frame;
    *out_size = FRAME_HEADER_SIZE + payload;
    return PROFD_OK;
}

enum profd_status message_encode(const struct message *m, uint16_t flags, uint32_t tag, uint8_t **out, size_t *out_size,
                                 struct profd_error *e)
{
    union wire wire;
    bool empty = false;
    void *block = NULL;
    enum profd_status status = wire_fill(m, &wire, &empty, &block, e);
    if (status == PROFD_OK) {
        status = wire_pack(m, empty ? NULL : &wire.base, flags, tag, out, out_size, e);
    }
    free(block);
    return status;
}
