#include "net/work.h"

#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <unistd.h>

#include "core/container.h"
#include "core/hashmap.h"
#include "net/loop.h"

/* Waiting items, in one lane for each user; the lanes are served round robin, an item at a time. The
 * caller holds the lock. */

struct work_lane {
    TAILQ_ENTRY(work_lane) next;
    uint32_t uid;
    size_t count;
    struct work_list items; /* at least one */
};

struct work_lanes {
    TAILQ_HEAD(work_lane_ring, work_lane) ring;
    struct hashmap of_uid; /* uid → struct work_lane */
    size_t waiting;
};

/* The ring's first lane becomes its last. */
static void work_lanes_rotate(struct work_lanes *l)
{
    struct work_lane *lane = TAILQ_FIRST(&l->ring);

    TAILQ_REMOVE(&l->ring, lane, next);
    TAILQ_INSERT_TAIL(&l->ring, lane, next);
}

/* Takes the next item, round robin by user; an empty lane is removed. There must be an item. */
static struct work_item *work_lanes_take(struct work_lanes *l)
{
    struct work_lane *lane = TAILQ_FIRST(&l->ring);
    struct work_item *item = STAILQ_FIRST(&lane->items);

    STAILQ_REMOVE_HEAD(&lane->items, next);
    lane->count--;
    l->waiting--;
    if (lane->count) {
        work_lanes_rotate(l);
    } else {
        TAILQ_REMOVE(&l->ring, lane, next);
        hashmap_remove(&l->of_uid, lane);
    }
    return item;
}

/* Takes up to max items of at most this weight together; the first may weigh anything if `any`. Returns how many. */
static size_t work_lanes_take_batch(struct work_lanes *l, struct work_item **batch, size_t max, size_t weight, bool any)
{
    size_t n = 0, taken = 0;

    while (
        l->waiting && n < max &&
        ((any && !n) || (taken <= weight && STAILQ_FIRST(&TAILQ_FIRST(&l->ring)->items)->weight <= weight - taken))) {
        batch[n] = work_lanes_take(l);
        taken += batch[n]->weight;
        n++;
    }
    return n;
}

/* Puts an item into the user's lane. Returns false if out of memory, or if this user has max_uid items waiting. */
static bool work_lanes_put(struct work_lanes *l, struct work_item *item, size_t max_uid)
{
    const struct work_lane empty = {.uid = item->uid};
    struct work_lane *lane = hashmap_find(&l->of_uid, &item->uid, sizeof item->uid);

    if (!lane) {
        lane = hashmap_put(&l->of_uid, &item->uid, sizeof item->uid, &empty, sizeof empty);
        if (lane) {
            STAILQ_INIT(&lane->items);
            TAILQ_INSERT_TAIL(&l->ring, lane, next);
        }
    } else if (lane->count >= max_uid) {
        return false;
    }
    if (!lane) {
        return false;
    }
    STAILQ_INSERT_TAIL(&lane->items, item, next);
    lane->count++;
    l->waiting++;
    return true;
}

#define WORK_THREADS_MAX 16
#define WORK_BATCH_MAX 4096
#define WORK_CHUNK 16 /* items prepared at a time, so that the thread that waits for them waits only for these */

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

/* --- Preparing. The caller holds the lock, which is released while items are prepared. The second thread prepares
 * items while a batch runs. If nothing runs, the thread that would have to wait for them prepares them itself. */

/* Takes the first prepared item. There must be one. */
static struct work_item *work_take_ready(struct work *w)
{
    struct work_item *item = STAILQ_FIRST(&w->prepared);

    STAILQ_REMOVE_HEAD(&w->prepared, next);
    w->ready--;
    w->ready_weight -= item->weight;
    return item;
}

/* Takes the next few items and prepares them without the lock. No other thread may be preparing. */
static size_t work_prepare_some(struct work *w, struct work_item **items, size_t max, size_t weight, bool any)
{
    const size_t n = work_lanes_take_batch(&w->lanes, items, max, weight, any);

    if (!n) {
        return 0;
    }
    w->preparing = true;
    pthread_mutex_unlock(&w->lock);
    w->config.prepare(w->config.prepare_context, items, n);
    pthread_mutex_lock(&w->lock);
    w->preparing = false;
    return n;
}

/* The second thread: prepares items while the first one runs a batch. */
static void *work_preparer_main(void *argument)
{
    struct work_thread *t = argument;
    struct work *w = t->work;
    const struct work_config *c = &w->config;

    pthread_mutex_lock(&w->lock);
    while (!w->stopping) {
        const size_t left = c->batch_max - w->ready;

        /* There must be an item to prepare, and memory for it. Prepared items may take the memory of one batch. */
        if (!w->lanes.waiting || w->preparing || !w->threads[0].running || !left ||
            (w->ready && w->ready_weight >= c->batch_weight)) {
            pthread_cond_wait(&w->spare, &w->lock);
            continue;
        }
        size_t n = work_prepare_some(w, t->batch, left < WORK_CHUNK ? left : WORK_CHUNK,
                                     w->ready ? c->batch_weight - w->ready_weight : c->batch_weight, !w->ready);
        for (size_t i = 0; i < n; i++) {
            STAILQ_INSERT_TAIL(&w->prepared, t->batch[i], next);
            w->ready_weight += t->batch[i]->weight;
        }
        w->ready += n;
        if (!w->threads[0].running) {
            pthread_cond_signal(&w->filled);
        } else if (!n) {
            pthread_cond_wait(&w->spare, &w->lock); /* the next item exceeds the remaining memory */
        }
    }
    pthread_mutex_unlock(&w->lock);
    return NULL;
}

/* --- Running */

/* Returns whether the lane's first item may run beside those that run now. */
static bool work_may_run(const struct work *w, const struct work_lane *lane)
{
    const struct work_config *c = &w->config;
    unsigned running = 0;
    size_t weight = STAILQ_FIRST(&lane->items)->weight;

    for (unsigned i = 0; i < c->threads; i++) {
        if (!w->threads[i].running) {
            continue;
        }
        running += w->threads[i].uid == lane->uid;
        weight += w->threads[i].weight;
    }
    return (!c->threads_max_uid || running < c->threads_max_uid) && (!c->running_weight || weight <= c->running_weight);
}

/* Brings a lane that may run to the front. Returns false if there is none now. O(waiting users). */
static bool work_rotate(struct work *w)
{
    for (size_t lanes = w->lanes.of_uid.count; lanes > 0; lanes--) {
        if (work_may_run(w, TAILQ_FIRST(&w->lanes.ring))) {
            return true;
        }
        work_lanes_rotate(&w->lanes);
    }
    return false;
}

/* Takes the next batch and returns its size, 0 if there is none. With the lock held; preparing releases it for a while.
 */
static size_t work_take_batch(struct work *w, struct work_item **batch)
{
    if (w->config.prepare) {
        size_t n = 0, weight = 0;

        if (!w->ready && !w->preparing) {
            return work_prepare_some(w, batch, w->config.batch_max < WORK_CHUNK ? w->config.batch_max : WORK_CHUNK,
                                     w->config.batch_weight, true);
        }
        while (w->ready && n < w->config.batch_max &&
               (!n || (weight <= w->config.batch_weight &&
                       STAILQ_FIRST(&w->prepared)->weight <= w->config.batch_weight - weight))) {
            weight += STAILQ_FIRST(&w->prepared)->weight;
            batch[n++] = work_take_ready(w);
        }
        return n;
    }
    return work_rotate(w) ? work_lanes_take_batch(&w->lanes, batch, w->config.batch_max, w->config.batch_weight, true)
                          : 0;
}

static void work_deliver_finished(struct work *w)
{
    struct work_list finished = STAILQ_HEAD_INITIALIZER(finished);
    struct work_item *item;

    pthread_mutex_lock(&w->lock);
    STAILQ_CONCAT(&finished, &w->finished);
    w->posted = false;
    pthread_mutex_unlock(&w->lock);
    while ((item = STAILQ_FIRST(&finished)) != NULL) {
        STAILQ_REMOVE_HEAD(&finished, next);
        w->pending--;
        w->config.done(w->config.done_context, item);
    }
}

static void work_on_task(struct loop_task *task)
{
    work_deliver_finished(container_of(task, struct work, task));
}

static void *work_thread_main(void *argument)
{
    struct work_thread *t = argument;
    struct work *w = t->work;

    /* On Linux the niceness is that of the thread. */
    if (w->config.nice) {
        (void)setpriority(PRIO_PROCESS, (id_t)gettid(), getpriority(PRIO_PROCESS, 0) + w->config.nice);
    }
    pthread_mutex_lock(&w->lock);
    for (;;) {
        size_t n = work_take_batch(w, t->batch);

        if (!n && w->stopping && !w->lanes.waiting && !w->ready && !w->preparing) {
            break;
        }
        if (!n) {
            pthread_cond_wait(&w->filled, &w->lock);
            continue;
        }
        t->uid = t->batch[0]->uid;
        t->weight = t->batch[0]->weight;
        t->running = true;
        if (w->config.prepare && w->lanes.waiting) {
            pthread_cond_signal(&w->spare);
        }
        pthread_mutex_unlock(&w->lock);
        w->config.run(t->context, t->batch, n);
        pthread_mutex_lock(&w->lock);
        t->running = false;
        for (size_t i = 0; i < n; i++) {
            STAILQ_INSERT_TAIL(&w->finished, t->batch[i], next);
        }
        w->batches++;
        if (!w->posted) {
            w->posted = true;
            loop_post(w->loop, &w->task);
        }
        /* An item that another thread was not allowed to run may be allowed now; or the threads end. */
        if (w->config.threads > 1 && (w->lanes.waiting || w->stopping)) {
            pthread_cond_broadcast(&w->filled);
        }
    }
    pthread_mutex_unlock(&w->lock);
    return NULL;
}

/* Starts a thread with every signal blocked. */
static bool work_start(struct work *w, struct work_thread *t, void *(*main)(void *))
{
    sigset_t all, before;
    char name[16];

    t->work = w;
    t->batch = calloc(w->config.batch_max, sizeof(struct work_item *));
    if (!t->batch) {
        return false;
    }
    sigfillset(&all);
    sigdelset(&all,
              SIGBUS); /* of the thread's own memory accesses: if blocked, it would end the process without a message */
    pthread_sigmask(SIG_SETMASK, &all, &before);
    int failed = pthread_create(&t->id, NULL, main, t);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    if (failed) {
        free(t->batch);
        t->batch = NULL;
        return false;
    }
    (void)snprintf(name, sizeof name, t == &w->preparer ? "%.13s-p" : "%s", w->config.name);
    pthread_setname_np(t->id, name);
    return true;
}

enum profd_status work_new(struct loop *l, const struct work_config *config, struct work **out, struct profd_error *e)
{
    struct work *w;

    if (!config->threads || config->threads > WORK_THREADS_MAX || !config->batch_max ||
        config->batch_max > WORK_BATCH_MAX) {
        return profd_error_set(e, PROFD_INTERNAL, "%s: %u threads, batches of %zu: at most %d and %d", config->name,
                               config->threads, config->batch_max, WORK_THREADS_MAX, WORK_BATCH_MAX);
    }
    FAIL_IF(config->prepare && config->threads != 1, e, PROFD_INTERNAL,
            "%s: %u threads with preparation, which serves one", config->name, config->threads);
    w = calloc(1, sizeof *w);
    TRY(w ? PROFD_OK : profd_no_memory(e));
    w->loop = l;
    w->config = *config;
    w->task.run = work_on_task;
    TAILQ_INIT(&w->lanes.ring);
    hashmap_init(&w->lanes.of_uid, 0);
    STAILQ_INIT(&w->prepared);
    STAILQ_INIT(&w->finished);
    pthread_mutex_init(&w->lock, NULL);
    pthread_cond_init(&w->filled, NULL);
    pthread_cond_init(&w->spare, NULL);
    w->preparer_started = config->prepare && work_start(w, &w->preparer, work_preparer_main);
    bool good = !config->prepare || w->preparer_started;
    for (unsigned i = 0; i < config->threads && good; i++) {
        w->threads[i].context = config->contexts ? config->contexts[i] : NULL;
        good = work_start(w, &w->threads[i], work_thread_main);
        w->started += good;
    }
    if (!good) {
        work_free(w);
        return profd_error_set(e, PROFD_NO_MEMORY, "the threads of %s cannot be started", config->name);
    }
    w->config.contexts = NULL; /* belonged to the caller */
    *out = w;
    return PROFD_OK;
}

bool work_put(struct work *w, struct work_item *item)
{
    pthread_mutex_lock(&w->lock);
    bool good = !w->stopping && w->lanes.waiting < w->config.queue_max &&
                work_lanes_put(&w->lanes, item, w->config.queue_max_uid);
    if (good) {
        w->pending++;
        if (w->config.prepare && w->threads[0].running) {
            pthread_cond_signal(&w->spare);
        } else {
            pthread_cond_signal(&w->filled);
        }
    }
    pthread_mutex_unlock(&w->lock);
    return good;
}

size_t work_pending(const struct work *w)
{
    return w->pending;
}

uint64_t work_batches(struct work *w)
{
    pthread_mutex_lock(&w->lock);
    uint64_t n = w->batches;
    pthread_mutex_unlock(&w->lock);
    return n;
}

void work_stop(struct work *w)
{
    pthread_mutex_lock(&w->lock);
    w->stopping = true;
    pthread_cond_broadcast(&w->filled);
    pthread_cond_broadcast(&w->spare);
    pthread_mutex_unlock(&w->lock);
}

void work_drop(struct work *w, void (*drop)(void *context, struct work_item *item), void *context)
{
    struct work_list dropped = STAILQ_HEAD_INITIALIZER(dropped);
    struct work_item *item;

    pthread_mutex_lock(&w->lock);
    while (w->ready || w->lanes.waiting) {
        item = w->ready ? work_take_ready(w) : work_lanes_take(&w->lanes);
        STAILQ_INSERT_TAIL(&dropped, item, next);
        w->pending--;
    }
    pthread_mutex_unlock(&w->lock);
    while ((item = STAILQ_FIRST(&dropped)) != NULL) {
        STAILQ_REMOVE_HEAD(&dropped, next);
        drop(context, item);
    }
}

void work_free(struct work *w)
{
    if (!w) {
        return;
    }
    work_stop(w);
    if (w->preparer_started) {
        pthread_join(w->preparer.id, NULL);
        free(w->preparer.batch);
    }
    for (unsigned i = 0; i < w->started; i++) {
        pthread_join(w->threads[i].id, NULL);
        free(w->threads[i].batch);
    }
    work_deliver_finished(w);
    hashmap_clear(&w->lanes.of_uid);
    pthread_cond_destroy(&w->filled);
    pthread_cond_destroy(&w->spare);
    pthread_mutex_destroy(&w->lock);
    free(w);
}
