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
#define MESSAGE(name, number, member, type, fields) Profd__Wire__##type member;
#define EMPTY(name, number)
    MESSAGE_LIST(MESSAGE, EMPTY, , , , , , , , , )
#undef MESSAGE
#undef EMPTY
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

static char **wire_texts(const char *const *texts)
{
    union {
        const char *const *from;
        char **to;
    } cast = {.from = texts};
    return cast.to;
}

static uint64_t *wire_numbers(const uint64_t *numbers)
{
    union {
        const uint64_t *from;
        uint64_t *to;
    } cast = {.from = numbers};
    return cast.to;
}

/* The builds and labels of an upload: submessages and pointers to them, in one block (*block) that the caller frees. */
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

/* *empty becomes true where there are no fields. */
static enum profd_status wire_fill(const struct message *m, union wire *w, bool *empty, void **block,
                                   struct profd_error *e)
{
    enum profd_status status = PROFD_OK;
    switch (m->type) {
#define PLAIN(field) to->field = from->field;
#define TEXT(field) to->field = wire_text(from->field);
#define BYTES(field) to->field = wire_bytes(from->field);
#define BUILDS(count, field) status = wire_fill_lists(from, to, block, e);
#define NOTHING(count, field)
#define TEXTS(count, field)                                                                                            \
    to->n_##field = from->count;                                                                                       \
    to->field = wire_texts(from->field);
#define NUMBERS(count, field)                                                                                          \
    to->n_##field = from->count;                                                                                       \
    to->field = wire_numbers(from->field);
#define MESSAGE(name, number, member, type, fields)                                                                    \
    case FRAME_##name: {                                                                                               \
        const struct message_##member *from = &m->as.member;                                                           \
        Profd__Wire__##type *to = &w->member;                                                                          \
        profd__wire__##member##__init(to);                                                                             \
        {                                                                                                              \
            fields                                                                                                     \
        }                                                                                                              \
        return status;                                                                                                 \
    }
#define EMPTY(name, number)                                                                                            \
    case FRAME_##name:                                                                                                 \
        *empty = true;                                                                                                 \
        return PROFD_OK;
        MESSAGE_LIST(MESSAGE, EMPTY, PLAIN, PLAIN, PLAIN, TEXT, BYTES, BUILDS, NOTHING, TEXTS, NUMBERS)
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
