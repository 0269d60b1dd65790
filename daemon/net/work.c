#include "net/work.h"

#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>

#include "net/loop.h"

#define THREADS_MAX 16
#define BATCH_MAX 4096
#define BUCKETS 256

/* The waiting items of one user. Lanes stand in a ring; the one at the front gives the next item. */
struct work_lane {
    struct work_lane *ring_next;
    struct work_lane *bucket_next;
    uint32_t uid;
    size_t count;
    struct work_item *first, *last;
};

struct work_thread {
    pthread_t id;
    struct work *work;
    void *context;
    struct work_item **batch;
    bool running; /* under the lock, as is uid: whose batch of one it runs */
    uint32_t uid;
};

struct work {
    struct loop_task task; /* first: a pointer to it is one to the work */
    struct loop *loop;
    struct work_config config;
    struct work_thread threads[THREADS_MAX];
    unsigned started;
    size_t pending; /* the loop's thread only */

    pthread_mutex_t lock; /* guards everything below */
    pthread_cond_t filled;
    struct work_lane *ring_first, *ring_last;
    struct work_lane *buckets[BUCKETS];
    size_t waiting;
    uint64_t batches;
    struct work_item *finished_first, *finished_last;
    bool posted, stopping;
};

static struct work_lane **work_find_lane(struct work *w, uint32_t uid)
{
    struct work_lane **at = &w->buckets[(uid * 2654435761u) >> 24];

    while (*at && (*at)->uid != uid)
        at = &(*at)->bucket_next;
    return at;
}

static void work_ring_append(struct work *w, struct work_lane *lane)
{
    lane->ring_next = NULL;
    if (w->ring_last)
        w->ring_last->ring_next = lane;
    else
        w->ring_first = lane;
    w->ring_last = lane;
}

/* Takes the next item in turn; an empty lane goes away. There must be one. */
static struct work_item *work_take_item(struct work *w)
{
    struct work_lane *lane = w->ring_first;
    struct work_item *item = lane->first;

    w->ring_first = lane->ring_next;
    if (!w->ring_first)
        w->ring_last = NULL;
    lane->first = item->next;
    lane->count--;
    w->waiting--;
    if (lane->first) {
        work_ring_append(w, lane);
    } else {
        *work_find_lane(w, lane->uid) = lane->bucket_next;
        free(lane);
    }
    return item;
}

/* Does the lane's user have fewer threads at work than one user may? */
static bool work_may_run(const struct work *w, const struct work_lane *lane)
{
    unsigned running = 0;

    for (unsigned i = 0; i < w->config.threads; i++)
        running += w->threads[i].running && w->threads[i].uid == lane->uid;
    return !w->config.threads_max_uid || running < w->config.threads_max_uid;
}

/* Brings a lane that may run to the front. False: there is none now. O(waiting users). */
static bool work_turn(struct work *w)
{
    struct work_lane *const last = w->ring_last;

    if (!w->waiting)
        return false;
    while (!work_may_run(w, w->ring_first)) {
        struct work_lane *lane = w->ring_first;

        if (lane == last)
            return false;
        w->ring_first = lane->ring_next;
        work_ring_append(w, lane);
    }
    return true;
}

static size_t work_take_batch(struct work *w, struct work_item **batch)
{
    size_t n = 0, weight = 0;

    while (w->waiting && n < w->config.batch_max &&
           (!n || weight + w->ring_first->first->weight <= w->config.batch_weight)) {
        batch[n] = work_take_item(w);
        weight += batch[n]->weight;
        n++;
    }
    return n;
}

static void work_deliver_finished(struct work *w)
{
    struct work_item *item, *next;

    pthread_mutex_lock(&w->lock);
    item = w->finished_first;
    w->finished_first = w->finished_last = NULL;
    w->posted = false;
    pthread_mutex_unlock(&w->lock);
    for (; item; item = next) {
        next = item->next;
        w->pending--;
        w->config.done(w->config.done_context, item);
    }
}

static void work_on_task(struct loop_task *task)
{
    work_deliver_finished((struct work *)(void *)task);
}

/* Called with the lock held. */
static void work_finish_batch(struct work *w, struct work_item **batch, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        batch[i]->next = NULL;
        if (w->finished_last)
            w->finished_last->next = batch[i];
        else
            w->finished_first = batch[i];
        w->finished_last = batch[i];
    }
    w->batches++;
    if (!w->posted) {
        w->posted = true;
        loop_post(w->loop, &w->task);
    }
}

static void *work_thread_main(void *argument)
{
    struct work_thread *t = argument;
    struct work *w = t->work;

    pthread_mutex_lock(&w->lock);
    for (;;) {
        size_t n;

        while (!work_turn(w) && !w->stopping)
            pthread_cond_wait(&w->filled, &w->lock);
        if (!w->waiting)
            break;
        n = work_take_batch(w, t->batch);
        t->uid = t->batch[0]->uid;
        t->running = true;
        pthread_mutex_unlock(&w->lock);
        w->config.run(t->context, t->batch, n);
        pthread_mutex_lock(&w->lock);
        t->running = false;
        work_finish_batch(w, t->batch, n);
    }
    pthread_mutex_unlock(&w->lock);
    return NULL;
}

static bool work_start_thread(struct work *w, unsigned i)
{
    struct work_thread *t = &w->threads[i];
    sigset_t all, before;
    int failed;

    t->work = w;
    t->context = w->config.contexts ? w->config.contexts[i] : NULL;
    t->batch = calloc(w->config.batch_max, sizeof(struct work_item *));
    if (!t->batch)
        return false;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    failed = pthread_create(&t->id, NULL, work_thread_main, t);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    if (failed) {
        free(t->batch);
        t->batch = NULL;
        return false;
    }
    pthread_setname_np(t->id, w->config.name);
    w->started++;
    return true;
}

enum profd_status work_new(struct loop *l, const struct work_config *config, struct work **out, struct profd_error *e)
{
    struct work *w;

    if (!config->threads || config->threads > THREADS_MAX || !config->batch_max || config->batch_max > BATCH_MAX)
        return profd_error_set(e, PROFD_INTERNAL, "%s: %u threads, batches of %zu: at most %d and %d", config->name,
                               config->threads, config->batch_max, THREADS_MAX, BATCH_MAX);
    w = calloc(1, sizeof *w);
    if (!w)
        return profd_error_set(e, PROFD_NO_MEMORY, "no memory for the threads of %s", config->name);
    w->loop = l;
    w->config = *config;
    w->task.run = work_on_task;
    pthread_mutex_init(&w->lock, NULL);
    pthread_cond_init(&w->filled, NULL);
    for (unsigned i = 0; i < config->threads; i++)
        if (!work_start_thread(w, i)) {
            work_free(w);
            return profd_error_set(e, PROFD_NO_MEMORY, "thread %u of %s cannot be started", i + 1, config->name);
        }
    w->config.contexts = NULL; /* belonged to the caller */
    *out = w;
    return PROFD_OK;
}

/* The user's lane, new if need be. NULL when full or out of memory. */
static struct work_lane *work_open_lane(struct work *w, uint32_t uid)
{
    struct work_lane **at = work_find_lane(w, uid), *lane = *at;

    if (lane)
        return lane->count < w->config.queue_max_uid ? lane : NULL;
    lane = calloc(1, sizeof *lane);
    if (!lane)
        return NULL;
    lane->uid = uid;
    *at = lane;
    work_ring_append(w, lane);
    return lane;
}

bool work_put(struct work *w, struct work_item *item)
{
    struct work_lane *lane = NULL;

    pthread_mutex_lock(&w->lock);
    if (!w->stopping && w->waiting < w->config.queue_max)
        lane = work_open_lane(w, item->uid);
    if (lane) {
        item->next = NULL;
        if (lane->first)
            lane->last->next = item;
        else
            lane->first = item;
        lane->last = item;
        lane->count++;
        w->waiting++;
        w->pending++;
        pthread_cond_signal(&w->filled);
    }
    pthread_mutex_unlock(&w->lock);
    return lane != NULL;
}

size_t work_pending(const struct work *w)
{
    return w->pending;
}

uint64_t work_batches(struct work *w)
{
    uint64_t n;

    pthread_mutex_lock(&w->lock);
    n = w->batches;
    pthread_mutex_unlock(&w->lock);
    return n;
}

void work_stop(struct work *w)
{
    pthread_mutex_lock(&w->lock);
    w->stopping = true;
    pthread_cond_broadcast(&w->filled);
    pthread_mutex_unlock(&w->lock);
}

void work_drop(struct work *w, void (*drop)(void *context, struct work_item *item), void *context)
{
    struct work_item *first = NULL, **end = &first, *next;

    pthread_mutex_lock(&w->lock);
    while (w->waiting) {
        *end = work_take_item(w);
        (*end)->next = NULL;
        end = &(*end)->next;
        w->pending--;
    }
    pthread_mutex_unlock(&w->lock);
    for (; first; first = next) {
        next = first->next;
        drop(context, first);
    }
}

void work_free(struct work *w)
{
    if (!w)
        return;
    work_stop(w);
    for (unsigned i = 0; i < w->started; i++) {
        pthread_join(w->threads[i].id, NULL);
        free(w->threads[i].batch);
    }
    work_deliver_finished(w);
    pthread_cond_destroy(&w->filled);
    pthread_mutex_destroy(&w->lock);
    free(w);
}
