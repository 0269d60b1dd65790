/* An upload of a host to a centre: message Upload of profd.proto, encoded. It is either an upload of one process, or an
 * outgoing upload: a sum of accepted uploads, with shares. In names of code both are segments. Pure. */
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
#define SEGMENT_GROUPS COUNTS_GROUPS /* random groups of processes */
#define SEGMENT_COUNT_MAX ((uint64_t)INT64_MAX)
#define SEGMENT_HOUR INT64_C(3600000000000) /* ns */
#define SEGMENT_CHECKSUM_SIZE 8u            /* last bytes of a sum or a key: of the SHA-256 of all bytes before */
#define SEGMENT_CHECKSUM_FIELD 11u          /* that field with its tag and length */
#define SEGMENT_BOOT_MAX 36u                /* bytes of a boot-id */

/* The meaning of a key. The last two kinds have only a key and an hour. */
enum segment_kind {
    SEGMENT_COUNTS,
    SEGMENT_WITHDRAWN, /* the host deleted the counts before they were acknowledged */
    SEGMENT_DROPPED,   /* the host lacks the counts, and so does the centre: one of them was restored */
    SEGMENT_KINDS
};

struct segment {
    enum segment_kind kind;
    uint8_t epoch[SEGMENT_EPOCH_SIZE]; /* of a sum: drawn at random at each start of the host's daemon */
    uint64_t sequence;                 /* in the epoch, from 1, in order of opening; at most 2^32−1 */
    int64_t hour;                      /* hour of last, since 1970-01-01 UTC */

    uint32_t uid;        /* on the host */
    int64_t first, last; /* ns: earliest start and latest end of a window; last 0: unknown */
    int64_t ended;       /* ns: the earliest end of a window, in the same hour */
    uint32_t inexact;    /* enum message_inexact, those of INEXACT_SENT */
    uint64_t uploads;
    uint64_t processes[SEGMENT_GROUPS]; /* by group; a process counts with its first upload */
    uint32_t program;                   /* index into builds */
    size_t build_count;
    const struct message_build *builds; /* in load order, none twice */
    size_t label_count;
    const struct message_label *labels; /* of a decoded segment: ascending by name, none twice, no empty values */
    const char *boot;                   /* boot-id of the host's kernel when the epoch began; "" or NULL: unknown */
    struct counts counts;               /* of a sum: sorted, and all of upload 0 */
    struct message_bytes shares;        /* of counts_encode_shares; size 0: all counts belong to group */
    uint32_t group;
    struct message message; /* owns the strings and bytes of a decoded segment */
    void *block;            /* owns its labels */
};

/* Encodes a sum or a key into a new block that the caller frees. MALFORMED or TOO_LARGE if segment_decode would refuse
 * the bytes, but labels are not checked; NO_MEMORY or OK. O(size). */
enum profd_status segment_encode(const struct segment *s, uint8_t **out, size_t *out_size, struct profd_error *e);

/* Decodes and checks an upload or a sum, which segment_done frees. The counts of an upload may be in order of first
 * arrival; those of a sum are sorted. Sizes are checked against the bytes and LIMIT_SEGMENT_ROWS before memory is
 * taken. MALFORMED, TOO_LARGE, UNKNOWN_VERSION, NO_MEMORY or OK; on failure *s is empty except for epoch and sequence,
 * which are those of the bytes, or 0 if they have none. O(bytes). */
enum profd_status segment_decode(const uint8_t *in, size_t n, struct segment *s, struct profd_error *e);
void segment_done(struct segment *s);

/* Computes the SHA-256 of an encoded segment. One key with two digests was sent by two machines. */
void segment_digest(const uint8_t *in, size_t n, uint8_t out[SEGMENT_DIGEST_SIZE]);

/* Returns the memory, in addition to its bytes, that the segment needs when it is decoded, as its counts state. 0 if it
 * would be refused because of them. O(fields). */
size_t segment_weight(const uint8_t *in, size_t n);

/* Returns the random group, below 16, of the process with that key of that user on that host (a machine-id in lower
 * case, or ""). It is the same for all uploads of the process (schema/spread.md). O(n). */
uint32_t process_group_find(const char *host, uint32_t uid, const void *key, size_t n);

#endif
