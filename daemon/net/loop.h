/* The event loop of the talking thread: readiness, timers, signals, and messages from other threads. */
#ifndef PROFD_NET_LOOP_H
#define PROFD_NET_LOOP_H

#include <stdint.h>
#include <sys/queue.h>

#include "proto/status.h"

struct event_base;
struct loop;
struct loop_timer;

/* Everything below belongs to the thread that runs the loop, except loop_post. Ignores SIGPIPE and SIGXFSZ for the
 * process. */
enum profd_status loop_new(struct loop **out, struct profd_error *e);
/* Frees timers' base and signal watches; tasks not yet run are dropped. Accepts NULL. */
void loop_free(struct loop *l);
struct event_base *loop_get_base(struct loop *l);

/* Runs until loop_stop. May be called again afterwards. */
void loop_run(struct loop *l);
void loop_stop(struct loop *l);

/* f runs on the loop whenever the signal arrives. At most 8 signals a loop. */
enum profd_status loop_watch_signal(struct loop *l, int number, void (*f)(void *context, int number), void *context,
                                    struct profd_error *e);

/* A timer that is not set yet; NULL when out of memory. Free it before the loop. */
struct loop_timer *loop_timer_new(struct loop *l, void (*f)(void *context), void *context);
/* Fires once after that many milliseconds of monotonic time; setting it again replaces the time. */
void loop_timer_set(struct loop_timer *t, uint64_t milliseconds);
void loop_timer_clear(struct loop_timer *t);
void loop_timer_free(struct loop_timer *t);

/* Something for the loop to do, embedded in what it is about. */
struct loop_task {
    STAILQ_ENTRY(loop_task) next;
    void (*run)(struct loop_task *task);
};
/* Any thread: task->run is called on the loop soon, in order of posting. The task must live until then. */
void loop_post(struct loop *l, struct loop_task *task);

/* Milliseconds of CLOCK_MONOTONIC. */
uint64_t loop_now(void);
/* Nanoseconds since the epoch. */
int64_t loop_clock(void);

/* Sends the event library's own messages to f (warning: severity ≥ 2). Process-wide. */
void loop_redirect_log(void (*f)(int severity, const char *text));

/* A descriptor of our own that becomes readable once: the handle of a process. Loop thread only. */

struct watch;

/* f runs on the loop, once, when fd is readable; it may free the watch. The descriptor stays the caller's and is closed
 * after watch_free. NULL when out of memory or when the kernel cannot wait for such a descriptor. */
struct watch *watch_new(struct loop *l, int fd, void (*f)(void *context), void *context);
/* Accepts NULL. */
void watch_free(struct watch *w);

/* A mutex, for directories that may not use threads themselves. */

struct lock;

/* NULL when out of memory. */
struct lock *lock_new(void);
/* The lock must not be held. Accepts NULL. */
void lock_free(struct lock *l);

/* Waits for it; not to be taken twice by one thread. The argument is a struct lock, so that they fit as callbacks. */
void lock_take(void *lock);
void lock_give(void *lock);

#endif
