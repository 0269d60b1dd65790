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
/* Frees the base of the timers and the watched signals. Tasks that have not run are dropped. Accepts NULL. */
void loop_free(struct loop *l);
struct event_base *loop_get_base(struct loop *l);

/* Runs until loop_stop. May be called again afterwards. */
void loop_run(struct loop *l);
void loop_stop(struct loop *l);

/* Calls f on the loop whenever the signal arrives. At most 8 signals for each loop. */
enum profd_status loop_watch_signal(struct loop *l, int number, void (*f)(void *context, int number), void *context,
                                    struct profd_error *e);

/* Makes a timer that is not set. Returns NULL if out of memory. Must be freed before the loop. */
struct loop_timer *loop_timer_new(struct loop *l, void (*f)(void *context), void *context);
/* The timer fires once, after that many milliseconds of monotonic time. Setting it again replaces the time. */
void loop_timer_set(struct loop_timer *t, uint64_t milliseconds);
void loop_timer_clear(struct loop_timer *t);
void loop_timer_free(struct loop_timer *t);

/* A task for the loop, embedded in the caller's struct. */
struct loop_task {
    STAILQ_ENTRY(loop_task) next;
    void (*run)(struct loop_task *task);
};
/* Calls task->run on the loop soon, in the order of posting. The task must live until then. Any thread. */
void loop_post(struct loop *l, struct loop_task *task);

/* Returns milliseconds of CLOCK_MONOTONIC. */
uint64_t loop_now(void);
/* Returns nanoseconds since the epoch. */
int64_t loop_clock(void);

/* Sends the event library's own messages to f (warning: severity ≥ 2). Process-wide. */
void loop_redirect_log(void (*f)(int severity, const char *text));

/* Waits until one of the daemon's own descriptors becomes readable, a pidfd for example. Loop thread only. */

struct loop_watch;

/* Calls f on the loop, once, when fd is readable. f may free the watch. The caller owns the descriptor, and closes it
 * after loop_watch_free. Returns NULL if out of memory, or if the kernel cannot wait for such a descriptor. */
struct loop_watch *loop_watch_new(struct loop *l, int fd, void (*f)(void *context), void *context);
/* Accepts NULL. */
void loop_watch_free(struct loop_watch *w);

/* A mutex, for directories that may not use threads themselves. */

struct lock;

/* Returns NULL if out of memory. */
struct lock *lock_new(void);
/* The lock must not be held. Accepts NULL. */
void lock_free(struct lock *l);

/* Take and release the lock. A thread must not take it twice. The argument is a struct lock; its type fits callbacks.
 */
void lock_take(void *lock);
void lock_give(void *lock);

#endif
