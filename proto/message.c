#include "proto/message.h"

#include <protobuf-c/protobuf-c.h>
#include <stdlib.h>
#include <string.h>

#include "proto/deflate.h"
#include "proto/frame.h"
#include "proto/limits.h"
#include "proto/profd.pb-c.h"
#include "proto/utf8.h"
#include "proto/varint.h"

/* A first look at protobuf bytes, before memory is taken for what they say. */

#define MESSAGE_SCAN_NUMBERS 16 /* field numbers counted one by one */
#define MESSAGE_FIELDS_MAX 8192 /* fields of one message and its submessages: all builds and labels twice over */

#define UPLOAD_COUNTS 8u /* number of an upload's counts */

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

struct message_bytes message_upload_counts(const uint8_t *payload, size_t n)
{
    const uint8_t *at = payload, *end = n == 0 ? payload : payload + n;
    struct message_bytes counts = {NULL, 0};
    struct scan_field f;
    for (unsigned fields = 0; at < end && fields < MESSAGE_FIELDS_MAX; fields++) { /* of more, nothing is unpacked */
        if (!scan_next(&profd__wire__upload__descriptor, &at, end, &f)) {
            break;
        }
        if (f.number == UPLOAD_COUNTS && f.data != NULL) {
            counts = (struct message_bytes){f.data, f.size};
        }
    }
    return counts;
}

size_t message_upload_weight(const uint8_t *payload, size_t n)
{
    const struct message_bytes counts = message_upload_counts(payload, n);
    const uint8_t *at = counts.data + (counts.size > 0); /* after the format byte */
    uint64_t stated;
    const bool fits =
        counts.size > 1 && varint_get(&at, counts.data + counts.size, &stated) && stated <= LIMIT_COUNTS_RAW;
    return n + (fits ? (size_t)stated : 0);
}

static const struct {
    uint32_t bit;
    const char *name, *meaning;
} reasons[] = {
    {INEXACT_THREADS_UNKNOWN, "threads-unknown", "a gmon.out does not say whether calls of several threads were lost"},
    {INEXACT_CALLER_BUCKET, "caller-bucket",
     "a gmon.out rounds callers down to 16 bytes: one may be taken for the function before it"},
    {INEXACT_BINS_16_BIT, "16-bit-bins", "a gmon.out counts at most 65,535 ticks in one place, then begins at 0 again"},
    {INEXACT_CLOCK, "clock", "a sender's clock was wrong: its counts are in the time range of their arrival"},
    {INEXACT_SATURATED, "saturated", "a sum reached 2^63-1 and is larger"},
    {INEXACT_CALLS_LOST, "calls-lost",
     "a program could not count all calls, an import says that counts were lost, or a sum has more arcs than fit: the "
     "calls of the rarest count in the total only"},
    {INEXACT_TICKS_LOST, "ticks-lost",
     "a program did not get all ticks (some take SIGPROF themselves), an import says that counts were lost, or a sum "
     "has more histograms than fit"},
    {INEXACT_PAUSED, "paused", "counting was paused for some time"},
    {INEXACT_TICKS_OUTSIDE, "ticks-outside", "an import left out ticks in no known build, such as those of the kernel"},
    {INEXACT_END_NOT_SEEN, "end-not-seen", "the end of a process was not seen: its last counts are missing"},
    {INEXACT_NOT_READ, "not-read", "a live process has not been read since the daemon was started"},
    {INEXACT_LABEL_LEFT_OUT, "label-left-out",
     "a label of a process was invalid or contradicted what the daemon found, or has the value \"other\" because it "
     "had too many values: the process is not found by that label"},
    {INEXACT_SHARED_BINS, "shared-bins",
     "histogram bins hold code of several functions: self times marked ~ in the flat profile are estimates"},
    {INEXACT_SEGMENT_MISSING, "upload-missing",
     "counts of a host are missing: its upload could not be read, or the host does not have it any more"},
    {INEXACT_RESTORED, "restored",
     "this database, or that of a host, was restored from a backup: counts between the backup and the restore may be "
     "missing"},
    {INEXACT_HOST_TOTALS, "host-totals",
     "the centre stores only totals of this host, which groups shows: ask profd on the host for its functions"},
    {INEXACT_AMBIGUOUS_NAMES, "ambiguous-names",
     "an import names functions by a name that several have: the first of them got the counts of all"},
    {INEXACT_LEFT_OUT, "left-out",
     "functions were left out of counting on request (PROFD_LEAVE_OUT): calls into them are missing, all others are "
     "counted"},
    {INEXACT_NO_IDS, "no-ids",
     "a client sent profiles without ids: if it got no answer and sent one again, that one was counted twice"},
    {INEXACT_SAMPLED, "sampled",
     "a program does not count its calls: where there is a number, it is how often a tick found the callee below its "
     "caller"},
};
#define REASONS (sizeof reasons / sizeof *reasons)

/* Returns the number of a reason; that of all of them if the bit is none. */
static size_t reason_find(uint32_t bit)
{
    size_t i = 0;
    while (i < REASONS && reasons[i].bit != bit) {
        i++;
    }
    return i;
}

const char *message_inexact_name(uint32_t bit)
{
    const size_t at = reason_find(bit);
    return at < REASONS ? reasons[at].name : NULL;
}

const char *message_inexact_meaning(uint32_t bit)
{
    const size_t at = reason_find(bit);
    return at < REASONS ? reasons[at].meaning : NULL;
}

uint32_t message_inexact_parse(const char *text, size_t n)
{
    uint32_t bits = 0;
    for (size_t from = 0, to; from < n; from = to + 1) {
        for (to = from; to < n && text[to] != ',' && text[to] != ' '; to++) {
        }
        for (size_t i = 0; i < REASONS; i++) {
            const char *name = reasons[i].name;
            bits |= strlen(name) == to - from && memcmp(name, text + from, to - from) == 0 ? reasons[i].bit : 0;
        }
    }
    return bits;
}

void message_done(struct message *m)
{
    free(m->block);
    *m = (struct message){0};
}

/* The generated struct of one message, whatever its type. */
union wire {
    ProtobufCMessage base;
#define MESSAGE(name, number, member, type, fields) Profd__Wire__##type member;
#define EMPTY(name, number)
    MESSAGE_LIST(MESSAGE, EMPTY, , , , , , , , , )
#undef MESSAGE
#undef EMPTY
};

/* Generated structs have no const, because unpacking fills them in. Packing only reads. */
static void *wire_mutable(const void *read_only)
{
    union {
        const void *from;
        void *to;
    } cast = {.from = read_only};
    return cast.to;
}

/* NULL counts as "". */
static char *wire_text(const char *text)
{
    return wire_mutable(text == NULL ? "" : text);
}

/* The builds and labels of an upload: submessages and pointers to them, in one block (*block) that the caller frees. */
static enum profd_status wire_fill_lists(const struct message_upload *u, Profd__Wire__Upload *w, void **block,
                                         struct profd_error *e)
{
    FAIL_IF(u->build_count > LIMIT_BUILDS, e, PROFD_TOO_LARGE, "%zu builds, at most %u", u->build_count, LIMIT_BUILDS);
    FAIL_IF(u->label_count > LIMIT_LABELS, e, PROFD_TOO_LARGE, "%zu labels, at most %u", u->label_count, LIMIT_LABELS);
    struct lists {
        Profd__Wire__Build builds[LIMIT_BUILDS];
        Profd__Wire__Build *build_at[LIMIT_BUILDS];
        Profd__Wire__Label labels[LIMIT_LABELS];
        Profd__Wire__Label *label_at[LIMIT_LABELS];
    } *lists = malloc(sizeof *lists);
    FAIL_IF(lists == NULL, e, PROFD_NO_MEMORY, "no memory to encode an upload");
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
#define BYTES(field) to->field = (ProtobufCBinaryData){from->field.size, wire_mutable(from->field.data)};
#define BUILDS(count, field) status = wire_fill_lists(from, to, block, e);
#define NOTHING(count, field)
#define LIST(count, field)                                                                                             \
    to->n_##field = from->count;                                                                                       \
    to->field = wire_mutable(from->field);
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
        MESSAGE_LIST(MESSAGE, EMPTY, PLAIN, PLAIN, PLAIN, TEXT, BYTES, BUILDS, NOTHING, LIST, LIST)
    default:
        return profd_error_set(e, PROFD_UNKNOWN_TYPE, "message type %u cannot be encoded", m->type);
    }
}

/* Makes the frame: the header and the payload, which is compressed if the flags say so. */
static enum profd_status wire_pack(const struct message *m, const ProtobufCMessage *wire, uint16_t flags, uint32_t tag,
                                   uint8_t **out, size_t *out_size, struct profd_error *e)
{
    size_t payload = wire == NULL ? 0 : protobuf_c_message_get_packed_size(wire);
    FAIL_IF(payload > LIMIT_FRAME_PAYLOAD, e, PROFD_TOO_LARGE, "%s of %zu bytes: at most %u fit a frame",
            frame_type_name(m->type), payload, LIMIT_FRAME_PAYLOAD);
    uint8_t *frame = malloc(FRAME_HEADER_SIZE + payload);
    FAIL_IF(frame == NULL, e, PROFD_NO_MEMORY, "no memory for a frame of %zu bytes", payload);
    if (wire != NULL) {
        protobuf_c_message_pack(wire, frame + FRAME_HEADER_SIZE);
    }
    if (flags & FRAME_FLAG_COMPRESSED) {
        size_t capacity = deflate_bound(payload), size = 0;
        uint8_t *packed = malloc(FRAME_HEADER_SIZE + capacity);
        enum profd_status status =
            packed == NULL
                ? profd_error_set(e, PROFD_NO_MEMORY, "no memory to compress a payload of %zu bytes", payload)
                : deflate_pack(frame + FRAME_HEADER_SIZE, payload, true, packed + FRAME_HEADER_SIZE, capacity, &size,
                               e);
        if (!status && size > LIMIT_FRAME_PAYLOAD) {
            status = profd_error_set(e, PROFD_TOO_LARGE, "payload of %zu bytes: at most %u fit a frame", size,
                                     LIMIT_FRAME_PAYLOAD);
        }
        free(frame);
        if (status) {
            free(packed);
            return status;
        }
        frame = packed;
        payload = size;
    }
    frame_encode(&(struct frame_header){.length = (uint32_t)payload,
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

#undef PLAIN
#undef TEXT
#undef BYTES
#undef BUILDS
#undef NOTHING
#undef LIST
#undef MESSAGE
#undef EMPTY

/* Walks the fields of a message and, if inner, of its submessages (one level). MALFORMED: bytes that are not protobuf,
 * a string that is not UTF-8 or holds a NUL; the sentence names the field. Counting goes on beyond every limit. O(n),
 * takes no memory. */
static enum profd_status message_scan(const ProtobufCMessageDescriptor *d, const uint8_t *in, size_t n, bool inner,
                                      struct message_scan *scan, struct profd_error *e)
{
    const uint8_t *at = in, *end = n == 0 ? in : in + n;
    while (at < end) {
        struct scan_field f;
        const size_t offset = (size_t)(at - in);
        FAIL_IF(!scan_next(d, &at, end, &f), e, PROFD_MALFORMED, "%s is not protobuf: bad field at byte %zu",
                d->short_name, offset);
        scan->fields++;
        scan->of_number[inner && f.number < MESSAGE_SCAN_NUMBERS ? f.number : 0]++;
        FAIL_IF(f.known != NULL && f.known->type == PROTOBUF_C_TYPE_STRING && !utf8_valid(f.data, f.size), e,
                PROFD_MALFORMED,
                memchr(f.data, 0, f.size) != NULL ? "%s of %s contains a NUL" : "%s of %s is not UTF-8", f.known->name,
                d->short_name);
        if (inner && f.known != NULL && f.known->type == PROTOBUF_C_TYPE_MESSAGE) {
            TRY(message_scan(f.known->descriptor, f.data, f.size, false, scan, e));
        }
    }
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

/* The builds and labels of an upload. */
static bool decode_lists(const Profd__Wire__Upload *from, struct decode_block *block, struct message_upload *to)
{
    struct message_build *builds = decode_take(block, from->n_builds * sizeof *builds);
    struct message_label *labels = decode_take(block, from->n_labels * sizeof *labels);
    if (builds == NULL || labels == NULL) {
        return false;
    }
    for (size_t i = 0; i < from->n_builds; i++) {
        builds[i] = (struct message_build){from->builds[i]->build_id, from->builds[i]->name};
    }
    for (size_t i = 0; i < from->n_labels; i++) {
        labels[i] = (struct message_label){from->labels[i]->name, from->labels[i]->value};
    }
    to->builds = builds;
    to->build_count = from->n_builds;
    to->labels = labels;
    to->label_count = from->n_labels;
    return true;
}

/* Views of the unpacked message. False when the block is too small. */
static bool decode_view(const void *wire, struct decode_block *block, struct message *m)
{
    bool fits = true;
    switch (m->type) {
#define PLAIN(field) to->field = from->field;
#define BYTES(field) to->field = decode_bytes(from->field);
#define BUILDS(count, field) fits = decode_lists(from, block, to);
#define NOTHING(count, field)
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
        MESSAGE_LIST(MESSAGE, EMPTY, PLAIN, PLAIN, PLAIN, PLAIN, BYTES, BUILDS, NOTHING, TEXTS, NUMBERS)
    default:
        return false;
    }
}

/* Frees the block of a message of n bytes that does not fit its definition. */
static enum profd_status decode_misfit(const char *name, size_t n, struct decode_block *block, struct profd_error *e)
{
    free(block->data);
    return profd_error_set(e, PROFD_MALFORMED, "%s of %zu bytes does not fit its definition", name, n);
}

/* Takes the block, which has its capacity, and unpacks the message into it. On failure the block is freed. */
static enum profd_status decode_unpack(const ProtobufCMessageDescriptor *d, const char *name, const uint8_t *in,
                                       size_t n, struct decode_block *block, const ProtobufCMessage **wire,
                                       struct profd_error *e)
{
    ProtobufCAllocator allocator = {decode_take, decode_give, block};
    block->data = malloc(block->capacity);
    TRY(block->data != NULL ? PROFD_OK : profd_no_memory(e));
    *wire = protobuf_c_message_unpack(d, &allocator, n, in);
    return *wire != NULL ? PROFD_OK : decode_misfit(name, n, block, e);
}

enum profd_status message_decode(unsigned type, const uint8_t *payload, size_t n, struct message *m,
                                 struct profd_error *e)
{
    static const uint8_t nothing[1];
    const ProtobufCMessageDescriptor *d = decode_descriptor(type);
    const char *name = frame_type_name(type);
    FAIL_IF(name == NULL, e, PROFD_UNKNOWN_TYPE, "message type %u cannot be decoded", type);
    FAIL_IF(d == NULL && n != 0, e, PROFD_MALFORMED, "%s with a payload of %zu bytes: it has none", name, n);
    if (d == NULL) {
        *m = (struct message){.type = type};
        return PROFD_OK;
    }
    payload = payload == NULL ? nothing : payload;

    /* Whatever can be refused is refused before memory is taken. */
    struct message_scan scan = {0};
    FAIL_IF(n > LIMIT_FRAME_PAYLOAD, e, PROFD_TOO_LARGE, "%s of %zu bytes, at most %u", name, n, LIMIT_FRAME_PAYLOAD);
    TRY(message_scan(d, payload, n, true, &scan, e));
    FAIL_IF(type == FRAME_UPLOAD && scan.of_number[6] > LIMIT_BUILDS, e, PROFD_TOO_LARGE, "%zu builds, at most %u",
            scan.of_number[6], LIMIT_BUILDS);
    FAIL_IF(type == FRAME_UPLOAD && scan.of_number[7] > LIMIT_LABELS, e, PROFD_TOO_LARGE, "%zu labels, at most %u",
            scan.of_number[7], LIMIT_LABELS);
    FAIL_IF(type == FRAME_ADMIN && scan.of_number[2] > LIMIT_ADMIN_ARGUMENTS, e, PROFD_TOO_LARGE,
            "%zu arguments, at most %u", scan.of_number[2], LIMIT_ADMIN_ARGUMENTS);
    FAIL_IF(scan.fields > MESSAGE_FIELDS_MAX, e, PROFD_TOO_LARGE, "%s of %zu fields, at most %d", name, scan.fields,
            MESSAGE_FIELDS_MAX);

    struct decode_block block = {.capacity = DECODE_BASE + n + scan.fields * DECODE_PER_FIELD};
    const ProtobufCMessage *wire;
    struct message result = {.type = type};
    TRY(decode_unpack(d, name, payload, n, &block, &wire, e));
    result.block = block.data;
    if (!decode_view(wire, &block, &result)) {
        return decode_misfit(name, n, &block, e);
    }
    *m = result;
    return PROFD_OK;
}

enum profd_status message_decode_batch(const uint8_t *in, size_t n, struct message_batch *out, struct profd_error *e)
{
    static const uint8_t nothing[1];
    const ProtobufCMessageDescriptor *d = &profd__wire__batch__descriptor;
    struct message_scan scan = {0};
    in = in == NULL ? nothing : in;
    TRY(message_scan(d, in, n, true, &scan, e));
    FAIL_IF(scan.fields > MESSAGE_FIELDS_MAX, e, PROFD_TOO_LARGE,
            "a batch of %zu fields, at most %d: send fewer uploads at once", scan.fields, MESSAGE_FIELDS_MAX);
    struct decode_block block = {.capacity = DECODE_BASE + n + scan.fields * DECODE_PER_FIELD};
    const ProtobufCMessage *wire;
    TRY(decode_unpack(d, "the batch", in, n, &block, &wire, e));
    const Profd__Wire__Batch *from = (const Profd__Wire__Batch *)wire;
    struct message_bytes *uploads = decode_take(&block, from->n_uploads * sizeof *uploads);
    struct message_offer *offers = decode_take(&block, from->n_offers * sizeof *offers);
    if (uploads == NULL || offers == NULL) {
        return decode_misfit("the batch", n, &block, e);
    }
    for (size_t i = 0; i < from->n_uploads; i++) {
        uploads[i] = decode_bytes(from->uploads[i]);
    }
    for (size_t i = 0; i < from->n_offers; i++) {
        const Profd__Wire__Offer *o = from->offers[i];
        offers[i] = (struct message_offer){o->build_id, decode_bytes(o->hash), o->size};
    }
    *out = (struct message_batch){.centre = decode_bytes(from->centre),
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
                                  .block = block.data};
    return PROFD_OK;
}

void message_batch_done(struct message_batch *b)
{
    free(b->block);
    *b = (struct message_batch){.block = NULL};
}
