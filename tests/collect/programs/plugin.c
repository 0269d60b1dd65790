/* One source, two libraries: NAME and WHICH are given. Different code at the same addresses, one after the other. */
#include "truth.h"

#define JOIN2(a, b) a##b
#define JOIN(a, b) JOIN2(a, b)

__attribute__((noinline, visibility("hidden"))) void JOIN(NAME, _inner)(void)
{
    __asm__ volatile("");
}

__attribute__((visibility("default"))) void NAME(long n)
{
    truth[truth_slot][WHICH]++;
    for (long i = 0; i < n * REPEAT; i++) {
        JOIN(NAME, _inner)();
    }
}
