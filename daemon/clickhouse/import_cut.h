/* A sum in parts of which each fits a segment. Pure. */
#ifndef PROFD_CLICKHOUSE_IMPORT_CUT_H
#define PROFD_CLICKHOUSE_IMPORT_CUT_H

#include "core/rollup.h"

/* Where the next part begins. Zeroed: at the first one. */
struct import_cut {
    uint32_t bins, arcs;
    bool nodes; /* those of stacks are cut off, too */
    bool done;
};

/* Cuts off the next part: it has at most `most` rows, which is more than LIMIT_STACK_NODES; the sum of all parts is the
 * sum. Of a sum without rows there is one part. Arrays are those of the sum or live in the arena. False: no memory. */
bool import_cut_next(struct import_cut *cut, const struct rollup *r, const struct rollup_spread *spread, uint32_t most,
                     struct arena *a, struct rollup *part, struct rollup_spread *part_spread);

#endif
