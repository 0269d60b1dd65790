#include "query/set.h"

#include <string.h>

void set_init(struct set *s, struct arena *a)
{
    *s = (struct set){.arena = a};
}

static uint64_t key_hash(const void *key, size_t size)
{
    const uint8_t *p = key;
    uint64_t h = 1469598103934665603u;
    for (size_t i = 0; i < size; i++) {
        h = (h ^ p[i]) * 1099511628211u;
    }
    return h ^ h >> 29;
}

static uint32_t *find_slot(const struct set *s, const void *key, size_t size, uint64_t hash)
{
    uint32_t mask = s->slot_count - 1, at = (uint32_t)hash & mask;
    while (s->slots[at] != 0) {
        const struct set_key *k = &s->keys[s->slots[at] - 1];
        if (k->hash == hash && k->size == size && memcmp(k->bytes, key, size) == 0) {
            break;
        }
        at = (at + 1) & mask;
    }
    return &s->slots[at];
}

/* Doubles; the old tables stay in the arena, at most as large again. */
static enum profd_status set_grow(struct set *s)
{
    struct set next = *s;
    if (s->slot_count > UINT32_MAX / 4) {
        return PROFD_NO_MEMORY;
    }
    next.slot_count = s->slot_count == 0 ? 64 : 2 * s->slot_count;
    next.capacity = next.slot_count / 2;
    next.slots = ARENA_ARRAY(s->arena, next.slot_count, uint32_t);
    next.keys = ARENA_ARRAY(s->arena, next.capacity, struct set_key);
    if (next.slots == NULL || next.keys == NULL) {
        return PROFD_NO_MEMORY;
    }
    for (uint32_t i = 0; i < s->count; i++) {
        next.keys[i] = s->keys[i];
        *find_slot(&next, s->keys[i].bytes, s->keys[i].size, s->keys[i].hash) = i + 1;
    }
    *s = next;
    return PROFD_OK;
}

enum profd_status set_add(struct set *s, const void *key, size_t size, uint32_t *number, bool *added)
{
    uint64_t hash = key_hash(key, size);
    if (s->count == s->capacity && set_grow(s) != PROFD_OK) {
        return PROFD_NO_MEMORY;
    }
    uint32_t *slot = find_slot(s, key, size, hash);
    bool fresh = *slot == 0;
    if (fresh) {
        char *copy = arena_copy(s->arena, key, size);
        if (copy == NULL) {
            return PROFD_NO_MEMORY;
        }
        s->keys[s->count++] = (struct set_key){copy, size, hash};
        *slot = s->count;
    }
    *number = *slot - 1;
    *added = fresh;
    return PROFD_OK;
}
