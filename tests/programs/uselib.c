/* A program whose work is done in a shared library that is built with -pg too (libwords.c). Argument: rounds (default
 * 30). */
#include <stdio.h>
#include <stdlib.h>

unsigned long words_hash(const char *text);
unsigned words_count(const char *text);

static __attribute__((noinline)) unsigned long one_round(const char *text)
{
    unsigned long sum = 0;
    for (int i = 0; i < 20000; i++) {
        sum += words_hash(text) + words_count(text);
    }
    return sum;
}

int main(int argc, char **argv)
{
    int rounds = argc > 1 ? atoi(argv[1]) : 30;
    unsigned long sum = 0;
    for (int i = 0; i < rounds; i++) {
        sum += one_round("the quick brown fox jumps over the lazy dog");
    }
    printf("%lu\n", sum);
    return 0;
}
