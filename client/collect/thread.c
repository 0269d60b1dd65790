#include "client/collect/thread.h"

#include <limits.h>
#include <pthread.h>

#include "client/collect/collect.h"
#include "client/collect/sample.h"
#include "client/collect/saved.h"
#include "client/collect/stub.h"
#include "client/collect/count_table.h"

/* glibc stores the values of this many keys in the thread itself: setting one is two stores, without lock or memory */
#define KEYS_INSIDE 32u

static pthread_key_t key;
static int prepared;
static const char mark;

/* Destructors of other keys may still call instrumented functions, so this one waits for the last round. */
static void thread_end(void *value)
{
    if (++profd_collect_thread.passes < PTHREAD_DESTRUCTOR_ITERATIONS && pthread_setspecific(key, value) == 0) {
        return;
    }
    sample_disarm();
    count_table_release();
}

void thread_prepare(void)
{
    prepared = pthread_key_create(&key, thread_end) == 0;
}

void thread_begin(void)
{
    if (!prepared || profd_collect_thread.begun) {
        return;
    }
    profd_collect_thread.begun = 1;
    collect_counter_add(ATTACH_COUNTER_THREADS, 1);
    pthread_setspecific(key, &mark);
}

void thread_begin_late(void)
{
    if (!prepared || profd_collect_thread.begun || key >= KEYS_INSIDE) {
        return;
    }
    profd_collect_thread.begun = 1;
    collect_counter_add(ATTACH_COUNTER_THREADS, 1);
    saved_call((void (*)(void))pthread_setspecific, key, (uintptr_t)&mark);
}
