#include "core/row_table.h"

#include <string.h>

bool table_reserve(struct table *t, struct arena *a, table_hash *hash, const void *context)
{
    if (t->slots != NULL && t->used < t->mask / 2) {
        return true;
    }
    uint32_t mask = t->slots == NULL ? 63 : t->mask * 2 + 1;
    uint32_t *slots = mask == UINT32_MAX ? arena_fail(a) : ARENA_ARRAY(a, (size_t)mask + 1, uint32_t);
    if (slots == NULL) {
        return false;
    }
    struct table grown = {slots, mask, t->used, t->capacity};
    for (uint32_t i = 0; i < t->used; i++) {
        uint32_t at = table_slot(&grown, hash(context, i));
        while (slots[at] != 0) {
            at = (at + 1) & mask;
        }
        slots[at] = i + 1;
    }
    *t = grown;
    return true;
}

void table_add(struct table *t, struct arena *a, table_hash *hash, const void *context)
{
    table_reserve(t, a, hash, context);
    uint32_t at = table_slot(t, hash(context, t->used));
    while (t->slots[at] != 0) {
        at = (at + 1) & t->mask;
    }
    t->slots[at] = ++t->used;
}

struct table_rows {
    const char *rows;
    size_t size, key;
};

static uint64_t hash_row(const void *context, uint32_t index)
{
    const struct table_rows *r = context;
    return table_hash_bytes(r->rows + index * r->size, r->key, 0);
}

void *table_take(struct table *t, struct arena *a, void *rows, const void *row, size_t size, size_t key,
                 uint32_t *number)
{
    const struct table_rows known = {rows, size, key};
    if (!table_reserve(t, a, hash_row, &known)) {
        return NULL;
    }
    uint32_t at = table_slot(t, table_hash_bytes(row, key, 0));
    for (; t->slots[at] != 0; at = (at + 1) & t->mask) {
        if (memcmp(known.rows + (t->slots[at] - 1) * size, row, key) == 0) {
            *number = t->slots[at] - 1;
            return rows;
        }
    }
    char *grown = arena_extend(a, rows, t->used, &t->capacity, size);
    if (grown != NULL) {
        memcpy(grown + t->used * size, row, size);
        *number = t->used;
        t->slots[at] = ++t->used;
    }
    return grown;
}

uint64_t table_hash_bytes(const void *bytes, size_t n, uint64_t seed)
{
    const unsigned char *p = bytes;
    uint64_t hash = seed, word;
    size_t left = n;
    for (; left >= sizeof word; left -= sizeof word, p += sizeof word) {
        memcpy(&word, p, sizeof word);
        hash = table_mix(hash, word);
    }
    word = 0;
    if (left > 0) {
        memcpy(&word, p, left);
    }
    return table_mix(table_mix(hash, word), n);
}

uint64_t table_hash_text(const char *text, char stop, uint64_t seed)
{
    return table_hash_bytes(text, (size_t)(strchrnul(text, stop) - text), seed);
}

void set_init(struct set *s, struct arena *a)
{
    *s = (struct set){.arena = a, .seed = table_mix((uintptr_t)s, (uintptr_t)a)};
}

static uint64_t hash_key(const void *context, uint32_t i)
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
    if (!table_reserve(&s->table, s->arena, hash_key, s)) {
        return SET_FULL;
    }
    const uint32_t at = find_slot(s, key, size);
    *added = s->table.slots[at] == 0;
    if (*added) {
        void *keys = arena_extend(s->arena, s->keys, s->count, &s->table.capacity, sizeof *s->keys);
        const char *copy = arena_copy(s->arena, key, size);
        if (keys == NULL || copy == NULL) {
            return SET_FULL;
        }
        s->keys = keys;
        s->keys[s->count] = (struct set_key){copy, size};
        s->table.slots[at] = s->count = ++s->table.used;
    }
    return s->table.slots[at] - 1;
}
