/* All work is reached from libc: qsort calls compare(), bsearch calls probe(), atexit calls summary().
 * Arguments: elements and seed (default 200000 1). */
#include <stdio.h>
#include <stdlib.h>

#define NOINLINE __attribute__((noinline))

static unsigned long compared, probed;

NOINLINE unsigned scramble(unsigned x)
{
    x ^= x >> 16;
    x *= 0x7feb352du;
    return x ^ x >> 15;
}

NOINLINE int compare(const void *left, const void *right)
{
    unsigned a = scramble(*(const unsigned *)left), b = scramble(*(const unsigned *)right);
    compared++;
    return (a > b) - (a < b);
}

NOINLINE int probe(const void *key, const void *element)
{
    probed++;
    return compare(key, element);
}

static void summary(void)
{
    printf("%d\n", compared > 0 && probed > 0);
}

int main(int argc, char **argv)
{
    size_t n = argc > 1 ? (size_t)atol(argv[1]) : 200000;
    unsigned seed = argc > 2 ? (unsigned)atoi(argv[2]) : 1;
    unsigned *numbers = malloc(n * sizeof *numbers);
    if (!numbers) {
        return 1;
    }
    atexit(summary);
    for (size_t i = 0; i < n; i++) {
        numbers[i] = (unsigned)i * 2654435761u + seed;
    }
    qsort(numbers, n, sizeof *numbers, compare);
    for (size_t i = 0; i < n; i += 7) {
        if (!bsearch(&numbers[i], numbers, n, sizeof *numbers, probe)) {
            return 1;
        }
    }
    free(numbers);
    return 0;
}
