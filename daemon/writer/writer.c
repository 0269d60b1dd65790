#include "writer/writer.h"

#include <stdatomic.h>
#include <stdlib.h>

#include "core/container.h"
#include "net/loop.h"
#include "writer/health.h"

#define QUEUE 32768u
#define QUEUE_UID 24576u
#define BATCH 2048u
#define BATCH_BYTES (64u << 20) /* unpacked, so that the uploads of one user do not delay the others for seconds */

struct writer {
    struct writer_config config;
    struct work *work;
    atomic_uint_fast64_t generation, objects_generation;
};

static void writer_prepare(void *context, struct work_item *const *items, size_t n)
{
    (void)context;
    for (size_t i = 0; i < n; i++) {
        struct writer_job *job = container_of(items[i], struct writer_job, item);

        if (job->type->prepare) {
            job->type->prepare(job);
        }
    }
}

/* Runs the first job and the others of its type. */
static void writer_run_type(struct writer *w, const struct profd_error *full, struct work_item *const *items, size_t n)
{
    const struct writer_job_type *type = container_of(items[0], struct writer_job, item)->type;
    struct writer_job *jobs[BATCH] = {NULL};
    size_t count = 0;

    for (size_t i = 0; i < n; i++) {
        struct writer_job *job = container_of(items[i], struct writer_job, item);

        if (job->type == type) {
            jobs[count++] = job;
            job->full = full;
        }
    }
    if (type->run_all) {
        type->run_all(w->config.store, jobs, count);
    }
    for (size_t i = 0; i < count && type->run; i++) {
        jobs[i]->status = type->run(jobs[i], w->config.store, &jobs[i]->error);
    }
    if (type->changes_objects) {
        atomic_fetch_add(&w->objects_generation, 1); /* later uploads are checked against the changed objects */
    }
}

static bool writer_is_first_of_type(struct work_item *const *items, size_t i)
{
    for (size_t k = 0; k < i; k++) {
        if (container_of(items[k], struct writer_job, item)->type ==
            container_of(items[i], struct writer_job, item)->type) {
            return false;
        }
    }
    return true;
}

static void writer_run(void *context, struct work_item *const *items, size_t n)
{
    struct writer *w = context;
    struct profd_error e;

    const bool full = w->config.space && space_admit(w->config.space, w->config.store, &e);

    atomic_fetch_add(&w->generation, 1);
    for (size_t i = 0; i < n; i++) {
        /* Batches are of few types: the search ends at once for all but the first of each. */
        if (writer_is_first_of_type(items, i)) {
            writer_run_type(w, full ? &e : NULL, items + i, n - i);
        }
    }
    health_publish(w->config.health, store_get_health(w->config.store));
    /* Before any job is done, so that a query after an acknowledgement sees the acknowledged data. */
    atomic_fetch_add(&w->generation, 1);
}

static void writer_done(void *context, struct work_item *item)
{
    struct writer_job *job = container_of(item, struct writer_job, item);
    struct writer *w = context;
    uint64_t bytes;
    const bool keep_full = w->config.space && space_get_reserve(w->config.space, &bytes) == RESERVE_GIVEN_UP;
    /* The health is updated first, so that the job's owner begins nothing new. A failure is handled after the answer.
     */
    const enum health_change change = health_update(w->config.health, keep_full);

    job->type->done(job);
    if (change != HEALTH_SAME) {
        w->config.failed(w->config.context, change == HEALTH_DAMAGED);
    }
}

static void writer_drop(void *context, struct work_item *item)
{
    struct writer_job *job = container_of(item, struct writer_job, item);

    (void)context;
    job->status = profd_error_set(&job->error, PROFD_STOPPING, "the daemon is stopping");
    job->type->done(job);
}

enum profd_status writer_new(const struct writer_config *config, struct writer **out, struct profd_error *e)
{
    struct writer *w = calloc(1, sizeof *w);
    void *contexts[1] = {w};
    const struct work_config work = {
        .name = "profd-writer",
        .threads = 1,
        .contexts = contexts,
        .queue_max = QUEUE,
        .queue_max_uid = QUEUE_UID,
        .batch_max = BATCH,
        .batch_weight = BATCH_BYTES,
        .prepare = writer_prepare,
        .prepare_context = w,
        .run = writer_run,
        .done = writer_done,
        .done_context = w,
    };

    TRY(w ? PROFD_OK : profd_no_memory(e));
    w->config = *config;
    enum profd_status status = work_new(config->loop, &work, &w->work, e);
    if (status) {
        free(w);
        return status;
    }
    *out = w;
    return PROFD_OK;
}

void writer_free(struct writer *w)
{
    if (w) {
        work_free(w->work);
    }
    free(w);
}

void writer_drop_waiting(struct writer *w)
{
    work_drop(w->work, writer_drop, w);
}

bool writer_put(struct writer *w, struct writer_job *job)
{
    return work_put(w->work, &job->item);
}

enum profd_status writer_submit(struct writer *w, struct writer_job *job, const struct writer_job_type *type,
                                struct profd_error *e)
{
    job->type = type;
    job->item.uid = WRITER_UID_NONE;
    if (job->item.weight == 0) {
        job->item.weight = 1;
    }
    return writer_put(w, job) ? PROFD_OK : profd_error_set(e, PROFD_BUSY, "the queue of the writer is full");
}

size_t writer_pending(const struct writer *w)
{
    return work_pending(w->work);
}

enum profd_status writer_job_check_space(const struct writer_job *job, struct profd_error *e)
{
    if (job->full) {
        *e = *job->full;
    }
    return job->full ? PROFD_FULL : PROFD_OK;
}

enum profd_status writer_check(const struct writer *w, struct profd_error *e)
{
    return health_check(w->config.health, e);
}

uint64_t writer_batches(struct writer *w)
{
    return work_batches(w->work);
}

uint64_t writer_generation(const struct writer *w)
{
    return atomic_load(&w->generation);
}

uint64_t writer_objects_generation(const struct writer *w)
{
    return atomic_load(&w->objects_generation);
}
