#include "watch/watcher.h"

#include <stdlib.h>
#include <string.h>

#include "core/arena.h"
#include "core/container.h"
#include "core/watch_list.h"
#include "log/log.h"
#include "net/loop.h"
#include "net/work.h"
#include "store/store.h"
#include "watch/watch_counts.h"
#include "watch/watch_rows.h"
#include "watch/watch_verdicts.h"
#include "writer/writer.h"

#define FIRST_MS 1000
#define NICE 15
#define ARENA_MOST (64u << 20)

struct watcher {
    struct watcher_config config;
    char *list; /* owned; NULL: nothing is watched */
    int64_t interval;
    struct watch_judging judging; /* the metric is the setup's */
    struct loop_timer *timer;
    struct store *store;
    struct work *work;
    bool running, stopped;
    bool changed; /* the setup, while a look was running */

    /* of the look */
    struct work_item item;
    struct writer_job job;
    struct arena *arena;
    struct watch_list watches;
    struct watch_judging look; /* of this look */
    struct watch_rows rows;
    int64_t now;
    enum profd_status status, failed; /* failed: of the look before, so that a failure is logged once */
    struct profd_error error;
};

static struct watcher *watcher_of(struct work_item *item)
{
    return container_of(item, struct watcher, item);
}

static struct watcher *watcher_of_job(struct writer_job *job)
{
    return container_of(job, struct watcher, job);
}

/* One watch that fails does not hinder the others. */
static void watcher_look(struct watcher *w, struct store *store)
{
    const struct watch_ask ask = {.store = store, .cache = w->config.cache, .now = w->now};

    w->status = watch_rows_read(&w->rows, w->arena, store, &w->error);
    if (!w->status) {
        w->status = watch_counts_forget(&w->watches, &w->rows, &w->error);
    }
    for (size_t i = 0; w->status != PROFD_NO_MEMORY && i < w->watches.count; i++) {
        struct profd_error e;
        enum profd_status status = watch_counts_look(&ask, &w->watches.watches[i], &w->rows, &e);

        if (!status) {
            status = watch_verdicts_look(&ask, &w->watches.watches[i], &w->look, &w->rows, &e);
        }
        if (status && !w->status) {
            w->status = profd_error_set(&w->error, status, "watch %s: %s", w->watches.watches[i].name, e.sentence);
        }
    }
    watch_rows_done(&w->rows);
}

static void watcher_run(void *context, struct work_item *const *items, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        watcher_look(watcher_of(items[i]), context);
    }
}

/* Sets the time of the next look. Without a list there is none, after the one that has forgotten the counters. */
static void watcher_rest(struct watcher *w)
{
    w->running = false;
    if (w->status && w->status != w->failed) {
        log_write(LOG_LEVEL_WARNING, "watch", "the watched functions were not all looked at: %s", w->error.sentence);
    }
    w->failed = w->status;
    if (!w->stopped && (w->list || w->changed || w->status)) {
        loop_timer_set(w->timer, w->changed ? 1 : (uint64_t)w->interval / 1000000);
    }
    w->changed = false;
}

static void watcher_store(struct store *store, const struct profd_error *full, struct writer_job *const *jobs, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        struct watcher *w = watcher_of_job(jobs[i]);

        if (full) {
            w->error = *full;
            w->status = PROFD_FULL;
        } else {
            const enum profd_status status = store_put_watch_rows(store, w->rows.changed, w->rows.count, &w->error);

            w->status = status ? status : w->status;
        }
    }
}

static void watcher_stored(struct writer_job *job)
{
    watcher_rest(watcher_of_job(job));
}

static void watcher_not_stored(struct writer_job *job)
{
    watcher_rest(watcher_of_job(job));
}

static const struct writer_job_type watcher_job = {
    .run = watcher_store, .done = watcher_stored, .drop = watcher_not_stored};

static void watcher_looked(void *context, struct work_item *item)
{
    struct watcher *w = watcher_of(item);

    (void)context;
    if (w->stopped || w->status == PROFD_NO_MEMORY || !w->rows.count ||
        writer_submit(w->config.writer, &w->job, &watcher_job, NULL)) {
        watcher_rest(w);
    }
}

static void watcher_dropped(void *context, struct work_item *item)
{
    (void)context;
    watcher_of(item)->running = false;
}

static void watcher_begin(void *context)
{
    struct watcher *w = context;
    const char *list = NULL;

    if (w->running || w->stopped) {
        return;
    }
    arena_reset(w->arena);
    w->now = loop_clock();
    w->rows.count = 0;
    w->status = PROFD_OK;
    w->look = w->judging;
    w->look.metric = arena_copy(w->arena, w->judging.metric, strlen(w->judging.metric));
    w->status = w->look.metric ? PROFD_OK : profd_no_memory(&w->error);
    if (w->list && !w->status) {
        list = arena_copy(w->arena, w->list, strlen(w->list));
        w->status = list ? PROFD_OK : profd_no_memory(&w->error);
    }
    if (!w->status) {
        w->status = watch_list_parse(list, w->arena, &w->watches, &w->error);
    }
    w->running = !w->status && work_put(w->work, &w->item);
    if (!w->running) {
        loop_timer_set(w->timer, (uint64_t)w->interval / 1000000);
    }
}

static enum profd_status watcher_open(struct watcher *w, struct profd_error *e)
{
    void *contexts[1];
    const struct work_config config = {.name = "profd-watch",
                                       .threads = 1,
                                       .contexts = contexts,
                                       .queue_max = 1,
                                       .queue_max_uid = 1,
                                       .batch_max = 1,
                                       .nice = NICE,
                                       .run = watcher_run,
                                       .done = watcher_looked,
                                       .done_context = w};
    enum profd_status status = store_sqlite_open_reader(w->config.database, &w->store, e);

    if (!status) {
        store_set_run(w->store, w->config.run);
        store_set_salt(w->store, w->config.salt);
    }
    contexts[0] = w->store;
    return status ? status : work_new(w->config.loop, &config, &w->work, e);
}

void watcher_set(struct watcher *w, const struct watcher_setup *setup)
{
    const bool judging = !strcmp(w->judging.metric, setup->judging.metric) &&
                         !(w->judging.threshold < setup->judging.threshold) &&
                         !(w->judging.threshold > setup->judging.threshold);
    const bool same = judging && w->interval == setup->interval &&
                      (w->list && setup->list ? !strcmp(w->list, setup->list) : !w->list && !setup->list);
    char *list = setup->list ? strdup(setup->list) : NULL;

    w->judging.metric = setup->judging.metric; /* the old text goes with the old configuration */
    if (same || (setup->list && !list)) {
        free(list);
        return;
    }
    free(w->list);
    w->list = list;
    w->interval = setup->interval;
    w->judging = setup->judging;
    w->changed = w->running;
    if (!w->running && !w->stopped) {
        loop_timer_set(w->timer, 1);
    }
}

enum profd_status watcher_start(const struct watcher_config *config, const struct watcher_setup *setup,
                                struct watcher **out, struct profd_error *e)
{
    struct watcher *w = calloc(1, sizeof *w);
    enum profd_status status;

    if (w) {
        w->config = *config;
        w->item = (struct work_item){.uid = UINT32_MAX}; /* not charged to any user's part of the queue */
        w->interval = setup->interval;
        w->judging = setup->judging;
        w->list = setup->list ? strdup(setup->list) : NULL;
        w->arena = arena_new(ARENA_MOST);
        w->timer = loop_timer_new(config->loop, watcher_begin, w);
    }
    if (!w || !w->arena || !w->timer || (setup->list && !w->list)) {
        watcher_free(w);
        return profd_error_set(e, PROFD_NO_MEMORY, "no memory for the watch list");
    }
    status = watcher_open(w, e);
    if (status) {
        watcher_free(w);
        return status;
    }
    loop_timer_set(w->timer, FIRST_MS);
    *out = w;
    return PROFD_OK;
}

bool watcher_is_idle(const struct watcher *w)
{
    return !work_pending(w->work);
}

void watcher_stop(struct watcher *w)
{
    w->stopped = true;
    loop_timer_clear(w->timer);
    work_drop(w->work, watcher_dropped, NULL);
}

void watcher_free(struct watcher *w)
{
    if (!w) {
        return;
    }
    if (w->work) {
        watcher_stop(w);
    }
    work_free(w->work);
    store_close(w->store);
    loop_timer_free(w->timer);
    arena_free(w->arena);
    free(w->list);
    free(w);
}
