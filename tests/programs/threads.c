/* Several threads that all call the same functions. Arguments: threads and rounds (default 4 150). glibc's collector
 * loses calls here, and the report must not claim that it is exact. */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

#define NOINLINE __attribute__((noinline))

static long rounds = 150;

NOINLINE unsigned long step(unsigned long x)
{
    return x * 6364136223846793005ul + 1442695040888963407ul;
}

NOINLINE unsigned long walk(unsigned long x)
{
    for (int i = 0; i < 1000; i++) {
        x = step(x);
    }
    return x;
}

static void *run(void *argument)
{
    unsigned long *x = argument;
    for (long i = 0; i < rounds; i++) {
        *x = walk(*x);
    }
    return NULL;
}

int main(int argc, char **argv)
{
    int n = argc > 1 ? atoi(argv[1]) : 4;
    if (argc > 2) {
        rounds = atol(argv[2]);
    }
    if (n < 1 || n > 64) {
        return 2;
    }
    pthread_t threads[64];
    unsigned long values[64];
    for (int i = 0; i < n; i++) {
        values[i] = (unsigned long)i;
        if (pthread_create(&threads[i], NULL, run, &values[i])) {
            return 1;
        }
    }
    unsigned long sum = 0;
    for (int i = 0; i < n; i++) {
        pthread_join(threads[i], NULL);
        sum ^= values[i];
    }
    printf("%lu\n", sum & 1);
    return 0;
}
