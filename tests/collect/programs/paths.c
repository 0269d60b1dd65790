/* paths SECONDS: uses that much CPU time. Each leaf is reached by one path only, which tests/collect/paths.py knows.
 * Shared functions get their leaf as an argument, so that a wrong caller would be seen. */
#include <alloca.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <ucontext.h>
#include <unistd.h>

#define APART __attribute__((noinline, noclone))
static volatile uint64_t sink;

#define LEAF(name)                                                                                                     \
    APART void leaf_##name(unsigned n)                                                                                 \
    {                                                                                                                  \
        for (unsigned i = 0; i < 30 * n; i++) {                                                                        \
            sink = sink * 3 + i;                                                                                       \
        }                                                                                                              \
    }
LEAF(one)
LEAF(two)
LEAF(three)
LEAF(varies)
LEAF(aligned)
LEAF(recursion)
LEAF(tail)
LEAF(compare)
LEAF(jump)
LEAF(signal)
LEAF(alternate)
LEAF(coroutine)
LEAF(deep)
LEAF(thread)
LEAF(arguments)
LEAF(child)

typedef void leaf(unsigned);
static double seconds;
static volatile int over;

static double used(void)
{
    return (double)clock() / CLOCKS_PER_SEC;
}

APART void shared(leaf *to, unsigned n)
{
    to(n);
    sink++;
}

APART void first(void)
{
    shared(leaf_one, 100);
    sink++;
}

APART void second(void)
{
    shared(leaf_two, 100);
    sink++;
    shared(leaf_three, 100);
    sink++;
}

APART void varies(unsigned size)
{
    volatile char *bytes = alloca(size);
    bytes[size / 2] = 1;
    shared(leaf_varies, 100);
    sink += bytes[size / 2];
}

APART void aligned(void)
{
    _Alignas(64) volatile double numbers[16] = {1};
    shared(leaf_aligned, 100);
    sink += (uint64_t)numbers[sink % 16];
}

APART void odd(unsigned n);
APART void even(unsigned n)
{
    if (n == 0) {
        leaf_recursion(100);
    } else {
        odd(n - 1);
    }
    sink++;
}
APART void odd(unsigned n)
{
    even(n - 1);
    sink++;
}

APART void tail(void)
{
    leaf_tail(100); /* a jump where the compiler replaces calls at the end of a function */
}

APART int compare(const void *a, const void *b)
{
    leaf_compare(20);
    return *(const int *)a - *(const int *)b;
}

APART void sorts(void)
{
    int numbers[] = {5, 3, 4, 1, 2};
    qsort(numbers, 5, sizeof numbers[0], compare);
    sink += (uint64_t)numbers[0];
}

static sigjmp_buf back;
APART void jumps(void)
{
    leaf_jump(100);
    siglongjmp(back, 1);
}

APART void jumper(void)
{
    if (sigsetjmp(back, 1) == 0) {
        jumps();
    }
    sink++;
}

APART void on_signal(int number)
{
    (void)number;
    leaf_signal(100);
    sink++;
}

APART void on_alternate(int number)
{
    (void)number;
    leaf_alternate(100);
    sink++;
}

APART void signals(void)
{
    raise(SIGUSR1);
    raise(SIGUSR2);
    sink++;
}

static ucontext_t outside, inside;
APART void coroutine(void)
{
    for (;;) {
        leaf_coroutine(100);
        swapcontext(&inside, &outside);
    }
}

APART void switches(void)
{
    swapcontext(&outside, &inside);
    sink++;
}

APART void deep(unsigned n)
{
    if (n == 0) {
        leaf_deep(100);
    } else {
        deep(n - 1);
    }
    sink++;
}

APART void arguments(unsigned n, double a, double b, uint64_t c, uint64_t d, uint64_t e, uint64_t f, uint64_t g,
                     uint64_t h, ...)
{
    va_list list;
    va_start(list, h);
    leaf_arguments(n);
    sink += (uint64_t)(a + b) + c + d + e + f + g + h + (uint64_t)va_arg(list, int);
    va_end(list);
}

APART void *worker(void *context)
{
    (void)context;
    while (!over) {
        shared(leaf_thread, 100);
        sink++;
    }
    return NULL;
}

APART void asks(void)
{
    struct timespec t;
    for (unsigned i = 0; i < 30; i++) {
        clock_gettime(CLOCK_MONOTONIC, &t);
        sink += (uint64_t)t.tv_nsec;
    }
}

APART void forks(void)
{
    pid_t child = fork();
    if (child == 0) {
        for (double end = used() + seconds / 4; used() < end;) {
            for (unsigned i = 0; i < 1000; i++) {
                shared(leaf_child, 100);
                sink++;
            }
        }
        _exit(0);
    }
    waitpid(child, NULL, 0);
    sink++;
}

static void prepare(void)
{
    static char alternate[65536], stack[65536];
    stack_t other = {.ss_sp = alternate, .ss_size = sizeof alternate};
    struct sigaction act = {.sa_handler = on_signal};
    sigaction(SIGUSR1, &act, NULL);
    act.sa_handler = on_alternate;
    act.sa_flags = SA_ONSTACK;
    sigaltstack(&other, NULL);
    sigaction(SIGUSR2, &act, NULL);
    getcontext(&inside);
    inside.uc_stack.ss_sp = stack;
    inside.uc_stack.ss_size = sizeof stack;
    makecontext(&inside, coroutine, 0);
}

int main(int argc, char **argv)
{
    seconds = argc > 1 ? strtod(argv[1], NULL) : 0.1;
    pthread_t thread;
    prepare();
    pthread_create(&thread, NULL, worker, NULL);
    for (unsigned i = 0; i < 1000 || used() < seconds; i++) {
        first();
        second();
        varies(16 + i % 512);
        aligned();
        even(6);
        tail();
        sorts();
        jumper();
        signals();
        switches();
        deep(300);
        arguments(100, 1, 2, 3, 4, 5, 6, 7, 8, 9);
        asks();
    }
    over = 1;
    pthread_join(thread, NULL);
    forks();
    return 0;
}
