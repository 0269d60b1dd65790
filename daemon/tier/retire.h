/* What the tier does for blocks of which the database has nothing any more: they become invisible to other centres, and
 * the partition of a day goes when the database has no block of it. */
#ifndef PROFD_TIER_RETIRE_H
#define PROFD_TIER_RETIRE_H

#include <stddef.h>
#include <stdint.h>

#include "proto/status.h"
#include "store/store.h"

#define RETIRE_AT_ONCE 256u

struct steps;

/* Blocks that are GONE. */
struct retired {
    struct store_block blocks[RETIRE_AT_ONCE];
    size_t count;
};

/* On lane 0 of the sealer: retires blocks, at `now` (ns). On OK, those of *out may be forgotten. It may be repeated
 * after it ended anywhere. Statuses as of clickhouse_insert. */
enum profd_status retire_blocks(struct steps *s, int64_t now, struct retired *out, struct profd_error *e);

#endif
