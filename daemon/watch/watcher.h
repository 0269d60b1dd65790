/* The watch list at work. At intervals a thread of its own looks at what is stored of the watched functions, as a
 * reader does; what it finds is stored by the writer. One look at a time: a look that takes longer than the interval
 * delays the next one. All state is in the database, so that a restart changes nothing. */
#ifndef PROFD_WATCH_WATCHER_H
#define PROFD_WATCH_WATCHER_H

#include <stdbool.h>
#include <stdint.h>

#include "proto/status.h"
#include "watch/watch_verdicts.h"

struct loop;
struct query_cache;
struct watcher;
struct writer;

struct watcher_setup {
    const char *list; /* lines of core/watch_list.h, valid; NULL: nothing is watched */
    int64_t interval; /* ns */
    struct watch_judging judging;
};

struct watcher_config {
    struct loop *loop;
    struct writer *writer;
    struct query_cache *cache;
    const char *database; /* path of the database, for watcher_start only */
    uint64_t run;         /* store_set_run */
    uint64_t salt;        /* store_set_salt */
};

/* Copies the setup, but for the name of the metric. All parts of the config outlive the watcher. */
enum profd_status watcher_start(const struct watcher_config *config, const struct watcher_setup *setup,
                                struct watcher **out, struct profd_error *e);
/* The setup from now on, with which the old one need not exist any more: the next look is soon. Without memory it stays
 * as it was. */
void watcher_set(struct watcher *w, const struct watcher_setup *setup);
/* No further look begins. */
void watcher_stop(struct watcher *w);
/* False while a look runs. */
bool watcher_is_idle(const struct watcher *w);
/* After the writer. Waits for a look that runs. Accepts NULL. */
void watcher_free(struct watcher *w);

#endif
