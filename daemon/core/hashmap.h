/* A hash table on the heap from byte strings to byte strings, keyed with SipHash, because senders choose many of the
 * keys. Rows that only get added, in an arena, use core/row_table.h. */
#ifndef PROFD_CORE_HASHMAP_H
#define PROFD_CORE_HASHMAP_H

#include <stddef.h>
#include <stdint.h>

struct hashmap_node;

struct hashmap {
    struct hashmap_node **slots; /* power of two, open addressing */
    size_t slot_count, count;
    size_t bytes, limit; /* limit 0: none */
    uint64_t seed[2];
};

/* Takes no memory. limit: bytes held above which a put empties the table first; 0: none. The seed is random, so the
 * order of hashmap_next is, too: no result may depend on it. */
void hashmap_init(struct hashmap *t, size_t limit);
/* Frees everything; the table is empty and usable. */
void hashmap_clear(struct hashmap *t);

/* The value of a key, or NULL. It is aligned for any type, the caller may change it, and it stays where it is until it
 * is removed (a put into a table with a limit may remove it). O(key) expected. */
void *hashmap_find(const struct hashmap *t, const void *key, size_t key_size);
/* Adds a key that is not there, with a copy of the value. Returns the copy, or NULL if memory is exhausted: then
 * nothing was added. */
void *hashmap_put(struct hashmap *t, const void *key, size_t key_size, const void *value, size_t value_size);
/* Removes the entry of a value that find or put returned. */
void hashmap_remove(struct hashmap *t, void *value);

/* Steps through all entries in no order: begin with *position = 0. Returns the value, or NULL at the end. key may be
 * NULL. The table must not change meanwhile. */
void *hashmap_next(const struct hashmap *t, size_t *position, const void **key);

#endif
