/* Items are prepared while the previous batch runs: by the second thread, or, if nothing runs, by the thread that would
 * have to wait for it. */
#include "net/work_internal.h"

#define CHUNK 16 /* prepared in one go: the one that waits for them does not wait for more */

static void work_append_ready(struct work *w, struct work_item *const *items, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        STAILQ_INSERT_TAIL(&w->prepared, items[i], next);
        w->ready_weight += items[i]->weight;
    }
    w->ready += n;
}

struct work_item *work_take_ready(struct work *w)
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

size_t work_take_prepared(struct work *w, struct work_item **batch)
{
    size_t n = 0, weight = 0;

    if (!w->ready && !w->preparing) {
        return work_prepare_some(w, batch, w->config.batch_max < CHUNK ? w->config.batch_max : CHUNK,
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

/* True if there is an item to prepare and memory for it. The memory of prepared items is that of one batch. */
static bool work_may_prepare(const struct work *w)
{
    return w->lanes.waiting && !w->preparing && w->threads[0].running && w->ready < w->config.batch_max &&
           (!w->ready || w->ready_weight < w->config.batch_weight);
}

void *work_preparer_main(void *argument)
{
    struct work_thread *t = argument;
    struct work *w = t->work;

    pthread_mutex_lock(&w->lock);
    while (!w->stopping) {
        const size_t room = w->config.batch_max - w->ready;
        size_t n;

        if (!work_may_prepare(w)) {
            pthread_cond_wait(&w->spare, &w->lock);
            continue;
        }
        n = work_prepare_some(w, t->batch, room < CHUNK ? room : CHUNK,
                              w->ready ? w->config.batch_weight - w->ready_weight : w->config.batch_weight, !w->ready);
        work_append_ready(w, t->batch, n);
        if (!w->threads[0].running) {
            pthread_cond_signal(&w->filled);
        } else if (!n) {
            pthread_cond_wait(&w->spare, &w->lock); /* the next item exceeds the remaining memory */
        }
    }
    pthread_mutex_unlock(&w->lock);
    return NULL;
}
