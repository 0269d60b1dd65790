/* Orders as qsort and sort_merge want them: below 0, 0 or above 0. And the search in rows that ascend. */
#ifndef PROFD_CORE_COMPARE_H
#define PROFD_CORE_COMPARE_H

#include <stdint.h>
#include <string.h>

static inline int compare_u64(uint64_t a, uint64_t b)
{
    return (a > b) - (a < b);
}

/* By two numbers each: by the second where the first are equal. */
static inline int compare_pairs(uint64_t a, uint64_t b, uint64_t then_a, uint64_t then_b)
{
    return a != b ? compare_u64(a, b) : compare_u64(then_a, then_b);
}

/* The first of count rows that is not below key; count: none. Each row has size bytes and begins with a uint64_t, by
 * which the rows ascend. O(log n) */
static inline uint32_t compare_find_first(const void *rows, uint32_t count, size_t size, uint64_t key)
{
    uint32_t low = 0, high = count;
    while (low < high) {
        uint32_t middle = low + (high - low) / 2;
        uint64_t at;
        memcpy(&at, (const char *)rows + size * middle, sizeof at);
        if (at < key) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    return low;
}

#endif
