#include "live/live_internal.h"

#include <stdlib.h>

#define NICE 5 /* processes that wait for an acknowledgement or a SYNC come first */
#define QUEUE (2u * LIMIT_HARVESTS_AT_ONCE)

static enum profd_status live_open(struct live *l, struct profd_error *e)
{
    void *contexts[1] = {l};
    const struct work_config work = {
        .name = "profd-harvest",
        .threads = 1,
        .contexts = contexts,
        .queue_max = QUEUE,
        .queue_max_uid = QUEUE,
        .batch_max = 1,
        .nice = NICE,
        .run = harvest_run,
        .done = harvest_was_read,
        .done_context = l,
    };
    TRY(store_sqlite_open_reader(l->config.database, &l->store, e));

    TRY(build_cache_new(l->store, &l->builds, e));
    return work_new(l->config.loop, &work, &l->work, e);
}

enum profd_status live_new(const struct live_config *config, struct live **out, struct profd_error *e)
{
    struct live *l = calloc(1, sizeof *l);
    enum profd_status status = PROFD_OK;

    FAIL_IF(!l, e, PROFD_NO_MEMORY, "no memory for live processes");
    l->config = *config;
    l->began = loop_clock();
    TAILQ_INIT(&l->asking);
    hashmap_init(&l->of_instance, 0);
    hashmap_init(&l->of_memory, 0);
    l->sync_task.run = exits_on_sync;
    l->sweep_timer = loop_timer_new(config->loop, harvest_on_sweep, l);
    l->orphan_timer = loop_timer_new(config->loop, orphans_on_timer, l);
    if (!l->sweep_timer || !l->orphan_timer) {
        status = profd_error_set(e, PROFD_NO_MEMORY, "no memory for live processes");
    }
    origin_init(l);
    if (!status) {
        status = live_open(l, e);
    }
    if (status) {
        live_free(l);
        return status;
    }
    *out = l;
    return PROFD_OK;
}

static void live_stop_one(struct live *l, struct live_process *a)
{
    harvest_want(l, a, a->pending);
}

void live_stop(struct live *l)
{
    l->stopping = true;
    loop_timer_clear(l->orphan_timer);
    awaited_set(l, NULL);
    table_each(l, live_stop_one);
}

bool live_is_idle(const struct live *l)
{
    return (!l->ready_first || writer_check(l->config.writer, NULL)) && !l->in_flight && !work_pending(l->work) &&
           TAILQ_EMPTY(&l->asking);
}

void live_end_thread(struct live *l)
{
    if (!l || !l->work) {
        return;
    }
    work_stop(l->work); /* the memory of dropped snapshots can be used for others */
    work_drop(l->work, harvest_drop, l);
    work_free(l->work);
    l->work = NULL;
}

static void live_end_one(struct live *l, struct live_process *a)
{
    a->kept = false; /* the manager keeps it for the next daemon */
    process_remove(l, a);
}

void live_free(struct live *l)
{
    if (!l) {
        return;
    }
    live_end_thread(l);
    sync_end(l);
    table_each(l, live_end_one);
    hashmap_clear(&l->of_instance);
    hashmap_clear(&l->of_memory);
    struct live_user *u, *next;

    /* Users who stood in the queue have entries without processes. */
    for (size_t i = 0; i < LIVE_BUCKETS; i++) {
        for (u = l->users[i]; u; u = next) {
            next = u->next;
            free(u);
        }
    }
    fdstore_end(l);
    table_free_refused(l->refused);
    awaited_free(l->awaited);
    loop_timer_free(l->sweep_timer);
    loop_timer_free(l->orphan_timer);
    build_cache_free(l->builds);
    store_close(l->store);
    free(l);
}

void live_get_counts(const struct live *l, struct live_counts *out)
{
    const struct live_process *a;

    *out = l->counts;
    out->processes = l->count;
    out->kept = l->kept;
    out->pending = l->in_flight;
    LIST_FOREACH(a, &l->processes, all)
    {
        out->silent += !a->conn;
        out->paused += a->page && a->page->paused;
    }
}
