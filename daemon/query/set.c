#include <string.h>

#include "query/query_internal.h"

void set_init(struct set *s, struct arena *a)
{
    *s = (struct set){.arena = a, .seed = table_mix((uintptr_t)s, (uintptr_t)a)};
}

static uint64_t key_hash(const void *context, uint32_t i)
{
    const struct set *s = context;
    return table_hash_bytes(s->keys[i].bytes, s->keys[i].size, s->seed);
}

/* The slot of a key, or the free one where it belongs. The table has slots. */
static uint32_t find_slot(const struct set *s, const void *key, size_t size)
{
    uint32_t at = table_slot(&s->table, table_hash_bytes(key, size, s->seed));
    for (; s->table.slots[at] != 0; at = (at + 1) & s->table.mask) {
        const struct set_key *k = &s->keys[s->table.slots[at] - 1];
        if (k->size == size && memcmp(k->bytes, key, size) == 0) {
            break;
        }
    }
    return at;
}

bool set_find(const struct set *s, const void *key, size_t size, uint32_t *number)
{
    const uint32_t slot = s->count > 0 ? s->table.slots[find_slot(s, key, size)] : 0;
    if (slot != 0) {
        *number = slot - 1;
    }
    return slot != 0;
}

uint32_t set_add(struct set *s, const void *key, size_t size, bool *added)
{
    table_reserve(&s->table, s->arena, key_hash, s);
    const uint32_t at = find_slot(s, key, size);
    *added = s->table.slots[at] == 0;
    if (*added) {
        s->keys = arena_extend(s->arena, s->keys, s->count, &s->capacity, sizeof *s->keys);
        s->keys[s->count] = (struct set_key){arena_copy(s->arena, key, size), size};
        s->table.slots[at] = s->count = ++s->table.used;
    }
    return s->table.slots[at] - 1;
}
