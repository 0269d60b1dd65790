#include "proto/message.h"

#include <stdlib.h>
#include <string.h>

#include "proto/frame.h"
#include "proto/limits.h"
#include "proto/message_scan.h"
#include "proto/profd.pb-c.h"

/* Everything that protobuf-c makes from a payload is in one block, and its size is known beforehand: the payload's own
 * bytes, and for each field its bookkeeping, its pointer, its view and the padding. */
#define DECODE_BASE 4096u
#define DECODE_PER_FIELD 288u
#define DECODE_ALIGN 16u

struct decode_block {
    uint8_t *data;
    size_t used, capacity;
};

/* A zero byte follows every piece, so that bytes fields are NUL-terminated too. */
static void *decode_take(void *context, size_t size)
{
    struct decode_block *b = context;
    if (size >= b->capacity || b->used + size + 1 > b->capacity) {
        return NULL;
    }
    uint8_t *piece = b->data + b->used;
    piece[size] = 0;
    size_t used = (b->used + size + DECODE_ALIGN) & ~(size_t)(DECODE_ALIGN - 1);
    b->used = used > b->capacity ? b->capacity : used;
    return piece;
}

/* The block goes as a whole. */
static void decode_give(void *context, void *piece)
{
    (void)context;
    (void)piece;
}

static const ProtobufCMessageDescriptor *decode_descriptor(unsigned type)
{
    switch (type) {
    case FRAME_HELLO:
        return &profd__wire__hello__descriptor;
    case FRAME_WELCOME:
        return &profd__wire__welcome__descriptor;
    case FRAME_UPLOAD:
        return &profd__wire__upload__descriptor;
    case FRAME_ACK:
        return &profd__wire__ack__descriptor;
    case FRAME_NACK:
        return &profd__wire__nack__descriptor;
    case FRAME_WANT_OBJECT:
        return &profd__wire__want_object__descriptor;
    case FRAME_OBJECT:
        return &profd__wire__object__descriptor;
    case FRAME_DECLINE:
        return &profd__wire__decline__descriptor;
    case FRAME_QUERY:
        return &profd__wire__query__descriptor;
    case FRAME_REPLY:
        return &profd__wire__reply__descriptor;
    case FRAME_ADMIN:
        return &profd__wire__admin__descriptor;
    default:
        return NULL;
    }
}

static struct message_bytes decode_bytes(ProtobufCBinaryData bytes)
{
    static const uint8_t empty[1] = {0};
    return (struct message_bytes){bytes.data == NULL ? empty : bytes.data, bytes.len};
}

static bool decode_upload(const Profd__Wire__Upload *w, struct decode_block *block, struct message_upload *u)
{
    struct message_build *builds = decode_take(block, w->n_builds * sizeof *builds);
    struct message_label *labels = decode_take(block, w->n_labels * sizeof *labels);
    if (builds == NULL || labels == NULL) {
        return false;
    }
    for (size_t i = 0; i < w->n_builds; i++) {
        builds[i] = (struct message_build){w->builds[i]->build_id, w->builds[i]->name};
    }
    for (size_t i = 0; i < w->n_labels; i++) {
        labels[i] = (struct message_label){w->labels[i]->name, w->labels[i]->value};
    }
    *u = (struct message_upload){
        .sender = decode_bytes(w->sender),
        .sequence = w->sequence,
        .start = w->start,
        .end = w->end,
        .program = w->program,
        .build_count = w->n_builds,
        .builds = builds,
        .label_count = w->n_labels,
        .labels = labels,
        .counts = decode_bytes(w->counts),
        .inexact = w->inexact,
        .processes_started = w->processes_started,
        .host = w->host,
        .process = decode_bytes(w->process),
    };
    return true;
}

/* Views of the unpacked message. False when the block is too small. */
static bool decode_view(unsigned type, const void *wire, struct decode_block *block, struct message *m)
{
    const Profd__Wire__Hello *hello = wire;
    const Profd__Wire__Welcome *welcome = wire;
    const Profd__Wire__Ack *ack = wire;
    const Profd__Wire__Nack *nack = wire;
    const Profd__Wire__WantObject *want = wire;
    const Profd__Wire__Object *object = wire;
    const Profd__Wire__Decline *decline = wire;
    const Profd__Wire__Query *query = wire;
    const Profd__Wire__Reply *reply = wire;
    const Profd__Wire__Admin *admin = wire;
    switch (type) {
    case FRAME_HELLO:
        m->as.hello = (struct message_hello){hello->version_oldest, hello->version_newest, hello->client};
        return true;
    case FRAME_WELCOME:
        m->as.welcome = (struct message_welcome){welcome->version, welcome->payload_max, welcome->in_flight_max,
                                                 welcome->daemon,  welcome->run,         welcome->refused};
        return true;
    case FRAME_UPLOAD:
        return decode_upload(wire, block, &m->as.upload);
    case FRAME_ACK:
        m->as.ack = (struct message_ack){ack->duplicate != 0, ack->run, ack->refused};
        return true;
    case FRAME_NACK:
        m->as.nack = (struct message_nack){nack->status, nack->retry != 0, nack->retry_after_ms, nack->sentence};
        return true;
    case FRAME_WANT_OBJECT:
        m->as.object = (struct message_object){want->build_id, want->name};
        return true;
    case FRAME_OBJECT:
        m->as.object = (struct message_object){object->build_id, object->name};
        return true;
    case FRAME_DECLINE:
        m->as.decline = (struct message_decline){decline->build_id, decline->reason};
        return true;
    case FRAME_QUERY:
        m->as.query = (struct message_query){query->target, query->if_none_match};
        return true;
    case FRAME_ADMIN:
        m->as.admin = (struct message_admin){admin->verb, admin->n_arguments, (const char *const *)admin->arguments};
        return true;
    default:
        m->as.reply = (struct message_reply){reply->http_status,        reply->content_type, reply->etag,
                                             decode_bytes(reply->body), reply->done,         reply->total};
        return true;
    }
}

/* What may be refused before memory is taken; *capacity is the size of the block that then suffices. */
static enum profd_status decode_judge(const ProtobufCMessageDescriptor *d, unsigned type, const uint8_t *payload,
                                      size_t n, size_t *capacity, struct profd_error *e)
{
    struct message_scan scan;
    if (n > LIMIT_FRAME_PAYLOAD) {
        return profd_error_set(e, PROFD_TOO_LARGE, "%s of %zu bytes, at most %u", frame_type_name(type), n,
                               LIMIT_FRAME_PAYLOAD);
    }
    enum profd_status status = message_scan(d, payload, n, &scan, e);
    if (status != PROFD_OK) {
        return status;
    }
    if (type == FRAME_UPLOAD && scan.of_number[6] > LIMIT_BUILDS) {
        return profd_error_set(e, PROFD_TOO_LARGE, "%zu builds, at most %u", scan.of_number[6], LIMIT_BUILDS);
    }
    if (type == FRAME_UPLOAD && scan.of_number[7] > LIMIT_LABELS) {
        return profd_error_set(e, PROFD_TOO_LARGE, "%zu labels, at most %u", scan.of_number[7], LIMIT_LABELS);
    }
    if (type == FRAME_ADMIN && scan.of_number[2] > LIMIT_ADMIN_ARGUMENTS) {
        return profd_error_set(e, PROFD_TOO_LARGE, "%zu arguments, at most %u", scan.of_number[2],
                               LIMIT_ADMIN_ARGUMENTS);
    }
    if (scan.fields > MESSAGE_FIELDS_MAX) {
        return profd_error_set(e, PROFD_TOO_LARGE, "%s of %zu fields, at most %d", frame_type_name(type), scan.fields,
                               MESSAGE_FIELDS_MAX);
    }
    *capacity = DECODE_BASE + n + scan.fields * DECODE_PER_FIELD;
    return PROFD_OK;
}

/* SYNC and ATTACH have no payload. */
static enum profd_status decode_empty(unsigned type, size_t n, struct message *m, struct profd_error *e)
{
    if (n != 0) {
        return profd_error_set(e, PROFD_MALFORMED, "%s with a payload of %zu bytes: it has none", frame_type_name(type),
                               n);
    }
    *m = (struct message){.type = type};
    return PROFD_OK;
}

enum profd_status message_decode(unsigned type, const uint8_t *payload, size_t n, struct message *m,
                                 struct profd_error *e)
{
    static const uint8_t nothing[1];
    if (type == FRAME_SYNC || type == FRAME_ATTACH) {
        return decode_empty(type, n, m, e);
    }
    const ProtobufCMessageDescriptor *d = decode_descriptor(type);
    if (d == NULL) {
        return profd_error_set(e, PROFD_UNKNOWN_TYPE, "message type %u cannot be decoded", type);
    }
    if (payload == NULL) {
        payload = nothing;
    }
    struct decode_block block = {0};
    enum profd_status status = decode_judge(d, type, payload, n, &block.capacity, e);
    if (status != PROFD_OK) {
        return status;
    }
    block.data = malloc(block.capacity);
    if (block.data == NULL) {
        return profd_error_set(e, PROFD_NO_MEMORY, "no memory for %s of %zu bytes", frame_type_name(type), n);
    }
    ProtobufCAllocator allocator = {decode_take, decode_give, &block};
    const ProtobufCMessage *wire = protobuf_c_message_unpack(d, &allocator, n, payload);
    struct message result = {.type = type, .block = block.data};
    if (wire == NULL || !decode_view(type, wire, &block, &result)) {
        free(block.data);
        return profd_error_set(e, PROFD_MALFORMED, "%s of %zu bytes does not fit its definition", frame_type_name(type),
                               n);
    }
    *m = result;
    return PROFD_OK;
}
