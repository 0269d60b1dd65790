#include "requests/object_brokers.h"

#include <stdlib.h>

#include "elf/broker.h"
#include "base/log.h"
#include "net/loop.h"
#include "net/watch.h"
#include "proto/limits.h"

#define DELAY_MIN_MS 1000u
#define DELAY_MAX_MS 60000u
#define STEADY_MS 60000u /* one that lived longer is started again after the shortest delay */
#define AGAIN_MS 50      /* it serves a request: the thread that waits for the answer notices its end */

struct object_broker {
    struct object_brokers *all;
    struct broker *broker;
    struct watch *watch;
    struct loop_timer *timer;
    uint64_t started, delay; /* ms of loop_now, ms */
    bool gone;
};

struct object_brokers {
    struct loop *loop;
    struct object_broker each[LIMIT_WORKERS];
    size_t gone;
};

static void object_brokers_look_one(struct object_broker *b)
{
    struct profd_error why;

    if (b->gone || !broker_has_ended(b->broker, &why)) {
        return;
    }
    watch_free(b->watch);
    b->watch = NULL;
    b->gone = true;
    b->all->gone++;
    b->delay = loop_now() - b->started > STEADY_MS || !b->delay ? DELAY_MIN_MS : b->delay * 2;
    b->delay = b->delay < DELAY_MAX_MS ? b->delay : DELAY_MAX_MS;
    log_write(LOG_LEVEL_WARNING, "executables", "%s; it is started again in %u s, until then executables wait",
              why.sentence, (unsigned)(b->delay / 1000));
    loop_timer_set(b->timer, b->delay);
}

static void object_brokers_on_end(void *context)
{
    struct object_broker *b = context;

    object_brokers_look_one(b);
    if (!b->gone) {
        loop_timer_set(b->timer, AGAIN_MS);
    }
}

/* A kernel without handles of processes says of an end only by an answer that does not come. */
static void object_brokers_watch(struct object_broker *b)
{
    const int handle = broker_get_handle(b->broker);

    b->watch = handle < 0 ? NULL : watch_new(b->all->loop, handle, object_brokers_on_end, b);
    b->started = loop_now();
}

static void object_brokers_on_timer(void *context)
{
    struct object_broker *b = context;
    struct profd_error e;

    if (!b->gone) {
        object_brokers_on_end(b);
    } else if (broker_restart(b->broker, &e)) {
        b->delay = b->delay * 2 < DELAY_MAX_MS ? b->delay * 2 : DELAY_MAX_MS;
        log_write(LOG_LEVEL_WARNING, "executables", "%s; the next attempt is in %u s", e.sentence,
                  (unsigned)(b->delay / 1000));
        loop_timer_set(b->timer, b->delay);
    } else {
        b->gone = false;
        b->all->gone--;
        object_brokers_watch(b);
        log_write(LOG_LEVEL_NOTICE, NULL, "the process that reads executables was started again");
    }
}

void object_brokers_look(struct object_brokers *all)
{
    for (size_t i = 0; i < LIMIT_WORKERS; i++) {
        object_brokers_look_one(&all->each[i]);
    }
}

size_t object_brokers_count_gone(const struct object_brokers *all)
{
    return all->gone;
}

enum profd_status object_brokers_new(struct loop *loop, struct broker *const *brokers, struct object_brokers **out,
                                     struct profd_error *e)
{
    struct object_brokers *all = calloc(1, sizeof *all);

    for (size_t i = 0; all && i < LIMIT_WORKERS; i++) {
        struct object_broker *b = &all->each[i];

        all->loop = loop;
        b->all = all;
        b->broker = brokers[i];
        b->timer = loop_timer_new(loop, object_brokers_on_timer, b);
        if (!b->timer) {
            object_brokers_free(all);
            all = NULL;
            break;
        }
        object_brokers_watch(b);
    }
    *out = all;
    return all ? PROFD_OK : profd_error_set(e, PROFD_NO_MEMORY, "no memory for the readers of executables");
}

void object_brokers_free(struct object_brokers *all)
{
    for (size_t i = 0; all && i < LIMIT_WORKERS; i++) {
        watch_free(all->each[i].watch);
        loop_timer_free(all->each[i].timer);
    }
    free(all);
}
