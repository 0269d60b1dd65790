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
    uint32_t capacity; /* of the rows that table_take appends */
};

/* Hash of row index, for growing. */
typedef uint64_t table_hash(const void *context, uint32_t index);

/* Ensures capacity for one more row, so that a free slot is always found. False if memory is exhausted, which an arena
 * with a boundary does not return from. */
bool table_reserve(struct table *t, struct arena *a, table_hash *hash, const void *context);

/* Adds the next row, which the table is not to look for first. O(1) amortized. */
void table_add(struct table *t, struct arena *a, table_hash *hash, const void *context);

/* Finds a row by its first key bytes, which have no padding, and appends a copy of *row where there is none. Sets
 * *number to that of the row. Returns the rows, which may have moved; NULL if memory is exhausted: then nothing has
 * changed. All rows are appended by this function, so that t->used is their number. O(key) expected. */
void *table_take(struct table *t, struct arena *a, void *rows, const void *row, size_t size, size_t key,
                 uint32_t *number);
/* Does this for a list of rows with a key that ends with the member `last`, and a row on the stack. False if memory is
 * exhausted. */
#define TABLE_TAKE(t, a, list, row, last, number)                                                                      \
    LIST_MOVE(list, table_take((t), (a), (list), &(row), sizeof(row),                                                  \
                               (size_t)((const char *)(&(row).last + 1) - (const char *)&(row)), (number)))
/* The same for a list of numbers. */
#define TABLE_TAKE_NUMBER(t, a, list, row, number)                                                                     \
    LIST_MOVE(list, table_take((t), (a), (list), &(row), sizeof(row), sizeof(row), (number)))

static inline uint32_t table_slot(const struct table *t, uint64_t hash)
{
    return (uint32_t)(hash >> 32) & t->mask;
}

/* Mixes two words into one by a 128-bit multiplication, so that a client that does not know the seed cannot choose
 * collisions. The first word is mixed in once more, because it would be lost where the second makes the product 0. */
static inline uint64_t table_mix(uint64_t a, uint64_t b)
{
    __extension__ typedef unsigned __int128 wide;
    wide product = (wide)(a ^ UINT64_C(0x9e3779b97f4a7c15)) * (b ^ UINT64_C(0xd6e8feb86659fd93));
    return (uint64_t)product ^ (uint64_t)(product >> 64) ^ a;
}

/* Hash of n bytes. O(n). */
uint64_t table_hash_bytes(const void *bytes, size_t n, uint64_t seed);
/* Hash of a NUL-terminated text, up to a byte `stop` (0: to the end). */
uint64_t table_hash_text(const char *text, char stop, uint64_t seed);

/* Numbers for distinct keys, in order of arrival. Lives in an arena. */
struct set {
    struct arena *arena;
    struct table table;
    uint64_t seed;
    uint32_t count; /* of keys */
    struct set_key {
        const void *bytes; /* followed by a NUL */
        size_t size;
    } * keys;
};

#define SET_FULL UINT32_MAX

void set_init(struct set *s, struct arena *a);
/* Returns the key's number, 0…; a new key is copied and *added is true. SET_FULL if memory is exhausted. O(size)
 * expected. */
uint32_t set_add(struct set *s, const void *key, size_t size, bool *added);
/* The number of a key; false: it is not there. */
bool set_find(const struct set *s, const void *key, size_t size, uint32_t *number);

#endif
