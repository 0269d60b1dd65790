/* stacks: microseconds of CPU of one tick, printed by name: of another signal, whose handler does nothing, of a tick on
 * a stack that it does not know, and of one whose stack has 30 frames; with warm caches, and after other data has
 * displaced the collector's. Ticks are sent to the program itself, as copies of one from its timer. */
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <time.h>
#include <ucontext.h>
#include <unistd.h>

#define APART __attribute__((noinline, noclone))
#define WARM 20000
#define COLD 400
#define DISPLACE (8u << 20) /* bytes: more than a core has for itself */

static siginfo_t tick;
static volatile uint64_t sink;
static unsigned char *displaced;

static double now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
    return (double)t.tv_sec * 1e6 + (double)t.tv_nsec / 1e3;
}

static void deliver(siginfo_t *info)
{
    syscall(SYS_rt_tgsigqueueinfo, getpid(), gettid(), info->si_signo, info);
}

static void nothing(int number)
{
    (void)number;
}

static void displace(void)
{
    for (unsigned i = 0; i < DISPLACE; i += 64) {
        sink += displaced[i]++;
    }
}

static int compare(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

APART void measure(siginfo_t *info, const char *name)
{
    static double cold[COLD];
    for (unsigned i = 0; i < 100; i++) {
        deliver(info);
    }
    double begin = now();
    for (unsigned i = 0; i < WARM; i++) {
        deliver(info);
    }
    double warm = (now() - begin) / WARM;
    for (unsigned i = 0; i < COLD; i++) {
        displace();
        begin = now();
        deliver(info);
        cold[i] = now() - begin;
    }
    qsort(cold, COLD, sizeof cold[0], compare);
    printf("%s %.3f %.3f\n", name, warm, cold[COLD / 2]);
    sink++;
}

static ucontext_t outside, inside;
static void unknown(void)
{
    measure(&tick, "unknown");
}

#define FRAME(n, next)                                                                                                 \
    APART void frame##n(void)                                                                                          \
    {                                                                                                                  \
        next;                                                                                                          \
        sink++;                                                                                                        \
    }
FRAME(1, measure(&tick, "stack"))
FRAME(2, frame1())
FRAME(3, frame2())
FRAME(4, frame3())
FRAME(5, frame4())
FRAME(6, frame5())
FRAME(7, frame6())
FRAME(8, frame7())
FRAME(9, frame8())
FRAME(10, frame9())
FRAME(11, frame10())
FRAME(12, frame11())
FRAME(13, frame12())
FRAME(14, frame13())
FRAME(15, frame14())
FRAME(16, frame15())
FRAME(17, frame16())
FRAME(18, frame17())
FRAME(19, frame18())
FRAME(20, frame19())
FRAME(21, frame20())
FRAME(22, frame21())
FRAME(23, frame22()) /* above it main, two frames of libc and _start; below it measure, deliver and syscall */

int main(void)
{
    static char stack[1 << 18];
    sigset_t set;
    sigemptyset(&set);
    sigaddset(&set, SIGPROF);
    sigprocmask(SIG_BLOCK, &set, NULL);
    while (sigtimedwait(&set, &tick, &(struct timespec){0, 0}) != SIGPROF) {
        sink++;
    }
    sigprocmask(SIG_UNBLOCK, &set, NULL);
    displaced = calloc(1, DISPLACE);
    if (!displaced) {
        return 1;
    }
    siginfo_t other = tick;
    other.si_signo = SIGUSR1;
    signal(SIGUSR1, nothing);
    measure(&other, "signal");
    getcontext(&inside);
    inside.uc_stack.ss_sp = stack;
    inside.uc_stack.ss_size = sizeof stack;
    inside.uc_link = &outside;
    makecontext(&inside, unknown, 0);
    swapcontext(&outside, &inside);
    frame23();
    return 0;
}
