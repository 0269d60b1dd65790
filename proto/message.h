/* Messages as C structs, and their protobuf bytes. The only place that sees generated code. */
#ifndef PROFD_PROTO_MESSAGE_H
#define PROFD_PROTO_MESSAGE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "proto/status.h"

#define UPLOAD_SENDER_SIZE 12

/* A view of bytes inside the decoded message; NUL-terminated too, but may hold NULs of its own. */
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

/* Meaning of each field: profd.proto. Strings are never NULL. */
struct message_hello {
    uint32_t version_oldest, version_newest;
    const char *client;
};
struct message_welcome {
    uint32_t version, payload_max, in_flight_max;
    const char *daemon;
    uint64_t run, refused; /* 0: an older daemon, which does not say */
};
struct message_upload {
    struct message_bytes sender;
    uint32_t sequence;
    uint64_t start, end;
    uint32_t program;
    size_t build_count;
    const struct message_build *builds;
    size_t label_count;
    const struct message_label *labels;
    struct message_bytes counts;
    uint32_t inexact;
    uint32_t processes_started;
    const char *host;
    struct message_bytes process; /* size 0: this is all that its process sends */
};
struct message_ack {
    bool duplicate;
    uint64_t run, refused; /* of a SYNC */
};
struct message_nack {
    uint32_t status;
    bool retry;
    uint32_t retry_after_ms;
    const char *sentence;
};
struct message_object { /* OBJECT and WANT_OBJECT */
    const char *build_id;
    const char *name;
};
struct message_decline {
    const char *build_id;
    const char *reason;
};
struct message_query {
    const char *target;
    const char *if_none_match;
};
struct message_reply {
    uint32_t http_status;
    const char *content_type;
    const char *etag;
    struct message_bytes body;
    uint64_t done, total;
};
struct message_admin {
    const char *verb;
    size_t argument_count;
    const char *const *arguments;
};

enum message_inexact {
    INEXACT_THREADS_UNKNOWN = 1,
    INEXACT_CALLER_BUCKET = 2,
    INEXACT_BINS_16_BIT = 4,
    INEXACT_CLOCK = 8,
    INEXACT_SATURATED = 16,
    INEXACT_LOST = 32,
    INEXACT_END_NOT_SEEN = 64,
    INEXACT_SAMPLED = 128,
    INEXACT_TICKS_OUTSIDE = 256,
    INEXACT_PAUSED = 512,
    INEXACT_NOT_READ = 1024, /* of a report only: a process counts that this run of the daemon did not read yet */
    INEXACT_LABEL_LEFT_OUT = 2048,
    INEXACT_SENT = 3071, /* the reasons that an upload may have */
    INEXACT_ALL = 4095,
};
/* The reasons that concern calls, and those that concern ticks: calls are exact if none of the former is set. Both
 * lists include lost counts, a clock that was not accepted (the window of the counts is unknown), a saturated sum, and
 * an unobserved end. A label that was left out is in neither: the counts are complete, but that label does not select
 * them. */
#define INEXACT_BOTH                                                                                                   \
    ((unsigned)INEXACT_LOST | INEXACT_CLOCK | INEXACT_SATURATED | INEXACT_END_NOT_SEEN | INEXACT_PAUSED |              \
     INEXACT_NOT_READ)
#define INEXACT_CALLS (INEXACT_BOTH | INEXACT_THREADS_UNKNOWN | INEXACT_CALLER_BUCKET | INEXACT_SAMPLED)
#define INEXACT_TICKS (INEXACT_BOTH | INEXACT_BINS_16_BIT | INEXACT_TICKS_OUTSIDE)
/* "threads-unknown" … for one bit, as reports show it; NULL for anything else. */
const char *message_inexact_name(uint32_t bit);
/* The same bit in a sentence for people. */
const char *message_inexact_meaning(uint32_t bit);

/* One decoded message of any type; type is a frame_type. Strings and arrays live in *block. */
struct message {
    unsigned type;
    union {
        struct message_hello hello;
        struct message_welcome welcome;
        struct message_upload upload;
        struct message_ack ack;
        struct message_nack nack;
        struct message_object object;
        struct message_decline decline;
        struct message_query query;
        struct message_reply reply;
        struct message_admin admin;
    } as;
    void *block;
};

/* Encodes m (type and the fields of that type) as a whole frame, header included, in a new block that the caller
 * frees. flags and tag go into the header. SYNC and ATTACH have an empty payload. TOO_LARGE, NO_MEMORY or OK. */
enum profd_status message_encode(const struct message *m, uint16_t flags, uint32_t tag, uint8_t **out, size_t *out_size,
                                 struct profd_error *e);

/* Decodes the payload of a frame of that type (already decompressed). Strings must be valid UTF-8 without NUL, and the
 * numbers of builds and labels within limits.h. The caller validates the values. message_done frees. */
enum profd_status message_decode(unsigned type, const uint8_t *payload, size_t n, struct message *m,
                                 struct profd_error *e);
void message_done(struct message *m);

/* Estimates the bytes of an UPLOAD's payload after its counts are decompressed, before anything is decoded: a few bytes
 * may expand to half a gigabyte. If it cannot be estimated cheaply, it is the maximum. O(1), no error. */
size_t message_upload_weight(const uint8_t *payload, size_t n);

#endif
