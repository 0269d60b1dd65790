/* How many random cases a test tries. `make check` runs few of them; PROFD_ROUNDS=20 in the environment runs 20 times
 * as many (`make rounds`). Under the address sanitizer there are a quarter: a case takes three times as long there, and
 * only the sanitizer's reports are new, because the same cases run without it. */
#ifndef PROFD_TESTS_ROUNDS_H
#define PROFD_TESTS_ROUNDS_H

#include <stdint.h>
#include <stdlib.h>

#ifdef __SANITIZE_ADDRESS__
#define ROUNDS_SANITIZED 4
#else
#define ROUNDS_SANITIZED 1
#endif

static inline uint32_t rounds(uint32_t n)
{
    const char *times = getenv("PROFD_ROUNDS");
    const uint32_t factor = times ? (uint32_t)strtoul(times, NULL, 10) : 1;
    return (n + ROUNDS_SANITIZED - 1) / ROUNDS_SANITIZED * (factor > 0 ? factor : 1);
}

#endif
