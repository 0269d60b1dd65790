/* Counters of watched functions for /metrics: exact calls and self seconds, which never decrease.
 *
 * At intervals a thread of its own adds up each watched function in all stored uploads of its watch, as a reader does.
 * A counter is that sum, and base, which is what the counter was ahead of the sum when data was removed last: a sum
 * that is smaller than at the look before shows that a delete or retention has removed something. What was stored
 * between two looks and removed before the second, and what arrived together with a removal, may be missing in the
 * counter; `removals` counts the looks that found one. The counters are stored, so that a restart changes nothing. One
 * look at a time: a look that takes longer than the interval delays the next one. */
#ifndef PROFD_WATCH_WATCHER_H
#define PROFD_WATCH_WATCHER_H

#include <stdbool.h>
#include <stdint.h>

#include "proto/status.h"

struct loop;
struct query_cache;
struct watcher;
struct writer;

struct watcher_setup {
    const char *list; /* lines of core/watch_list.h, valid; NULL: nothing is watched */
    int64_t interval; /* ns */
};

struct watcher_config {
    struct loop *loop;
    struct writer *writer;
    struct query_cache *cache;
    const char *database; /* path of the database, for watcher_start only */
    uint64_t run;         /* store_set_run */
    uint64_t salt;        /* store_set_salt */
};

/* Copies the setup. All parts of the config outlive the watcher. */
enum profd_status watcher_start(const struct watcher_config *config, const struct watcher_setup *setup,
                                struct watcher **out, struct profd_error *e);
/* The setup from now on: the next look is soon. Without memory it stays as it was. */
void watcher_set(struct watcher *w, const struct watcher_setup *setup);
/* No further look begins. */
void watcher_stop(struct watcher *w);
/* False while a look runs. */
bool watcher_is_idle(const struct watcher *w);
/* After the writer. Waits for a look that runs. Accepts NULL. */
void watcher_free(struct watcher *w);

#endif
