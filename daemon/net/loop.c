#include "net/loop.h"

#include <errno.h>
#include <event2/event.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <time.h>
#include <unistd.h>

#define SIGNALS_MAX 8

struct loop_signal {
    struct event *event;
    void (*f)(void *context, int number);
    void *context;
};

struct loop {
    struct event_base *base;
    int wake_fd;
    struct event *wake;
    pthread_mutex_t lock; /* guards tasks */
    STAILQ_HEAD(loop_tasks, loop_task) tasks;
    struct loop_signal signals[SIGNALS_MAX];
    unsigned signal_count;
};

struct loop_timer {
    struct event *event;
    void (*f)(void *context);
    void *context;
};

uint64_t loop_now(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * 1000u + (uint64_t)t.tv_nsec / 1000000u;
}

int64_t loop_clock(void)
{
    struct timespec t;

    clock_gettime(CLOCK_REALTIME, &t);
    return t.tv_sec * INT64_C(1000000000) + t.tv_nsec;
}

static void loop_on_wake(evutil_socket_t fd, short what, void *context)
{
    struct loop *l = context;
    struct loop_tasks tasks = STAILQ_HEAD_INITIALIZER(tasks);
    struct loop_task *task;
    uint64_t n;
    ssize_t got = read(fd, &n, sizeof n);

    (void)what;
    (void)got; /* the list says what there is to do */
    pthread_mutex_lock(&l->lock);
    STAILQ_CONCAT(&tasks, &l->tasks);
    pthread_mutex_unlock(&l->lock);
    while ((task = STAILQ_FIRST(&tasks)) != NULL) {
        STAILQ_REMOVE_HEAD(&tasks, next);
        task->run(task);
    }
}

enum profd_status loop_new(struct loop **out, struct profd_error *e)
{
    struct loop *l = calloc(1, sizeof *l);
    struct event_config *config = event_config_new();

    signal(SIGPIPE, SIG_IGN);
    signal(SIGXFSZ, SIG_IGN); /* a file that may not grow is an error of that write, not the end of the process */
    if (l) {
        l->wake_fd = -1;
        STAILQ_INIT(&l->tasks);
        pthread_mutex_init(&l->lock, NULL);
    }
    if (config) { /* precise timers: by default, times are rounded to the latest wake-up */
        event_config_set_flag(config, EVENT_BASE_FLAG_NOLOCK | EVENT_BASE_FLAG_PRECISE_TIMER);
    }
    if (l && config) {
        l->base = event_base_new_with_config(config);
    }
    if (config) {
        event_config_free(config);
    }
    if (l && l->base) {
        l->wake_fd = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
        if (l->wake_fd < 0) {
            const int why = errno;

            loop_free(l);
            return profd_error_set(e, PROFD_IO, "eventfd: %s", strerror(why));
        }
        l->wake = event_new(l->base, l->wake_fd, EV_READ | EV_PERSIST, loop_on_wake, l);
    }
    if (!l || !l->wake || event_add(l->wake, NULL)) {
        loop_free(l);
        return profd_no_memory(e);
    }
    *out = l;
    return PROFD_OK;
}

void loop_free(struct loop *l)
{
    if (!l) {
        return;
    }
    for (unsigned i = 0; i < l->signal_count; i++) {
        event_free(l->signals[i].event);
    }
    if (l->wake) {
        event_free(l->wake);
    }
    if (l->wake_fd >= 0) {
        close(l->wake_fd);
    }
    if (l->base) {
        event_base_free(l->base);
    }
    pthread_mutex_destroy(&l->lock);
    free(l);
}

struct event_base *loop_get_base(struct loop *l)
{
    return l->base;
}

void loop_run(struct loop *l)
{
    event_base_loop(l->base, EVLOOP_NO_EXIT_ON_EMPTY);
}

void loop_stop(struct loop *l)
{
    event_base_loopbreak(l->base);
}

static void loop_on_signal(evutil_socket_t number, short what, void *context)
{
    struct loop_signal *s = context;

    (void)what;
    s->f(s->context, (int)number);
}

enum profd_status loop_watch_signal(struct loop *l, int number, void (*f)(void *context, int number), void *context,
                                    struct profd_error *e)
{
    struct loop_signal *s = &l->signals[l->signal_count];

    FAIL_IF(l->signal_count == SIGNALS_MAX, e, PROFD_INTERNAL, "more than %d signals are watched", SIGNALS_MAX);
    s->f = f;
    s->context = context;
    s->event = evsignal_new(l->base, number, loop_on_signal, s);
    TRY(s->event ? PROFD_OK : profd_no_memory(e));
    l->signal_count++;
    FAIL_IF(event_add(s->event, NULL), e, PROFD_INTERNAL, "signal %d cannot be watched", number);
    return PROFD_OK;
}

static void loop_on_timer(evutil_socket_t fd, short what, void *context)
{
    struct loop_timer *t = context;

    (void)fd;
    (void)what;
    t->f(t->context);
}

struct loop_timer *loop_timer_new(struct loop *l, void (*f)(void *context), void *context)
{
    struct loop_timer *t = calloc(1, sizeof *t);

    if (!t) {
        return NULL;
    }
    t->f = f;
    t->context = context;
    t->event = evtimer_new(l->base, loop_on_timer, t);
    if (!t->event) {
        free(t);
        return NULL;
    }
    return t;
}

void loop_timer_set(struct loop_timer *t, uint64_t milliseconds)
{
    struct timeval tv = {.tv_sec = (time_t)(milliseconds / 1000u),
                         .tv_usec = (suseconds_t)(milliseconds % 1000u * 1000u)};

    evtimer_add(t->event, &tv);
}

void loop_timer_clear(struct loop_timer *t)
{
    evtimer_del(t->event);
}

void loop_timer_free(struct loop_timer *t)
{
    if (!t) {
        return;
    }
    event_free(t->event);
    free(t);
}

void loop_post(struct loop *l, struct loop_task *task)
{
    const uint64_t one = 1;

    pthread_mutex_lock(&l->lock);
    bool first = STAILQ_EMPTY(&l->tasks);
    STAILQ_INSERT_TAIL(&l->tasks, task, next);
    pthread_mutex_unlock(&l->lock);
    /* Only the first of a burst wakes: the loop takes the whole list. */
    if (first) {
        ssize_t put = write(l->wake_fd, &one, sizeof one);
        (void)put; /* fails only when the counter is full, and then the loop is awake */
    }
}

void loop_redirect_log(void (*f)(int severity, const char *text))
{
    event_set_log_callback(f);
}

struct loop_watch {
    struct event *event;
    void (*f)(void *context);
    void *context;
};

static void loop_watch_on_readable(evutil_socket_t fd, short what, void *context)
{
    struct loop_watch *w = context;

    (void)fd;
    (void)what;
    w->f(w->context);
}

struct loop_watch *loop_watch_new(struct loop *l, int fd, void (*f)(void *context), void *context)
{
    struct loop_watch *w = calloc(1, sizeof *w);

    if (!w) {
        return NULL;
    }
    w->f = f;
    w->context = context;
    w->event = event_new(loop_get_base(l), fd, EV_READ, loop_watch_on_readable, w); /* once */
    if (!w->event || event_add(w->event, NULL)) {
        loop_watch_free(w);
        return NULL;
    }
    return w;
}

void loop_watch_free(struct loop_watch *w)
{
    if (!w) {
        return;
    }
    if (w->event) {
        event_free(w->event);
    }
    free(w);
}

struct lock {
    pthread_mutex_t mutex;
};

struct lock *lock_new(void)
{
    struct lock *l = malloc(sizeof *l);

    if (l && pthread_mutex_init(&l->mutex, NULL)) {
        free(l);
        l = NULL;
    }
    return l;
}

void lock_free(struct lock *l)
{
    if (l) {
        pthread_mutex_destroy(&l->mutex);
    }
    free(l);
}

void lock_take(void *lock)
{
    struct lock *l = lock;

    pthread_mutex_lock(&l->mutex);
}

void lock_give(void *lock)
{
    struct lock *l = lock;

    pthread_mutex_unlock(&l->mutex);
}
