/* Rows of sending intervals: what a centre has counted in the current hour and the one before, as sums of 1, 5 or 15
 * minutes. They become sums of hours as the uploads of live processes do. Only sqlite*.c include this. */
#ifndef PROFD_STORE_SQLITE_INTERVAL_H
#define PROFD_STORE_SQLITE_INTERVAL_H

#include "store/sqlite_rollup.h"
#include "store/sqlite_slice.h"

/* Levels of table rollup. Of these, at is the number of the slice of sqlite_slice_widths[level − SQLITE_LEVEL_SLICE]; a
 * row is in no other sum. */
#define SQLITE_LEVEL_SLICE (SQLITE_LEVEL_ALL + 1)
#define SQLITE_LEVEL_SLICES (SQLITE_LEVEL_SLICE + SQLITE_SLICE_WIDTHS - 1) /* the first that is none */
#define SQLITE_LEVEL_ASIDE 16 /* and above: what could not be read; at is its hour. No query sees it */

/* Minutes of a row of an hour or slice. */
static inline int64_t sqlite_level_minutes(int level)
{
    return level >= SQLITE_LEVEL_SLICE ? sqlite_slice_widths[level - SQLITE_LEVEL_SLICE] : SQLITE_SLICE_WIDE;
}
/* The level of rows of that many minutes. */
int sqlite_level_of(int64_t minutes);

/* Adds more to a row of an hour or slice, and to those above that hold it. A row that cannot be read is put aside: its
 * hour is marked, and more begins a new one; a sum of a day or of all time is added up anew by sqlite_compact. Inside a
 * write transaction that saves the state. */
enum profd_status sqlite_interval_add(struct store *s, struct arena *a, const struct sqlite_identity *series, int level,
                                      int64_t at, const struct folded *more, struct profd_error *e);

#endif
