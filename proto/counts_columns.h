/* Columns of numbers in stored counts: chunks of byte planes. Most high bytes are 0, so the planes compress well, and
 * they unpack without a branch per number. */
#ifndef PROFD_PROTO_COUNTS_COLUMNS_H
#define PROFD_PROTO_COUNTS_COLUMNS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define COUNTS_CHUNK 4096u /* numbers that share one width */

/* Most bytes that n numbers take. */
static inline size_t counts_column_bound(size_t n)
{
    return 8 * n + n / COUNTS_CHUNK + 1;
}

/* Writes n numbers: for every chunk its width w in bytes (least to 8), then the w low bytes of all its numbers, lowest
 * plane first. A column of least 1 takes a byte for each row, so that a section is not smaller than its rows. Returns
 * the end. O(n). */
uint8_t *counts_column_put(uint8_t *out, const uint64_t *values, size_t n, unsigned least);

/* Reads n numbers from *at and moves behind them. False: the bytes end first, or a width is above 8. O(n). */
bool counts_column_get(const uint8_t **at, const uint8_t *end, uint64_t *values, size_t n);

#endif
