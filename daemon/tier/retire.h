/* What the tier does for blocks of which the database has nothing any more: they become invisible to other centres, and
 * the partition of a day goes when the database has no block of it. */
#ifndef PROFD_TIER_RETIRE_H
#define PROFD_TIER_RETIRE_H

#include <stddef.h>
#include <stdint.h>

#include "base/clickhouse_address.h"
#include "proto/status.h"
#include "store/store.h"
#include "tier/clickhouse.h"

#define RETIRE_AT_ONCE 256u

/* Of this call: the blocks that may be forgotten. */
struct retired {
    uint64_t numbers[RETIRE_AT_ONCE];
    size_t count;
};

struct retire_setup {
    const struct clickhouse_address *address; /* each of its servers is asked to drop its part */
    const char *ca;                           /* NULL: the system's */
    const struct clickhouse_limits *limits;
    const char *name; /* of this centre */
    int64_t now;      /* ns */
};

/* Retires blocks that are GONE; on OK, all of *out are. client is connected to the address, s any handle. It may be
 * repeated after it ended anywhere. Statuses as of clickhouse_insert. */
enum profd_status retire_blocks(const struct retire_setup *setup, struct clickhouse *client, struct store *s,
                                struct retired *out, struct profd_error *e);

#endif
