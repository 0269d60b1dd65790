/* Shared by the encoder and decoder of segments. Private to proto/segment*. */
#ifndef PROFD_PROTO_SEGMENT_INTERNAL_H
#define PROFD_PROTO_SEGMENT_INTERNAL_H

#include "proto/segment.h"
#include "proto/varint.h"

#define SEGMENT_HISTOGRAM_LEAST 9u /* bytes of the smallest histogram, bin, arc and share */
#define SEGMENT_BIN_LEAST 2u
#define SEGMENT_ARC_LEAST 6u
#define SEGMENT_SHARE_LEAST 1u
#define SEGMENT_TREE_LEAST 4u
#define SEGMENT_NODE_LEAST 4u

struct segment_sizes {
    uint64_t histograms, bins, arcs, shares, trees, nodes;
};
/* TOO_LARGE if there are too many. */
enum profd_status segment_judge_sizes(const struct segment_sizes *n, struct profd_error *e);

/* The envelope (segment_pack.c): version, digest of the content, size and content compressed. Both make a new block
 * that the caller frees. */
enum profd_status segment_pack(const uint8_t *content, size_t n, uint8_t **out, size_t *out_size,
                               struct profd_error *e);
enum profd_status segment_unpack(const uint8_t *in, size_t n, uint8_t **content, size_t *size, struct profd_error *e);

#endif
