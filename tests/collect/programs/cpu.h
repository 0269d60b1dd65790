/* The process's CPU time, in seconds: programs that work for a while measure by it what a busy machine leaves them. */
#ifndef CPU_H
#define CPU_H

#include <time.h>

static inline __attribute__((no_instrument_function)) double cpu(void)
{
    struct timespec t;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
    return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

#endif
