#include "proto/message.h"

#include <protobuf-c/protobuf-c.h>
#include <stdlib.h>
#include <string.h>

#include "proto/frame.h"
#include "proto/limits.h"
#include "proto/profd.pb-c.h"
#include "proto/utf8.h"
#include "proto/varint.h"

/* A first look at protobuf bytes, before memory is taken for what they say. */

#define MESSAGE_SCAN_NUMBERS 16 /* field numbers counted one by one */
#define MESSAGE_FIELDS_MAX 8192 /* fields of one message and its submessages: all builds and labels twice over */

struct message_scan {
    size_t fields;                          /* with those of submessages */
    size_t of_number[MESSAGE_SCAN_NUMBERS]; /* occurrences of each field of the message itself */
};

enum { WIRE_VARINT = 0, WIRE_FIXED64 = 1, WIRE_BYTES = 2, WIRE_FIXED32 = 5 };

struct scan_field {
    uint32_t number;
    const ProtobufCFieldDescriptor *known; /* NULL if from a later version */
    const uint8_t *data;                   /* content of a WIRE_BYTES field, else NULL */
    size_t size;
};

/* Advances *at past the next field. */
static bool scan_next(const ProtobufCMessageDescriptor *d, const uint8_t **at, const uint8_t *end, struct scan_field *f)
{
    uint64_t key, size = 0;
    if (!varint_get(at, end, &key) || key >> 3 == 0 || key >> 3 > 0x1fffffff) {
        return false;
    }
    *f = (struct scan_field){.number = (uint32_t)(key >> 3)};
    switch (key & 7) {
    case WIRE_VARINT:
        return varint_get(at, end, &size);
    case WIRE_FIXED64:
        size = 8;
        break;
    case WIRE_FIXED32:
        size = 4;
        break;
    case WIRE_BYTES:
        if (!varint_get(at, end, &size)) {
            return false;
        }
        f->data = *at;
        f->known = protobuf_c_message_descriptor_get_field(d, f->number);
        break;
    default:
        return false;
    }
    if (size > (uint64_t)(end - *at)) {
        return false;
    }
    f->size = (size_t)size;
    *at += size;
    return true;
}

static enum profd_status scan_judge_string(const ProtobufCMessageDescriptor *d, const struct scan_field *f,
                                           struct profd_error *e)
{
    if (f->known == NULL || f->known->type != PROTOBUF_C_TYPE_STRING || utf8_valid(f->data, f->size)) {
        return PROFD_OK;
    }
    if (memchr(f->data, 0, f->size) != NULL) {
        return profd_error_set(e, PROFD_MALFORMED, "%s of %s contains a NUL", f->known->name, d->short_name);
    }
    return profd_error_set(e, PROFD_MALFORMED, "%s of %s is not UTF-8", f->known->name, d->short_name);
}

static enum profd_status scan_broken(const ProtobufCMessageDescriptor *d, size_t offset, struct profd_error *e)
{
    return profd_error_set(e, PROFD_MALFORMED, "%s is not protobuf: bad field at byte %zu", d->short_name, offset);
}

static enum profd_status scan_submessage(const struct scan_field *outer, struct message_scan *scan,
                                         struct profd_error *e)
{
    const ProtobufCMessageDescriptor *d = outer->known->descriptor;
    const uint8_t *at = outer->data, *end = outer->data + outer->size;
    while (at < end) {
        struct scan_field f;
        size_t offset = (size_t)(at - outer->data);
        if (!scan_next(d, &at, end, &f)) {
            return scan_broken(d, offset, e);
        }
        scan->fields++;
        TRY(scan_judge_string(d, &f, e));
    }
    return PROFD_OK;
}

/* Walks the fields of a message and of its submessages (one level). MALFORMED: bytes that are not protobuf, a string
 * that is not UTF-8 or holds a NUL; the sentence names the field. Counting goes on beyond every limit. O(n), takes no
 * memory. */
static enum profd_status message_scan(const ProtobufCMessageDescriptor *descriptor, const uint8_t *in, size_t n,
                                      struct message_scan *scan, struct profd_error *e)
{
    struct message_scan s = {0};
    const uint8_t *at = in, *end = n == 0 ? in : in + n;
    while (at < end) {
        struct scan_field f;
        size_t offset = (size_t)(at - in);
        if (!scan_next(descriptor, &at, end, &f)) {
            return scan_broken(descriptor, offset, e);
        }
        s.fields++;
        if (f.number < MESSAGE_SCAN_NUMBERS) {
            s.of_number[f.number]++;
        }
        enum profd_status status = scan_judge_string(descriptor, &f, e);
        if (status == PROFD_OK && f.known != NULL && f.known->type == PROTOBUF_C_TYPE_MESSAGE) {
            status = scan_submessage(&f, &s, e);
        }
        if (status != PROFD_OK) {
            return status;
        }
    }
    *scan = s;
    return PROFD_OK;
}

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

/* NULL where there is no payload. */
static const ProtobufCMessageDescriptor *decode_descriptor(unsigned type)
{
    switch (type) {
#define MESSAGE(name, number, member, type, fields)                                                                    \
    case FRAME_##name:                                                                                                 \
        return &profd__wire__##member##__descriptor;
#define EMPTY(name, number)
        MESSAGE_LIST(MESSAGE, EMPTY, , , , , , , , , )
#undef MESSAGE
#undef EMPTY
    default:
        return NULL;
    }
}

static struct message_bytes decode_bytes(ProtobufCBinaryData bytes)
{
    static const uint8_t empty[1] = {0};
    return (struct message_bytes){bytes.data == NULL ? empty : bytes.data, bytes.len};
}

static bool decode_builds(const Profd__Wire__Upload *from, struct decode_block *block, struct message_upload *to)
{
    struct message_build *builds = decode_take(block, from->n_builds * sizeof *builds);
    for (size_t i = 0; builds != NULL && i < from->n_builds; i++) {
        builds[i] = (struct message_build){from->builds[i]->build_id, from->builds[i]->name};
    }
    to->builds = builds;
    to->build_count = from->n_builds;
    return builds != NULL;
}

static bool decode_labels(const Profd__Wire__Upload *from, struct decode_block *block, struct message_upload *to)
{
    struct message_label *labels = decode_take(block, from->n_labels * sizeof *labels);
    for (size_t i = 0; labels != NULL && i < from->n_labels; i++) {
        labels[i] = (struct message_label){from->labels[i]->name, from->labels[i]->value};
    }
    to->labels = labels;
    to->label_count = from->n_labels;
    return labels != NULL;
}

/* Views of the unpacked message. False when the block is too small. */
static bool decode_view(const void *wire, struct decode_block *block, struct message *m)
{
    bool fits = true;
    switch (m->type) {
#define PLAIN(field) to->field = from->field;
#define BYTES(field) to->field = decode_bytes(from->field);
#define BUILDS(count, field) fits = decode_builds(from, block, to);
#define LABELS(count, field) fits = fits && decode_labels(from, block, to);
#define TEXTS(count, field)                                                                                            \
    to->count = from->n_##field;                                                                                       \
    to->field = (const char *const *)from->field;
#define NUMBERS(count, field)                                                                                          \
    to->count = from->n_##field;                                                                                       \
    to->field = from->field;
#define MESSAGE(name, number, member, type, fields)                                                                    \
    case FRAME_##name: {                                                                                               \
        const Profd__Wire__##type *from = wire;                                                                        \
        struct message_##member *to = &m->as.member;                                                                   \
        {                                                                                                              \
            fields                                                                                                     \
        }                                                                                                              \
        return fits;                                                                                                   \
    }
#define EMPTY(name, number)
        MESSAGE_LIST(MESSAGE, EMPTY, PLAIN, PLAIN, PLAIN, PLAIN, BYTES, BUILDS, LABELS, TEXTS, NUMBERS)
    default:
        return false;
    }
}

/* What may be refused before memory is taken; *capacity is the size of the block that then suffices. */
static enum profd_status decode_judge(const ProtobufCMessageDescriptor *d, unsigned type, const uint8_t *payload,
                                      size_t n, size_t *capacity, struct profd_error *e)
{
    struct message_scan scan = {0};
    if (n > LIMIT_FRAME_PAYLOAD) {
        return profd_error_set(e, PROFD_TOO_LARGE, "%s of %zu bytes, at most %u", frame_type_name(type), n,
                               LIMIT_FRAME_PAYLOAD);
    }
    TRY(message_scan(d, payload, n, &scan, e));
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

enum profd_status message_decode(unsigned type, const uint8_t *payload, size_t n, struct message *m,
                                 struct profd_error *e)
{
    static const uint8_t nothing[1];
    const ProtobufCMessageDescriptor *d = decode_descriptor(type);
    if (frame_type_name(type) == NULL) {
        return profd_error_set(e, PROFD_UNKNOWN_TYPE, "message type %u cannot be decoded", type);
    }
    if (d == NULL && n != 0) {
        return profd_error_set(e, PROFD_MALFORMED, "%s with a payload of %zu bytes: it has none", frame_type_name(type),
                               n);
    }
    if (d == NULL) {
        *m = (struct message){.type = type};
        return PROFD_OK;
    }
    if (payload == NULL) {
        payload = nothing;
    }
    struct decode_block block = {0};
    TRY(decode_judge(d, type, payload, n, &block.capacity, e));
    block.data = malloc(block.capacity);
    if (block.data == NULL) {
        return profd_error_set(e, PROFD_NO_MEMORY, "no memory for %s of %zu bytes", frame_type_name(type), n);
    }
    ProtobufCAllocator allocator = {decode_take, decode_give, &block};
    const ProtobufCMessage *wire = protobuf_c_message_unpack(d, &allocator, n, payload);
    struct message result = {.type = type, .block = block.data};
    if (wire == NULL || !decode_view(wire, &block, &result)) {
        free(block.data);
        return profd_error_set(e, PROFD_MALFORMED, "%s of %zu bytes does not fit its definition", frame_type_name(type),
                               n);
    }
    *m = result;
    return PROFD_OK;
}

/* False when the block is too small. */
static bool batch_view(const Profd__Wire__Batch *from, struct decode_block *block, struct message_batch *to)
{
    struct message_bytes *uploads = decode_take(block, from->n_uploads * sizeof *uploads);
    struct message_offer *offers = decode_take(block, from->n_offers * sizeof *offers);
    if (uploads == NULL || offers == NULL) {
        return false;
    }
    for (size_t i = 0; i < from->n_uploads; i++) {
        uploads[i] = decode_bytes(from->uploads[i]);
    }
    for (size_t i = 0; i < from->n_offers; i++) {
        const Profd__Wire__Offer *o = from->offers[i];
        offers[i] = (struct message_offer){o->build_id, decode_bytes(o->hash), o->size};
    }
    *to = (struct message_batch){.centre = decode_bytes(from->centre),
                                 .incarnation = decode_bytes(from->incarnation),
                                 .host = from->host,
                                 .machine = from->machine,
                                 .boot = from->boot,
                                 .version = from->version,
                                 .clock = from->clock,
                                 .number = from->number,
                                 .held = from->held,
                                 .oldest = from->oldest,
                                 .upload_count = from->n_uploads,
                                 .uploads = uploads,
                                 .offer_count = from->n_offers,
                                 .offers = offers,
                                 .block = block->data};
    return true;
}

enum profd_status message_decode_batch(const uint8_t *in, size_t n, struct message_batch *out, struct profd_error *e)
{
    static const uint8_t nothing[1];
    const ProtobufCMessageDescriptor *d = &profd__wire__batch__descriptor;
    struct message_scan scan = {0};
    struct message_batch result;
    in = in == NULL ? nothing : in;
    TRY(message_scan(d, in, n, &scan, e));
    if (scan.fields > MESSAGE_FIELDS_MAX) {
        return profd_error_set(e, PROFD_TOO_LARGE, "a batch of %zu fields, at most %d: send fewer uploads at once",
                               scan.fields, MESSAGE_FIELDS_MAX);
    }
    struct decode_block block = {.capacity = DECODE_BASE + n + scan.fields * DECODE_PER_FIELD};
    block.data = malloc(block.capacity);
    if (block.data == NULL) {
        return profd_error_set(e, PROFD_NO_MEMORY, "no memory for a batch of %zu bytes", n);
    }
    ProtobufCAllocator allocator = {decode_take, decode_give, &block};
    const ProtobufCMessage *wire = protobuf_c_message_unpack(d, &allocator, n, in);
    if (wire == NULL || !batch_view((const Profd__Wire__Batch *)wire, &block, &result)) {
        free(block.data);
        return profd_error_set(e, PROFD_MALFORMED, "the batch of %zu bytes does not fit its definition", n);
    }
    *out = result;
    return PROFD_OK;
}

void message_batch_done(struct message_batch *b)
{
    free(b->block);
    *b = (struct message_batch){.block = NULL};
}
