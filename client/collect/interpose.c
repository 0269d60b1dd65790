/* Functions of libc that the shared library interposes, to learn of threads, and of forks without handlers. Each
 * behaves like libc's. Not in the static library. */
#include <pthread.h>
#include <stdlib.h>
#include <threads.h>
#include <unistd.h>

#include "client/collect/collect.h"
#include "client/collect/life.h"
#include "client/collect/next.h"
#include "client/collect/raw.h"
#include "client/collect/sample.h"
#include "client/collect/stub.h"
#include "client/collect/thread.h"

#define EXPORT __attribute__((visibility("default")))
#define STARTS 1024u /* threads between their creation and their first instruction */

static struct start {
    void *(*begin)(void *);
    int (*begin11)(void *);
    void *argument;
    uint32_t taken;
} starts[STARTS];

static struct start *start_take(void)
{
    static uint32_t next;
    uint32_t from = __atomic_fetch_add(&next, 1, __ATOMIC_RELAXED);
    for (uint32_t i = 0; i < STARTS; i++) {
        struct start *s = &starts[(from + i) % STARTS];
        if (!__atomic_load_n(&s->taken, __ATOMIC_RELAXED) && !__atomic_exchange_n(&s->taken, 1, __ATOMIC_ACQ_REL)) {
            return s;
        }
    }
    return NULL;
}

static void start_give(struct start *s)
{
    __atomic_store_n(&s->taken, 0, __ATOMIC_RELEASE);
}

/* Beginning of the new thread: registers its end and starts its timer. Its frames end here. */
static void thread_welcome(void)
{
    pthread_attr_t attr;
    void *low = NULL;
    size_t size = 0;
    if (collect.stage != COLLECT_RUNNING) {
        return;
    }
    thread_begin();
    if (!sample_is_on()) {
        return;
    }
    if (!raw_denied && pthread_getattr_np(pthread_self(), &attr) == 0) {
        if (pthread_attr_getstack(&attr, &low, &size) != 0) {
            size = 0;
        }
        pthread_attr_destroy(&attr);
    }
    uintptr_t here = (uintptr_t)__builtin_frame_address(0);
    bool inside = size && here > (uintptr_t)low && here < (uintptr_t)low + size;
    sample_arm(inside ? (uintptr_t)low : 0, inside ? (uintptr_t)low + size : 0);
}

static void *thread_main(void *context)
{
    struct start s = *(struct start *)context;
    start_give(context);
    thread_welcome();
    return s.begin(s.argument);
}

static int thread_main11(void *context)
{
    struct start s = *(struct start *)context;
    start_give(context);
    thread_welcome();
    return s.begin11(s.argument);
}

typedef int create_function(pthread_t *, const pthread_attr_t *, void *(*)(void *), void *);
typedef int create11_function(thrd_t *, thrd_start_t, void *);
typedef pid_t fork_function(void);

EXPORT int pthread_create(pthread_t *thread, const pthread_attr_t *attr, void *(*begin)(void *), void *argument)
{
    static any_function *known;
    create_function *next = (create_function *)next_find(&known, "pthread_create");
    struct start *s = collect.stage == COLLECT_RUNNING ? start_take() : NULL;
    if (!s) {
        return next(thread, attr, begin, argument);
    }
    s->begin = begin;
    s->argument = argument;
    int failed = next(thread, attr, thread_main, s);
    if (failed) {
        start_give(s);
    }
    return failed;
}

EXPORT int thrd_create(thrd_t *thread, thrd_start_t begin, void *argument)
{
    static any_function *known;
    create11_function *next = (create11_function *)next_find(&known, "thrd_create");
    struct start *s = collect.stage == COLLECT_RUNNING ? start_take() : NULL;
    if (!s) {
        return next(thread, begin, argument);
    }
    s->begin11 = begin;
    s->argument = argument;
    int answer = next(thread, thread_main11, s);
    if (answer != thrd_success) {
        start_give(s);
    }
    return answer;
}

EXPORT pid_t _Fork(void)
{
    static any_function *known;
    fork_function *next = (fork_function *)next_find(&known, "_Fork");
    pid_t pid = next();
    if (pid == 0) {
        collect_start_child();
    }
    return pid;
}

/* A hook of the AddressSanitizer's runtime, which otherwise does not start a program unless it is the first library:
 * the collector is preloaded, and calls of both reach the next definition. profctl run also sets ASAN_OPTIONS, for
 * programs that have this function themselves. */
extern const char *__asan_default_options(void);
EXPORT const char *__asan_default_options(void)
{
    return "verify_asan_link_order=0";
}

/* Ends without the destructors of objects. A child of vfork() runs through here, too. */
static void end_now(int status) __attribute__((noreturn));
static void end_now(int status)
{
    life_end();
    for (;;) {
        raw_call_program(SYS_exit_group, status, 0, 0, 0, 0, 0);
    }
}

EXPORT void _exit(int status)
{
    end_now(status);
}

EXPORT void _Exit(int status)
{
    end_now(status);
}
