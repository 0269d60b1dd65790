#include "client/collect/unload.h"

#include <stdint.h>
#include <time.h>

#include "client/collect/raw.h"
#include "client/collect/stub.h"

#define CLOSE_WAIT_NS 100000
#define CLOSE_WAITS 10000u
#define CLOSE_SPINS 50000u

static uint32_t readers, closing; /* number of threads that read objects; number of dlclose() calls in progress */

bool unload_read_begin(void)
{
    if (!profd_collect_thread.reading) { /* otherwise a handler of the program left the last tick by siglongjmp() */
        profd_collect_thread.reading = 1;
        __atomic_fetch_add(&readers, 1, __ATOMIC_SEQ_CST);
    }
    if (__atomic_load_n(&closing, __ATOMIC_SEQ_CST)) {
        unload_read_end();
        return false;
    }
    return true;
}

void unload_read_end(void)
{
    __atomic_fetch_sub(&readers, 1, __ATOMIC_SEQ_CST);
    profd_collect_thread.reading = 0;
}

void unload_begin(void)
{
    struct timespec wait = {0, CLOSE_WAIT_NS};
    profd_collect_thread.closing++;
    __atomic_fetch_add(&closing, 1, __ATOMIC_SEQ_CST);
    for (unsigned i = 0; i < CLOSE_WAITS && __atomic_load_n(&readers, __ATOMIC_SEQ_CST) > profd_collect_thread.reading;
         i++) {
        if (raw_call(SYS_nanosleep, &wait, NULL, 0, 0) < 0) { /* may be denied */
            for (volatile unsigned n = 0; n < CLOSE_SPINS; n++) {
            }
        }
    }
}

void unload_end(void)
{
    __atomic_fetch_sub(&closing, 1, __ATOMIC_SEQ_CST);
    profd_collect_thread.closing--;
}

void unload_reset(void)
{
    readers = profd_collect_thread.reading;
    closing = profd_collect_thread.closing;
}
