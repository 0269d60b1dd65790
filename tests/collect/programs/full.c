/* full DEPTH: 2^DEPTH ticks, each on a path of its own. They are copies of one tick of the timer, which the program
 * sends to itself. */
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#define APART __attribute__((noinline, noclone))

static siginfo_t tick;
static volatile uint64_t sink;

APART void leaf(unsigned n)
{
    if (n % 2) {
        syscall(SYS_rt_tgsigqueueinfo, getpid(), gettid(), SIGPROF, &tick);
    } else {
        syscall(SYS_rt_tgsigqueueinfo, getpid(), gettid(), SIGPROF, &tick);
        sink++;
    }
    sink++;
}

APART void branch(unsigned depth, unsigned path)
{
    if (depth == 0) {
        leaf(path);
    } else if (path >> (depth - 1) & 1) {
        branch(depth - 1, path);
        sink++;
    } else {
        branch(depth - 1, path);
    }
    sink++;
}

int main(int argc, char **argv)
{
    unsigned depth = argc > 1 ? (unsigned)atoi(argv[1]) : 4;
    sigset_t set;
    sigemptyset(&set);
    sigaddset(&set, SIGPROF);
    sigprocmask(SIG_BLOCK, &set, NULL);
    while (sigtimedwait(&set, &tick, &(struct timespec){0, 0}) != SIGPROF) {
        sink++;
    }
    tick.si_overrun = 0;
    sigprocmask(SIG_UNBLOCK, &set, NULL);
    for (unsigned path = 0; path < 1u << depth; path++) {
        branch(depth, path);
    }
    return 0;
}
