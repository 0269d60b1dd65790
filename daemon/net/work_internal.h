/* What the files of a work share. Private to work*.c. */
#ifndef PROFD_NET_WORK_INSIDE_H
#define PROFD_NET_WORK_INSIDE_H

#include <pthread.h>

#include "net/loop.h"
#include "net/work.h"
#include "net/work_lanes.h"

#define WORK_THREADS_MAX 16
#define WORK_BATCH_MAX 4096

struct work_thread {
    pthread_t id;
    struct work *work;
    void *context;
    struct work_item **batch;
    bool running; /* this and the next two are under the lock: of the batch of one that it runs */
    uint32_t uid;
    size_t weight;
};

struct work {
    struct loop_task task; /* first: a pointer to it is one to the work */
    struct loop *loop;
    struct work_config config;
    struct work_thread threads[WORK_THREADS_MAX], preparer;
    unsigned started;
    bool preparer_started;
    size_t pending; /* the loop's thread only */

    pthread_mutex_t lock;  /* guards everything below */
    pthread_cond_t filled; /* for the threads that run */
    pthread_cond_t spare;  /* for the one that prepares */
    struct work_lanes lanes;
    struct work_list prepared;
    size_t ready, ready_weight;
    bool preparing;
    uint64_t batches;
    struct work_list finished;
    bool posted, stopping;
};

/* work_prepare.c; all with the lock held, which is given up while items are prepared. */
/* The next batch of prepared items, taken over or prepared here; 0: there is none now. */
size_t work_take_prepared(struct work *w, struct work_item **batch);
/* The first prepared item. There must be one. */
struct work_item *work_take_ready(struct work *w);
/* The thread beside. */
void *work_preparer_main(void *argument);

#endif
