/* Verification, on any handle: recomputes sums from what is stored and compares. */
#ifndef PROFD_STORE_STORE_VERIFY_H
#define PROFD_STORE_STORE_VERIFY_H

#include <stdbool.h>
#include <stdint.h>

#include "proto/status.h"
#include "store/store.h"

struct store_cursor {
    uint64_t series;
    int64_t hour;
    bool done; /* everything was looked at since the cursor was zeroed */
};
/* Looks at the next (series, hour) pairs, about 100 ms of work in one snapshot: Σ of the single uploads and the hour's
 * sum equal the ledger; spread equals totals; the day's sum equals its hours', the sum of all time its days'; once a
 * round, Σ ledger and retired equal what was accepted, and every live process has a snapshot and names no upload but
 * its own. mismatch is called with a sentence for every difference. */
enum profd_status store_verify(struct store *s, struct store_cursor *cursor,
                               void (*mismatch)(void *context, const char *sentence), void *context,
                               uint64_t *uploads_checked, struct profd_error *e);

#endif
