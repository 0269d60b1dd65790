/* Four callers of one callee, at 12 ns to 14 us a call. The program knows the CPU time of each path: it reads the
 * clock of the thread around batches of calls, and prints one line `CALLER CALLS SECONDS` for each.
 * usage: callers SECONDS SEED */
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#define NOINLINE __attribute__((noipa))

static volatile unsigned sink;

NOINLINE void callee(unsigned turns)
{
    for (unsigned i = 0; i < turns; i++) {
        sink += i;
    }
}

NOINLINE void tiny(unsigned calls)
{
    for (unsigned i = 0; i < calls; i++) {
        callee(8);
    }
}

NOINLINE void small(unsigned calls)
{
    for (unsigned i = 0; i < calls; i++) {
        callee(150);
    }
}

NOINLINE void large(unsigned calls)
{
    for (unsigned i = 0; i < calls; i++) {
        callee(3000);
    }
}

NOINLINE void huge(unsigned calls)
{
    for (unsigned i = 0; i < calls; i++) {
        callee(50000);
    }
}

static double thread_seconds(void)
{
    struct timespec t;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
    return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

struct caller {
    const char *name;
    unsigned batch; /* calls of about a millisecond */
    unsigned share; /* how often a batch is drawn */
    unsigned long calls;
    double seconds;
};

static void run(unsigned k, unsigned calls)
{
    switch (k) {
    case 0:
        tiny(calls);
        break;
    case 1:
        small(calls);
        break;
    case 2:
        large(calls);
        break;
    default:
        huge(calls);
    }
    sink++; /* no tail call */
}

int main(int argc, char **argv)
{
    static struct caller callers[] = {
        {"tiny", 80000, 1, 0, 0}, {"small", 20000, 2, 0, 0}, {"large", 1200, 3, 0, 0}, {"huge", 70, 4, 0, 0}};
    double limit = argc > 1 ? atof(argv[1]) : 1;
    unsigned state = argc > 2 ? (unsigned)atoi(argv[2]) : 1;
    while (thread_seconds() < limit) {
        state = state * 1103515245u + 12345u;
        unsigned pick = (state >> 16) % 10, k = 0;
        while (pick >= callers[k].share) {
            pick -= callers[k++].share;
        }
        double before = thread_seconds();
        run(k, callers[k].batch);
        callers[k].seconds += thread_seconds() - before;
        callers[k].calls += callers[k].batch;
    }
    for (unsigned k = 0; k < 4; k++) {
        printf("%s %lu %.9f\n", callers[k].name, callers[k].calls, callers[k].seconds);
    }
    return 0;
}
