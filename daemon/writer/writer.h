/* The one thread that writes. Jobs wait in one bounded queue that is fair by user. Waiting jobs are run together, in as
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
struct space;
struct writer;
struct writer_job;

/* The type of a job. Each function is called with the job that was put, which is part of a larger struct. */
struct writer_job_type {
    /* Called once before run, in the queue's order, never two calls at a time, on a second thread while the writer's
     * thread waits for the disk. May be NULL. */
    void (*prepare)(struct writer_job *job);
    /* On the writer's thread. What it returns becomes the status of the job, and e is the error of the job. */
    enum profd_status (*run)(struct writer_job *job, struct store *store, struct profd_error *e);
    /* Instead of run: all jobs of this type in the batch, in the queue's order. It sets their status and error. */
    void (*run_all)(struct store *store, struct writer_job *const *jobs, size_t n);
    /* Then on the loop, once for each job, in the order of the batch; or, with the status STOPPING, for a job that will
     * not be run, but may have been prepared. The owner of the job may free it. */
    void (*done)(struct writer_job *job);
    /* run may change the objects that uploads are checked against. */
    bool changes_objects;
};

struct writer_job {
    struct work_item item; /* first; the owner sets uid and weight */
    const struct writer_job_type *type;
    const struct profd_error *full; /* while it is run: not NULL if the disk is full, and only removals may write */
    enum profd_status status;       /* the result; an owner may set it before */
    struct profd_error error;
};

/* While the job is run: FULL if only removals may write. */
enum profd_status writer_job_check_space(const struct writer_job *job, struct profd_error *e);

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

/* Starts the thread. All parts of the config must outlive the writer. */
enum profd_status writer_new(const struct writer_config *config, struct writer **out, struct profd_error *e);
/* Joins the thread when the queue is empty, and calls done for finished jobs that the loop has not seen. Accepts NULL.
 */
void writer_free(struct writer *w);
/* Removes the waiting jobs: each is done, with the status STOPPING. */
void writer_drop_waiting(struct writer *w);

/* Never blocks. Returns false if the queue or this user's part of it is full, or if the writer is being freed: answer
 * BUSY. */
bool writer_put(struct writer *w, struct writer_job *job);
/* Puts a job of this type, charged to no user. Its weight is 1 unless the owner has set one. BUSY if the queue is
 * full. */
enum profd_status writer_submit(struct writer *w, struct writer_job *job, const struct writer_job_type *type,
                                struct profd_error *e);
/* Returns the number of jobs that were put and are not done. On the loop. */
size_t writer_pending(const struct writer *w);
/* Returns IO, with the reason, if nothing is written any more (writer/health.h). On the loop. */
enum profd_status writer_check(const struct writer *w, struct profd_error *e);

/* From any thread: */
/* Returns the number of finished batches. If it stays the same while jobs wait, the writer is stuck. */
uint64_t writer_batches(struct writer *w);
/* Returns the generation of the stored data. It grows with every batch, and is odd while a batch runs. */
uint64_t writer_generation(const struct writer *w);
/* Returns a number that grows when the objects that uploads are checked against may have changed. */
uint64_t writer_objects_generation(const struct writer *w);

#endif
