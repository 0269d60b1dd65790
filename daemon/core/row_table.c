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
    struct table grown = {slots, mask, t->used};
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
