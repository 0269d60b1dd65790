/* Numbers for distinct keys, in order of arrival. Lives in an arena. */
#ifndef PROFD_QUERY_SET_H
#define PROFD_QUERY_SET_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/table.h"

struct set {
    struct arena *arena;
    struct table table;
    uint64_t seed;
    uint32_t count, capacity; /* keys */
    struct set_key {
        const void *bytes;
        size_t size;
    } * keys;
};

void set_init(struct set *s, struct arena *a);
/* Returns the key's number, 0…; a new key is copied and *added is true. O(size) expected. */
uint32_t set_add(struct set *s, const void *key, size_t size, bool *added);
/* The number of a key; false: it is not there. */
bool set_find(const struct set *s, const void *key, size_t size, uint32_t *number);

#endif
