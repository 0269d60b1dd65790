/* The one thread that writes. Jobs wait in one bounded queue that is fair by user; what waits goes to the store in as
 * few transactions as memory allows. */
#ifndef PROFD_WRITER_WRITER_H
#define PROFD_WRITER_WRITER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "net/work.h"
#include "proto/status.h"
#include "store/store.h"

struct health;
struct loop;
struct space;
struct writer;
struct writer_job;

/* What a job is about. Each function is called with the job that was put, which is part of a larger struct. */
struct writer_job_type {
    /* Beside the writer's thread, while that one waits for the disk: once before run, in the queue's order, never two
     * calls at a time. May be NULL. */
    void (*prepare)(struct writer_job *job);
    /* On the writer's thread, with all jobs of this type in the batch, in the queue's order. full is NULL, or says that
     * the disk is full: then only what removes may write. What becomes of a job is noted in the job. */
    void (*run)(struct store *store, const struct profd_error *full, struct writer_job *const *jobs, size_t n);
    /* Then on the loop, once for each job, in the order of the batch: the type's owner has its job again. */
    void (*done)(struct writer_job *job);
    /* Instead of run and done, on the loop: the job will not be run. It may have been prepared. */
    void (*drop)(struct writer_job *job);
    /* What uploads are checked against may have changed when run returns. */
    bool changes_objects;
};

struct writer_job {
    struct work_item item; /* first; the owner sets uid and weight */
    const struct writer_job_type *type;
};

/* Not charged to any user's part of the queue. */
#define WRITER_UID_NONE UINT32_MAX

struct writer_config {
    struct loop *loop;
    struct store *store;   /* the writing handle: the writer's thread alone uses it until writer_stop */
    struct space *space;   /* NULL: the disk is never full (tests) */
    struct health *health; /* is told of the store's after each batch */
    /* On the loop, once: the store has failed and nothing is written any more; damaged says why. The job that met it
     * has been answered. May end connections. */
    void (*failed)(void *context, bool damaged);
    void *context;
};

/* Starts the thread. All of the config's parts must outlive the writer. */
enum profd_status writer_new(const struct writer_config *config, struct writer **out, struct profd_error *e);
/* Joins the thread once the queue is empty; jobs that the loop has not seen are given to done first. Accepts NULL. */
void writer_free(struct writer *w);
/* Takes the waiting jobs out and drops each. */
void writer_drop_waiting(struct writer *w);

/* False at once when the queue, or this user's part of it, is full, or the writer is being freed: answer BUSY. */
bool writer_put(struct writer *w, struct writer_job *job);
/* Puts a job of this type, charged to no user. Its weight is 1 where the owner has set none. BUSY, with the rule, or
 * OK. */
enum profd_status writer_submit(struct writer *w, struct writer_job *job, const struct writer_job_type *type,
                                struct profd_error *e);
/* Jobs put and not yet done. On the loop. */
size_t writer_pending(const struct writer *w);
/* IO, and why, when nothing is written any more (writer/health.h). On the loop. */
enum profd_status writer_check(const struct writer *w, struct profd_error *e);

/* From any thread: */
/* Batches finished so far. A number that stays the same while jobs wait shows that the writer is stuck. */
uint64_t writer_batches(struct writer *w);
/* Of what is stored: grows with every batch, odd while the writer is at it. */
uint64_t writer_generation(const struct writer *w);
/* Grows when what uploads are checked against may have changed. */
uint64_t writer_objects_generation(const struct writer *w);

#endif
