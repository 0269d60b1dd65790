/* Counters of watched functions, which never decrease.
 *
 * A look adds up a function in all stored uploads of its watch. The counter is that sum, and base, what the counter was
 * ahead of the sum when data was removed last: a sum of self time or calls that is smaller than at the look before
 * shows that a delete or retention has removed something. What was stored between two looks and removed before the
 * second, and what arrived together with a removal, may be missing in the counter; `removals` counts the looks that
 * found one. Time with callees is computed from all data anew: where it became less without a removal, the counter
 * waits until it is reached again. */
#ifndef PROFD_WATCH_WATCH_COUNTS_H
#define PROFD_WATCH_WATCH_COUNTS_H

#include "core/watch_list.h"
#include "proto/status.h"
#include "watch/watch_ask.h"
#include "watch/watch_rows.h"

/* Counts the functions of one watch. Errors as the query. */
enum profd_status watch_counts_look(const struct watch_ask *ask, const struct watch *w, struct watch_rows *rows,
                                    struct profd_error *e);
/* Removes the counters of functions that are no longer watched. */
enum profd_status watch_counts_forget(const struct watch_list *list, struct watch_rows *rows, struct profd_error *e);

#endif
