/* Open addressing over the indices of rows kept elsewhere. Slots hold index + 1, 0 is free; nothing is ever removed. */
#ifndef PROFD_CORE_ROW_TABLE_H
#define PROFD_CORE_ROW_TABLE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/arena.h"

struct table {
    uint32_t *slots; /* mask + 1 of them, a power of two; NULL while empty */
    uint32_t mask, used;
};

/* Hash of row index, for growing. */
typedef uint64_t table_hash(const void *context, uint32_t index);

/* Ensures capacity for one more row, so that a free slot is always found. False if memory is exhausted, which an arena
 * with a boundary does not return from. */
bool table_reserve(struct table *t, struct arena *a, table_hash *hash, const void *context);

/* Adds the next row, which the table is not to look for first. O(1) amortized. */
void table_add(struct table *t, struct arena *a, table_hash *hash, const void *context);

static inline uint32_t table_slot(const struct table *t, uint64_t hash)
{
    return (uint32_t)(hash >> 32) & t->mask;
}

/* Mixes two words into one by a 128-bit multiplication, so that a client that does not know the seed cannot choose
 * collisions. */
static inline uint64_t table_mix(uint64_t a, uint64_t b)
{
    __extension__ typedef unsigned __int128 wide;
    wide product = (wide)(a ^ UINT64_C(0x9e3779b97f4a7c15)) * (b ^ UINT64_C(0xd6e8feb86659fd93));
    return (uint64_t)product ^ (uint64_t)(product >> 64);
}

/* Hash of n bytes. O(n). */
uint64_t table_hash_bytes(const void *bytes, size_t n, uint64_t seed);
/* Hash of a NUL-terminated text, up to a byte `stop` (0: to the end). */
uint64_t table_hash_text(const char *text, char stop, uint64_t seed);

#endif
