/* Signal handlers that work on top of work: one interrupts work(), and another one interrupts that. main never calls
 * either. It ends when they were called so often. */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/time.h>
#include <time.h>

static volatile unsigned long sink;
static volatile sig_atomic_t calls;
static unsigned long millisecond; /* of CPU, in rounds of burn */

__attribute__((noinline)) void burn(unsigned long n)
{
    for (unsigned long i = 0; i < n; i++) {
        sink += i;
    }
    sink++;
}

__attribute__((noinline)) void handler_inner(int number)
{
    burn(5 * millisecond);
    sink += (unsigned long)number;
}

__attribute__((noinline)) void handler_outer(int number)
{
    burn(2 * millisecond);
    raise(SIGUSR2);
    burn(2 * millisecond);
    calls = calls + 1;
    sink += (unsigned long)number;
}

__attribute__((noinline)) void work(int most)
{
    while (calls < most) {
        sink++;
    }
    sink++;
}

__attribute__((noinline)) unsigned long measure(void)
{
    const unsigned long rounds = 4000000;
    const clock_t begin = clock();
    for (unsigned long i = 0; i < rounds; i++) {
        sink += i;
    }
    return (unsigned long)((double)rounds / ((double)(clock() - begin + 1) * 1000 / CLOCKS_PER_SEC));
}

int main(int argc, char **argv)
{
    struct sigaction outer = {.sa_handler = handler_outer}, inner = {.sa_handler = handler_inner};
    const struct itimerval often = {{0, 15000}, {0, 15000}}, never = {{0, 0}, {0, 0}};
    millisecond = measure();
    sigaction(SIGVTALRM, &outer, NULL);
    sigaction(SIGUSR2, &inner, NULL);
    setitimer(ITIMER_VIRTUAL, &often, NULL);
    work(argc > 1 ? atoi(argv[1]) : 100);
    setitimer(ITIMER_VIRTUAL, &never, NULL);
    printf("%lu\n", sink);
    return 0;
}
