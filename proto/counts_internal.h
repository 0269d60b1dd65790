/* Shared by the encoder and decoder of counts. Private to proto/counts*. */
#ifndef PROFD_PROTO_COUNTS_INTERNAL_H
#define PROFD_PROTO_COUNTS_INTERNAL_H

#include "proto/counts.h"
#include "proto/limits.h"

#define COUNTS_FORMAT 1        /* first byte of the encoding */
#define COUNTS_SHARES_FORMAT 2 /* and of that of shares */
#define COUNTS_FLAG_SORTED 1u
#define COUNTS_FLAG_SATURATED 2u
#define COUNTS_FLAGS (COUNTS_FLAG_SORTED | COUNTS_FLAG_SATURATED)
#define COUNTS_SECTIONS 3u                         /* arcs, histograms, stacks */
#define COUNTS_HEAD_MAX (2 + 12 * VARINT_MAX)      /* bytes before the sections */
#define COUNTS_HISTOGRAM_MIN 8u                    /* encoded bytes of the smallest histogram, without its bins */
#define COUNTS_HISTOGRAM_MAX (32 + 7 * VARINT_MAX) /* and of the largest */
#define COUNTS_TREE_MAX 32u                        /* of the largest tree, without its nodes */

/* Takes one block for arrays of these sizes. NO_MEMORY or OK. */
enum profd_status counts_take_block(struct counts *c, const struct counts_sizes *sizes,
                                    const struct counts_memory *memory, struct profd_error *e);

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
