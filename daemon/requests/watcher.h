/* Counters of watched functions for /metrics: exact calls and self seconds, which never decrease.
 *
 * At intervals the verifying thread adds up each watched function in all stored uploads of its watch, as a reader does.
 * A counter grows by what that sum has grown by. A sum that is smaller than at the look before shows that a delete or
 * retention has removed something: the counter stays. What was stored between two looks and removed before the second,
 * and what arrived together with a removal, may be missing in the counter; `removals` counts the looks that found one.
 * The counters are stored, so that a restart changes nothing. One look at a time: a look that takes longer than the
 * interval delays the next one. */
#ifndef PROFD_REQUESTS_WATCHER_H
#define PROFD_REQUESTS_WATCHER_H

#include <stdint.h>

#include "proto/status.h"

struct query_cache;
struct shared;
struct verifier;
struct watcher;

struct watcher_config {
    const struct shared *shared;
    struct verifier *verifier;
    struct query_cache *cache;
};

/* Nothing is watched before watcher_set. All parts of the config outlive the watcher. */
enum profd_status watcher_start(const struct watcher_config *config, struct watcher **out, struct profd_error *e);
/* What is watched from now on, at this interval in ns: the next look is soon. list: lines of core/watch_list.h, valid;
 * NULL: nothing. Without memory it stays as it was. */
void watcher_set(struct watcher *w, const char *list, int64_t interval);
/* No further look begins. */
void watcher_stop(struct watcher *w);
/* After the verifier and the writer. Accepts NULL. */
void watcher_free(struct watcher *w);

#endif
