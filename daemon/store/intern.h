/* A hash table from byte strings to byte strings: what the writer remembers of the database, and sums of one batch.
 * Bounded: a cache that grew too big starts afresh. Keys come from strangers, so the hash is keyed (SipHash). */
#ifndef PROFD_STORE_INTERN_H
#define PROFD_STORE_INTERN_H

#include <stddef.h>
#include <stdint.h>

struct intern_node;

struct intern {
    struct intern_node **slots; /* power of two, open addressing */
    size_t slot_count, count;
    size_t bytes, limit; /* limit 0: none */
    uint64_t seed[2];
};

/* Takes no memory. limit: bytes held above which a put empties the table first. */
void intern_init(struct intern *t, size_t limit);
/* Frees everything; the table is empty and usable. */
void intern_clear(struct intern *t);

/* The value of a key, aligned for any type and yours to change in place, or NULL. Valid until the next put or clear.
 * O(key) expected. */
void *intern_find(const struct intern *t, const void *key, size_t key_size);
/* Adds a key that is not there, with a copy of the value. Returns the copy, or NULL when out of memory. */
void *intern_put(struct intern *t, const void *key, size_t key_size, const void *value, size_t value_size);

/* Steps through all entries in no order: begin with *position = 0. Returns the value, or NULL at the end. key, key_size
 * and value_size may be NULL. */
void *intern_next(const struct intern *t, size_t *position, const void **key, size_t *key_size, size_t *value_size);
/* Size of a value that find, put or next returned. */
size_t intern_value_size(const void *value);

#endif
