/* What a host sends to a centre: message Upload of profd.proto, encoded. It is an upload of one process, or a sum of
 * uploads, which has shares. Pure. */
#ifndef PROFD_PROTO_SEGMENT_H
#define PROFD_PROTO_SEGMENT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "proto/counts.h"
#include "proto/limits.h"
#include "proto/message.h"
#include "proto/status.h"

#define SEGMENT_VERSION 1 /* of the encoding of its counts */
#define SEGMENT_EPOCH_SIZE UPLOAD_SENDER_SIZE
#define SEGMENT_DIGEST_SIZE 32
#define SEGMENT_GROUPS COUNTS_GROUPS /* random groups of processes (DECISIONS 29) */
#define SEGMENT_COUNT_MAX ((uint64_t)INT64_MAX)
#define SEGMENT_HOUR INT64_C(3600000000000) /* ns */
#define SEGMENT_CHECKSUM_SIZE 8u            /* the last bytes of a sum or a key: SHA-256 of what precedes their field */
#define SEGMENT_CHECKSUM_FIELD 11u          /* that field with its tag and length */
#define SEGMENT_BOOT_MAX 36u                /* bytes of a boot-id */

/* What the key stands for. Of the last two there are only the key and the hour. */
enum segment_kind {
    SEGMENT_COUNTS,
    SEGMENT_WITHDRAWN, /* the host deleted it before it was acknowledged */
    SEGMENT_DROPPED,   /* the host does not have it: a restored centre cannot get it, or the host was restored */
    SEGMENT_KINDS
};

struct segment {
    enum segment_kind kind;
    uint8_t epoch[SEGMENT_EPOCH_SIZE]; /* of a sum: drawn at random at each start of the host's daemon */
    uint64_t sequence;                 /* in the epoch, from 1, in order of opening; at most 2^32−1 */
    int64_t hour;                      /* since the epoch of time, UTC: of last */

    uint32_t uid;        /* on the host */
    int64_t first, last; /* ns: earliest start and latest end of a window in it; last 0: unknown */
    int64_t ended;       /* ns: the earliest end, in that hour */
    uint32_t inexact;    /* enum message_inexact, those of INEXACT_SENT */
    uint64_t uploads;
    uint64_t processes[SEGMENT_GROUPS]; /* by group; a process counts where its first upload is */
    uint32_t program;                   /* index into builds */
    size_t build_count;
    const struct message_build *builds; /* in load order, none twice */
    size_t label_count;
    const struct message_label *labels; /* of a decoded segment: ascending by name, none twice, no empty values */
    const char *boot;                   /* boot-id of the host's kernel when the epoch began; "" or NULL: unknown */
    struct counts counts;               /* of a sum: sorted, as if all had arrived with upload 0 */
    struct message_bytes shares;        /* counts_encode_shares; size 0: everything is of group */
    uint32_t group;
    struct message message; /* of a decoded segment: owns its strings and bytes */
    void *block;            /* and this its labels */
};

/* Encodes a sum, or a key, into a new block that the caller frees. MALFORMED or TOO_LARGE if segment_decode would
 * refuse it, except that labels are taken as they are; NO_MEMORY or OK. O(size). */
enum profd_status segment_encode(const struct segment *s, uint8_t **out, size_t *out_size, struct profd_error *e);

/* Decodes and checks an upload or a sum; segment_done frees. The counts of an upload may be in order of first arrival;
 * those of a sum are sorted. Sizes are checked against the bytes and LIMIT_SEGMENT_ROWS before memory is taken.
 * MALFORMED, TOO_LARGE, UNKNOWN_VERSION, NO_MEMORY or OK; on failure *s is empty except for epoch and sequence, which
 * are those of the bytes, or 0 if they have none. O(bytes). */
enum profd_status segment_decode(const uint8_t *in, size_t n, struct segment *s, struct profd_error *e);
void segment_done(struct segment *s);

/* SHA-256 of an encoded segment. Two with one key and different digests were sent by two machines. */
void segment_digest(const uint8_t *in, size_t n, uint8_t out[SEGMENT_DIGEST_SIZE]);

/* Bytes of memory that a segment takes besides its bytes when it is decoded, as its counts state; 0 if it would be
 * refused for them. O(fields). */
size_t segment_weight(const uint8_t *in, size_t n);

#endif
