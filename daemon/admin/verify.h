/* One round of verification: everything stored is added up again and compared, in steps of about 100 ms. */
#ifndef PROFD_ADMIN_VERIFY_H
#define PROFD_ADMIN_VERIFY_H

#include <stdbool.h>
#include <stdint.h>

#include "core/buffer.h"
#include "proto/status.h"
#include "store/store.h"

struct verify {
    struct store_cursor cursor;
    uint64_t steps, uploads; /* done, looked at */
    uint64_t total;          /* uploads to look at, about */
    uint64_t mismatches;
    uint64_t kept; /* of these, sentences in the buffer */
    uint64_t kept_max;
    struct buffer
        sentences; /* each ended by a newline, in the order of discovery; the owner may empty it between steps */
};

/* At most kept_max sentences are kept, the others are counted. */
void verify_init(struct verify *v, uint64_t kept_max);
void verify_done(struct verify *v);

/* The next step, on any handle; cursor.done says when the round is whole. Failures of the store come back as they are.
 */
enum profd_status verify_step(struct verify *v, struct store *store, struct profd_error *e);

/* Milliseconds to wait before the next step of a round that may take a day, of which ms have passed: at least a step a
 * minute, at most one a second. */
uint64_t verify_pause(const struct verify *v, uint64_t ms);

#endif
