/* Segments with their bytes on a server (store/remote.h). Only sqlite*.c include this. */
#ifndef PROFD_STORE_SQLITE_REMOTE_H
#define PROFD_STORE_SQLITE_REMOTE_H

#include "store/incoming.h"
#include "store/remote.h"
#include "store/sqlite_rollup.h"

/* A segment counts from now on, if the server stores *row: the arrival with this number of a series. What *row refers
 * to lives in the arena, or is the delivery's. Inside a write transaction. */
enum profd_status sqlite_remote_add(struct sqlite_store *s, struct arena *a, const struct store_delivery *d,
                                    const struct incoming *in, int64_t series, uint64_t number, struct remote_row *row,
                                    struct profd_error *e);
/* Stores rows on the server. BUSY if it cannot, FULL or NO_MEMORY. */
enum profd_status sqlite_remote_put(struct sqlite_store *s, const struct remote_row *rows, size_t n,
                                    struct profd_error *e);

/* The sum of what counts in an hour of a series. It lives until each returns. */
struct sqlite_remote_sum {
    int64_t id; /* row of table remote */
    uint64_t version;
    int64_t hour;
    struct sqlite_rolled row;
};
typedef enum profd_status sqlite_remote_sink(void *context, const struct sqlite_remote_sum *sum, struct profd_error *e);
/* Calls each with the sums of the first *taken ≥ 1 of these rows of table remote, in no order: as many as fit into
 * bounded memory. BUSY: the server cannot be read, or, then *differs, does not have exactly the segments that count.
 * In a transaction. O(segments). */
enum profd_status sqlite_remote_read(struct sqlite_store *s, const int64_t *ids, size_t n, sqlite_remote_sink *each,
                                     void *context, size_t *taken, bool *differs, struct profd_error *e);

#endif
