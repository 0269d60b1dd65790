/* Sums that say when they overflow: they stop at 2^63−1, which SQLite and JSON can hold. */
#ifndef PROFD_PROTO_SUM_H
#define PROFD_PROTO_SUM_H

#include <stdbool.h>
#include <stdint.h>

#define SUM_MAX ((uint64_t)INT64_MAX)

/* Adds value to *sum, which stops at SUM_MAX. *saturated becomes true if it stops, and is otherwise unchanged. */
static inline void sum_add(uint64_t *sum, uint64_t value, bool *saturated)
{
    uint64_t result;
    if (__builtin_add_overflow(*sum, value, &result) || result > SUM_MAX) {
        result = SUM_MAX;
        *saturated = true;
    }
    *sum = result;
}

/* The same without the mark. */
static inline void sum_saturate(uint64_t *sum, uint64_t value)
{
    bool ignored = false;
    sum_add(sum, value, &ignored);
}

/* Σ of n values, at most SUM_MAX. */
static inline uint64_t sum_all(const uint64_t *values, uint32_t n)
{
    uint64_t sum = 0;
    for (uint32_t i = 0; i < n; i++) {
        sum_saturate(&sum, values[i]);
    }
    return sum;
}

/* Subtracts the part. False, with nothing changed, if the sum is saturated or smaller than the part. */
static inline bool sum_subtract(uint64_t *from, uint64_t part)
{
    if (*from >= SUM_MAX || part > *from) {
        return false;
    }
    *from -= part;
    return true;
}

#endif
