/* Bounded queues with worker threads. The loop's thread puts items, a worker runs them, and the loop's thread completes
 * them. Queues are fair: workers serve the users round robin, one item each. */
#ifndef PROFD_NET_WORK_H
#define PROFD_NET_WORK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/queue.h>

#include "proto/status.h"

/* Embedded in a job. */
struct work_item {
    STAILQ_ENTRY(work_item) next; /* of the queue that it is in */
    uint32_t uid;                 /* the user that is charged */
    size_t weight;                /* bytes: a batch holds at most batch_weight, or one item */
};

STAILQ_HEAD(work_list, work_item);

struct loop;
struct work;

struct work_config {
    const char *name;      /* of the threads, at most 15 bytes */
    unsigned threads;      /* 1–16 */
    void *const *contexts; /* one per thread, or NULL; copied */
    size_t queue_max;      /* items waiting */
    size_t queue_max_uid;  /* items of one user waiting */
    size_t batch_max;      /* items of one run, ≤ 4096 */
    size_t batch_weight;
    unsigned threads_max_uid; /* threads that one user's items may occupy at a time, with batch_max 1; 0: all */
    size_t running_weight; /* of the items that run at a time, with batch_max 1, each of at most this weight; 0: any */
    int nice;              /* added to the threads' niceness: they yield the processor to the others (0–19) */
    /* May be NULL; with one thread only. Called once for every item before run, in the queue's order, never two calls
     * at a time. While run is busy, waiting for a disk for example, a second thread prepares the items of the next
     * batch. An item that comes to an idle queue is prepared by the thread that will run it. */
    void (*prepare)(void *prepare_context, struct work_item *const *items, size_t n);
    void *prepare_context;
    /* On a worker thread, with a batch: the waiting items, at least one, in the queue's order. */
    void (*run)(void *context, struct work_item *const *items, size_t n);
    /* On the loop's thread, once for each item, in the order of the batch. */
    void (*done)(void *done_context, struct work_item *item);
    void *done_context;
};

/* Starts the threads (all signals blocked in them). */
enum profd_status work_new(struct loop *l, const struct work_config *config, struct work **out, struct profd_error *e);

/* Never blocks. Returns false if the queue or this user's part of it is full, or if the work was stopped: answer BUSY.
 */
bool work_put(struct work *w, struct work_item *item);

/* Returns the number of items that were put and are not done. */
size_t work_pending(const struct work *w);
/* Returns the number of finished batches, which a watchdog observes. Any thread. */
uint64_t work_batches(struct work *w);

/* Takes no more items. Those waiting are still run. */
void work_stop(struct work *w);
/* Removes the waiting items, prepared or not, and calls drop for each, on the caller's thread. */
void work_drop(struct work *w, void (*drop)(void *context, struct work_item *item), void *context);
/* Joins the threads when the queue is empty, and calls done for the finished items that the loop has not seen. Accepts
 * NULL. */
void work_free(struct work *w);

#endif
