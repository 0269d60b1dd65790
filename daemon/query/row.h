/* What a row of the store holds. */
#ifndef PROFD_QUERY_ROW_H
#define PROFD_QUERY_ROW_H

#include "core/arena.h"
#include "proto/counts.h"
#include "proto/status.h"
#include "store/store.h"

/* The counts of a single upload (not rolled). row_close_counts frees them, or the arena's jump does. */
struct row_counts {
    struct counts counts;
    struct arena *arena;
    struct arena_deferred deferred;
};

/* DAMAGED or NO_MEMORY. */
enum profd_status row_open_counts(const struct store_row *row, struct arena *a, struct row_counts *c,
                                  struct profd_error *e);
void row_close_counts(struct row_counts *c);

#endif
