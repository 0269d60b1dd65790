/* Columns of numbers as they are stored in rollups: chunks of byte planes. In a sorted sum most high bytes are 0, so
 * the planes compress well, and they unpack without a branch per number. */
#ifndef PROFD_CORE_ROLLUP_COLUMNS_H
#define PROFD_CORE_ROLLUP_COLUMNS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define ROLLUP_CHUNK 4096u /* numbers that share one width */

/* Most bytes that n numbers take. */
static inline size_t rollup_column_bound(size_t n)
{
    return 8 * n + n / ROLLUP_CHUNK + 1;
}

/* Writes n numbers: for every chunk its width w in bytes (0 to 8), then the w low bytes of all its numbers, lowest
 * plane first. Returns the end. O(n). */
uint8_t *rollup_column_put(uint8_t *out, const uint64_t *values, size_t n);

/* Reads n numbers from *at and moves behind them. False: the bytes end first, or a width is above 8. O(n). */
bool rollup_column_get(const uint8_t **at, const uint8_t *end, uint64_t *values, size_t n);

#endif
