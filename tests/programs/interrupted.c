/* Signal handlers that work on top of work: one interrupts work(), and another one interrupts that. main never calls
 * either. It ends when they were called so often, and prints the CPU seconds in handlers and in all. */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/time.h>
#include <time.h>

static volatile unsigned long sink;
static volatile sig_atomic_t calls;
static clock_t in_handlers;

__attribute__((noinline)) void burn(double milliseconds)
{
    const clock_t begin = clock();
    do {
        for (unsigned i = 0; i < 100000; i++) {
            sink += i;
        }
    } while ((double)(clock() - begin) * 1000 / CLOCKS_PER_SEC < milliseconds);
    sink++;
}

__attribute__((noinline)) void handler_inner(int number)
{
    burn(8);
    sink += (unsigned long)number;
}

__attribute__((noinline)) void handler_outer(int number)
{
    const clock_t begin = clock();
    burn(4);
    raise(SIGUSR2);
    burn(4);
    calls = calls + 1;
    in_handlers += clock() - begin;
    sink += (unsigned long)number;
}

__attribute__((noinline)) void work(int most)
{
    while (calls < most) {
        sink++;
    }
    sink++;
}

int main(int argc, char **argv)
{
    struct sigaction outer = {.sa_handler = handler_outer}, inner = {.sa_handler = handler_inner};
    const struct itimerval often = {{0, 30000}, {0, 30000}}, never = {{0, 0}, {0, 0}};
    sigaction(SIGVTALRM, &outer, NULL);
    sigaction(SIGUSR2, &inner, NULL);
    setitimer(ITIMER_VIRTUAL, &often, NULL);
    work(argc > 1 ? atoi(argv[1]) : 100);
    setitimer(ITIMER_VIRTUAL, &never, NULL);
    printf("%.3f %.3f\n", (double)in_handlers / CLOCKS_PER_SEC, (double)clock() / CLOCKS_PER_SEC);
    return 0;
}
