/* Shared by the encoder and decoder of counts. Private to proto/counts*. */
#ifndef PROFD_PROTO_COUNTS_INTERNAL_H
#define PROFD_PROTO_COUNTS_INTERNAL_H

#include "proto/counts.h"
#include "proto/limits.h"

#define COUNTS_FORMAT 1         /* first byte of the stored encoding */
#define COUNTS_FORMAT_STACKS 2  /* if there are trees */
#define COUNTS_HISTOGRAM_MIN 8u /* encoded bytes of the smallest histogram */
#define COUNTS_BIN_MIN 2u
#define COUNTS_ARC_MIN 3u
#define COUNTS_HISTOGRAM_MAX 72u /* and of the largest */
#define COUNTS_BIN_MAX 15u
#define COUNTS_ARC_MAX 55u
#define COUNTS_TREE_MIN 4u
#define COUNTS_TREE_MAX 32u
#define COUNTS_NODE_MIN 3u
#define COUNTS_NODE_MAX 37u

/* Addresses of nodes are encoded as differences to the one before of the same build; this many are remembered, by the
 * build's remainder. The last is that of COUNTS_NOWHERE. */
#define COUNTS_NODE_BUILDS (LIMIT_BUILDS + 1)
static inline uint32_t counts_node_slot(uint32_t build)
{
    return build == COUNTS_NOWHERE ? LIMIT_BUILDS : build % LIMIT_BUILDS;
}

/* Like counts_init_sizes; the arrays are zeroed only if zeroed says so. */
enum profd_status counts_take_block(struct counts *c, const struct counts_sizes *sizes, bool zeroed,
                                    struct profd_error *e);

/* Rules of limits.h. TOO_LARGE or OK. */
enum profd_status counts_judge_sizes(uint64_t histograms, uint64_t bins, uint64_t arcs, struct profd_error *e);

/* At most one histogram has the collector's counters. MALFORMED or OK. */
enum profd_status counts_check_collector(const struct counts *c, struct profd_error *e);

/* Adds to a sum of ticks, which saturates at 2^63−1 as stored sums do. */
static inline void counts_add(uint64_t *sum, uint64_t ticks)
{
    if (__builtin_add_overflow(*sum, ticks, sum) || *sum > (uint64_t)INT64_MAX) {
        *sum = (uint64_t)INT64_MAX;
    }
}

#endif
