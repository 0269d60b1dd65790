/* Stores harvests on the writer's thread: one transaction for all in the batch. */
#include <stdlib.h>

#include "core/container.h"
#include "live/live_internal.h"

static void store_store_all(struct store *store, struct live_harvest *const *harvests, struct store_upload *puts,
                            enum store_outcome *outcomes, size_t n)
{
    struct profd_error e = {""};
    enum profd_status status;

    for (size_t i = 0; i < n; i++) {
        puts[i] = harvests[i]->harvest.put;
    }
    status = store_put_uploads(store, puts, n, outcomes, &e);
    for (size_t i = 0; i < n; i++) {
        harvests[i]->status = status;
        harvests[i]->outcome = status ? STORE_STALE : outcomes[i];
        harvests[i]->error = e;
        if (!status && outcomes[i] == STORE_OVER_SHARE) {
            harvests[i]->status = store_share_refuse(store, puts[i].uid, &harvests[i]->error);
        }
    }
}

static struct live_harvest *store_of(struct writer_job *job)
{
    return container_of(job, struct live_harvest, job);
}

static void store_refuse(struct writer_job *const *jobs, size_t n, const struct profd_error *e,
                         enum profd_status status)
{
    for (size_t i = 0; i < n; i++) {
        store_of(jobs[i])->status = status;
        store_of(jobs[i])->error = *e;
    }
}

static void store_run(struct store *store, const struct profd_error *full, struct writer_job *const *jobs, size_t n)
{
    struct live_harvest **harvests = malloc(n * sizeof(struct live_harvest *));
    struct store_upload *puts = calloc(n, sizeof *puts);
    enum store_outcome *outcomes = malloc(n * sizeof *outcomes);
    struct profd_error e;

    if (full) {
        store_refuse(jobs, n, full, PROFD_FULL);
    } else if (harvests && puts && outcomes) {
        for (size_t i = 0; i < n; i++) {
            harvests[i] = store_of(jobs[i]);
        }
        store_store_all(store, harvests, puts, outcomes, n);
    } else {
        profd_error_set(&e, PROFD_NO_MEMORY, "no memory for a batch of %zu harvests", n);
        store_refuse(jobs, n, &e, PROFD_NO_MEMORY);
    }
    free(outcomes);
    free(puts);
    free(harvests);
}

static void store_done(struct writer_job *job)
{
    struct live_harvest *h = store_of(job);

    h->stored(h->live, h);
}

static void store_drop(struct writer_job *job)
{
    struct live_harvest *h = store_of(job);

    h->status = profd_error_set(&h->error, PROFD_STOPPING, "the daemon is stopping");
    h->stored(h->live, h);
}

const struct writer_job_type live_harvest_type = {.run = store_run, .done = store_done, .drop = store_drop};
