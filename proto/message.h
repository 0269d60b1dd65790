/* Messages as C structs, and their protobuf bytes. The only place that sees generated code. */
#ifndef PROFD_PROTO_MESSAGE_H
#define PROFD_PROTO_MESSAGE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "proto/message_list.h"
#include "proto/status.h"

#define UPLOAD_SENDER_SIZE 12

/* A view of bytes inside the decoded message. A NUL follows the bytes, which may contain further NULs. */
struct message_bytes {
    const uint8_t *data;
    size_t size;
};

struct message_build {
    const char *build_id; /* NUL-terminated; not yet validated */
    const char *name;
};

struct message_label {
    const char *name;
    const char *value;
};

/* struct message_hello, message_welcome, …: the fields of each type. Strings are never NULL. */
#define MESSAGE(name, number, member, type, fields)                                                                    \
    struct message_##member {                                                                                          \
        fields                                                                                                         \
    };
#define EMPTY(name, number)
#define U32(field) uint32_t field;
#define U64(field) uint64_t field;
#define FLAG(field) bool field;
#define TEXT(field) const char *field;
#define BYTES(field) struct message_bytes field;
#define BUILDS(count, field)                                                                                           \
    size_t count;                                                                                                      \
    const struct message_build *field;
#define LABELS(count, field)                                                                                           \
    size_t count;                                                                                                      \
    const struct message_label *field;
#define TEXTS(count, field)                                                                                            \
    size_t count;                                                                                                      \
    const char *const *field;
#define NUMBERS(count, field)                                                                                          \
    size_t count;                                                                                                      \
    const uint64_t *field;
MESSAGE_LIST(MESSAGE, EMPTY, U32, U64, FLAG, TEXT, BYTES, BUILDS, LABELS, TEXTS, NUMBERS)
#undef MESSAGE
#undef U32
#undef U64
#undef FLAG
#undef TEXT
#undef BYTES
#undef BUILDS
#undef LABELS
#undef TEXTS
#undef NUMBERS

enum message_inexact {
    INEXACT_THREADS_UNKNOWN = 1,
    INEXACT_CALLER_BUCKET = 2,
    INEXACT_BINS_16_BIT = 4,
    INEXACT_CLOCK = 8,
    INEXACT_SATURATED = 16,
    INEXACT_CALLS_LOST = 32,
    INEXACT_END_NOT_SEEN = 64,
    INEXACT_SAMPLED = 128,
    INEXACT_TICKS_OUTSIDE = 256,
    INEXACT_PAUSED = 512,
    INEXACT_NOT_READ = 1024, /* of a report only: this run of the daemon has not yet read a process that counts */
    INEXACT_LABEL_LEFT_OUT = 2048,
    INEXACT_SHARED_BINS = 4096,     /* of a report and its exports only: some self times are estimates */
    INEXACT_SEGMENT_MISSING = 8192, /* no upload has it: an upload of a host was not counted */
    INEXACT_RESTORED = 16384,       /* no upload has it: a database was restored from a backup; counts may be missing */
    INEXACT_HOST_TOTALS = 32768,    /* of a report only: only totals are stored for the selected host */
    INEXACT_AMBIGUOUS_NAMES = 65536,
    INEXACT_LEFT_OUT = 131072,
    INEXACT_TICKS_LOST = 262144,
    INEXACT_NO_IDS = 524288,
    INEXACT_SENT = 990207, /* the reasons that an upload may have */
    INEXACT_ALL = 1048575,
};
/* INEXACT_CALLS are the reasons that concern calls, INEXACT_TICKS those that concern ticks. INEXACT_BOTH are in both
 * lists: for example a clock that was not accepted (the window of the counts is unknown), a saturated sum, an
 * unobserved end, and ambiguous names (counts may be shown at another function of that name).
 * A label that was left out is in neither list: the counts are complete, but the label does not
 * select them. */
#define INEXACT_BOTH                                                                                                   \
    ((unsigned)INEXACT_CLOCK | INEXACT_SATURATED | INEXACT_END_NOT_SEEN | INEXACT_PAUSED | INEXACT_NOT_READ |          \
     INEXACT_SEGMENT_MISSING | INEXACT_RESTORED | INEXACT_HOST_TOTALS | INEXACT_AMBIGUOUS_NAMES)
#define INEXACT_CALLS                                                                                                  \
    (INEXACT_BOTH | INEXACT_CALLS_LOST | INEXACT_THREADS_UNKNOWN | INEXACT_CALLER_BUCKET | INEXACT_SAMPLED |           \
     INEXACT_LEFT_OUT)
#define INEXACT_TICKS                                                                                                  \
    (INEXACT_BOTH | INEXACT_TICKS_LOST | INEXACT_BINS_16_BIT | INEXACT_TICKS_OUTSIDE | INEXACT_SHARED_BINS |           \
     INEXACT_NO_IDS)
/* Returns the name of one bit in reports, such as "threads-unknown"; NULL for any other value. */
const char *message_inexact_name(uint32_t bit);
/* Returns a sentence that explains the bit. */
const char *message_inexact_meaning(uint32_t bit);
/* Returns the bits of a list of names such as "caller-bucket, sampled". Its n bytes need no NUL. Unknown names are
 * skipped. */
uint32_t message_inexact_parse(const char *text, size_t n);

/* One decoded message of any type; type is a frame_type. Strings and arrays live in *block. */
struct message {
    unsigned type;
    union {
#define MESSAGE(name, number, member, type, fields) struct message_##member member;
        MESSAGE_LIST(MESSAGE, EMPTY, , , , , , , , , )
#undef MESSAGE
#undef EMPTY
    } as;
    void *block;
};

/* Encodes m (type and the fields of that type) as a whole frame, header included, in a new block that the caller
 * frees. flags and tag go into the header. SYNC and ATTACH have an empty payload.
 * TOO_LARGE, NO_MEMORY or OK. */
enum profd_status message_encode(const struct message *m, uint16_t flags, uint32_t tag, uint8_t **out, size_t *out_size,
                                 struct profd_error *e);

/* Decodes the payload of a frame of that type (already decompressed). Strings must be valid UTF-8 without NUL, and the
 * numbers of builds and labels within limits.h. The caller validates the values. message_done frees. */
enum profd_status message_decode(unsigned type, const uint8_t *payload, size_t n, struct message *m,
                                 struct profd_error *e);
void message_done(struct message *m);

/* Finds the counts in an UPLOAD's payload without decoding it. Returns a view of the payload; its size is 0 if there
 * are no counts, or if the payload would be refused. O(fields). */
struct message_bytes message_upload_counts(const uint8_t *payload, size_t n);
/* Returns the size that an UPLOAD's payload has after its counts are decompressed, without decoding it. A few bytes may
 * expand to half a gigabyte. O(fields). */
size_t message_upload_weight(const uint8_t *payload, size_t n);

/* An offer of symbols in a Batch (profd.proto), the body of POST /api/v1/uploads. A Batch is not a frame. */
struct message_offer {
    const char *build_id;
    struct message_bytes hash; /* of the host's symbols; size 0: the host has none */
    uint64_t size;
};

/* Meaning and units: profd.proto. Absent texts and bytes are empty. */
struct message_batch {
    struct message_bytes centre, incarnation;
    const char *host, *machine, *boot, *version;
    uint64_t clock, number, held, oldest;
    size_t upload_count;
    const struct message_bytes *uploads;
    size_t offer_count;
    const struct message_offer *offers;
    void *block; /* owns everything */
};

/* Decodes a Batch, which message_batch_done frees. MALFORMED or TOO_LARGE with the rule and the value, NO_MEMORY or OK;
 * on failure *out is unchanged. Needs a little more memory than n bytes. O(n). */
enum profd_status message_decode_batch(const uint8_t *in, size_t n, struct message_batch *out, struct profd_error *e);
void message_batch_done(struct message_batch *b);

#endif
