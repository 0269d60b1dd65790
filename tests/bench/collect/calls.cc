// calls WHAT N [THREADS]: N rounds of calls of one kind; prints nanoseconds of CPU per call. Built twice, with and without -pg; the -pg
// build runs with glibc's collector and with ours. With BENCH_OFF in the environment counting is switched off first.
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define QUIET __attribute__((no_instrument_function))
#define ALONE __attribute__((noinline, noclone))

static QUIET double cpu()
{
    timespec t;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
    return (double)t.tv_sec * 1e9 + (double)t.tv_nsec;
}

ALONE long fib(long n)
{
    return n < 2 ? n : fib(n - 1) + fib(n - 2);
}

volatile long sink;
ALONE void leaf()
{
    __asm__ volatile("");
}
#define LEAF(n) ALONE void leaf##n() { __asm__ volatile("" ::"i"(n)); }
LEAF(1) LEAF(2) LEAF(3) LEAF(4)

struct Shape {
    virtual long area(long x) = 0;
};
template <int N> struct Kind : Shape {
    long area(long x) override
    {
        __asm__ volatile("" ::"i"(N));
        return x + N;
    }
};
template <int N> struct Fill {
    static QUIET void into(Shape **all)
    {
        Fill<N - 1>::into(all);
        all[N - 1] = new Kind<N>;
    }
};
template <> struct Fill<0> {
    static QUIET void into(Shape **) {}
};

static QUIET long virtuals(unsigned kinds, long n)
{
    static Shape *all[256];
    static uint8_t order[65536];
    Fill<256>::into(all);
    uint64_t x = 88172645463325252u;
    for (unsigned i = 0; i < sizeof order; i++) {
        x ^= x << 13, x ^= x >> 7, x ^= x << 17;
        order[i] = (uint8_t)(x % kinds);
    }
    long sum = 0;
    for (long i = 0; i < n; i++)
        sum += all[order[i & 65535]]->area(i);
    return sum;
}

static QUIET void *fibs(void *n)
{
    sink = fib((long)n);
    return nullptr;
}

#ifdef TREE
extern "C" void tree();
#endif
extern "C" int moncontrol(int);

static QUIET double fib_calls(long n)
{
    double a = 1, b = 1;
    for (long i = 1; i < n; i++) {
        double c = a + b + 1;
        a = b, b = c;
    }
    return b;
}

int QUIET main(int argc, char **argv)
{
    const char *what = argc > 1 ? argv[1] : "fib";
    long n = argc > 2 ? atol(argv[2]) : 30, threads = argc > 3 ? atol(argv[3]) : 0;
    if (getenv("BENCH_OFF"))
        moncontrol(0);
    double calls = (double)n, begin = cpu();
    if (strcmp(what, "fib") == 0 && threads == 0) {
        sink = fib(n);
        calls = fib_calls(n);
    } else if (strcmp(what, "fib") == 0) {
        pthread_t ids[64];
        for (long i = 0; i < threads; i++)
            pthread_create(&ids[i], nullptr, fibs, (void *)n);
        for (long i = 0; i < threads; i++)
            pthread_join(ids[i], nullptr);
        calls = fib_calls(n) * (double)threads;
    } else if (strcmp(what, "leaf") == 0) {
        for (long i = 0; i < n; i++)
            leaf();
    } else if (strcmp(what, "leaves") == 0) {
        for (long i = 0; i < n; i += 4)
            leaf1(), leaf2(), leaf3(), leaf4();
#ifdef TREE
    } else if (strcmp(what, "tree") == 0) {
        tree();
        begin = cpu();
        for (long i = 0; i < n; i++)
            tree();
        calls = (double)n * TREE;
#endif
    } else if (strcmp(what, "virtual") == 0) {
        begin = cpu();
        sink = virtuals((unsigned)threads, n);
    }
    printf("%.4f %.0f\n", (cpu() - begin) / calls, calls);
    return 0;
}
