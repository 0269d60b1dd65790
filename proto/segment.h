/* A segment: a sum on its way from a host to the centre, and its encoding, which profd-segment(5) specifies. Pure. */
#ifndef PROFD_PROTO_SEGMENT_H
#define PROFD_PROTO_SEGMENT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "proto/counts.h"
#include "proto/limits.h"
#include "proto/message.h"
#include "proto/status.h"

#define SEGMENT_VERSION 1
#define SEGMENT_EPOCH_SIZE 12
#define SEGMENT_DIGEST_SIZE 32
#define SEGMENT_DIGEST_AT 1 /* in an encoded segment */
#define SEGMENT_GROUPS 16u  /* random groups of processes (DECISIONS 29) */
#define SEGMENT_COUNT_MAX ((uint64_t)INT64_MAX)
#define SEGMENT_HOUR INT64_C(3600000000000) /* ns */
#define SEGMENT_HOUR_MAX (INT64_MAX / SEGMENT_HOUR - 1)

/* What the key stands for. Of the last two there is nothing else: */
enum segment_kind {
    SEGMENT_COUNTS,
    SEGMENT_WITHDRAWN, /* the host deleted it before it was acknowledged */
    SEGMENT_DROPPED,   /* the host does not have it: a restored centre cannot get it, or the host was restored */
    SEGMENT_KINDS
};

/* Rows are the bins, histogram after histogram, after them the arcs, and after them the nodes of the stacks. Bit g of
 * groups[row] is set if processes of group g have a share in the row; the shares of a row are in order of groups, those
 * of all rows one after the other. A row's number is the sum of its shares, which stops at SEGMENT_COUNT_MAX. */
struct segment_counts {
    uint32_t histogram_count, bin_count, arc_count, share_count, tree_count, node_count;
    struct counts_histogram *histograms; /* ascend as core/rollup.h says; first is the index of their first bin */
    uint32_t *histogram_rank; /* position in order of first arrival: a permutation of 0 … histogram_count−1 */
    uint32_t *bin_index;
    uint32_t *from_build, *to_build; /* arcs ascend by (from_build, from, to_build, to), COUNTS_NOWHERE last */
    uint64_t *from, *to;
    uint32_t *rank;            /* as histogram_rank, of the arcs */
    struct counts_tree *trees; /* as struct counts has them */
    uint8_t *node_depth, *node_kind;
    uint32_t *node_build;
    uint64_t *node_address;
    uint16_t *groups;
    uint64_t *shares; /* 1 to SEGMENT_COUNT_MAX */
};

struct segment {
    enum segment_kind kind;
    uint8_t epoch[SEGMENT_EPOCH_SIZE]; /* drawn at random at each start of the host's daemon */
    uint64_t sequence;                 /* in the epoch, from 1, in order of opening */
    int64_t hour;                      /* since the epoch of time, UTC: last / SEGMENT_HOUR */

    uint32_t uid;        /* on the host */
    int64_t first, last; /* ns: earliest start and latest end of a window in it */
    int64_t ended;       /* ns: the earliest end, in that hour */
    uint32_t inexact;    /* enum message_inexact, those of INEXACT_SENT */
    bool saturated;      /* a sum stopped at SEGMENT_COUNT_MAX */
    uint64_t uploads;
    uint64_t processes[SEGMENT_GROUPS]; /* by group; a process counts where its first upload is */
    uint32_t program;                   /* index into builds */
    size_t build_count;
    const struct message_build *builds; /* in load order, none twice */
    size_t label_count;
    const struct message_label *labels; /* ascending by name, none twice, no empty values */
    struct segment_counts counts;
    void *block, *text; /* of a decoded segment: own its arrays and strings */
};

/* Checks every rule above, and those of limits.h. MALFORMED or TOO_LARGE with the rule and the value, NO_MEMORY or OK.
 * O(size). */
enum profd_status segment_check(const struct segment *s, struct profd_error *e);

/* Encodes into a new block that the caller frees. Equal segments have equal contents, and so equal digests. Refuses as
 * segment_check. O(size). */
enum profd_status segment_encode(const struct segment *s, uint8_t **out, size_t *out_size, struct profd_error *e);

/* Decodes and checks; segment_done frees. MALFORMED, TOO_LARGE, UNKNOWN_VERSION, NO_MEMORY or OK; on failure nothing is
 * allocated. What decodes is what segment_encode would encode to the same content. Sizes are checked against the bytes
 * before memory is taken. O(bytes). */
enum profd_status segment_decode(const uint8_t *in, size_t n, struct segment *s, struct profd_error *e);
void segment_done(struct segment *s);

/* The bytes of an encoded segment's content as its head states them; 0 if it would be refused for its head. O(1). */
size_t segment_content_size(const uint8_t *in, size_t n);

#endif
