#include "core/hashmap.h"

#include <stdalign.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

struct hashmap_node {
    uint64_t hash;
    size_t key_size, value_size;
    alignas(max_align_t) unsigned char bytes[]; /* value, then key */
};

static uint64_t rotate(uint64_t x, unsigned n)
{
    return x << n | x >> (64 - n);
}

static void sip_round(uint64_t v[4])
{
    v[0] += v[1];
    v[2] += v[3];
    v[1] = rotate(v[1], 13) ^ v[0];
    v[3] = rotate(v[3], 16) ^ v[2];
    v[0] = rotate(v[0], 32);
    v[2] += v[1];
    v[0] += v[3];
    v[1] = rotate(v[1], 17) ^ v[2];
    v[3] = rotate(v[3], 21) ^ v[0];
    v[2] = rotate(v[2], 32);
}

/* SipHash-1-3: keys cannot be made to collide without the seed. */
static uint64_t hash_key(const uint64_t seed[2], const void *key, size_t n)
{
    uint64_t v[4] = {seed[0] ^ 0x736f6d6570736575u, seed[1] ^ 0x646f72616e646f6du, seed[0] ^ 0x6c7967656e657261u,
                     seed[1] ^ 0x7465646279746573u};
    const unsigned char *p = key;
    uint64_t last = (uint64_t)n << 56;
    for (; n >= 8; n -= 8, p += 8) {
        uint64_t word;
        memcpy(&word, p, 8);
        v[3] ^= word;
        sip_round(v);
        v[0] ^= word;
    }
    for (size_t i = 0; i < n; i++) {
        last |= (uint64_t)p[i] << (8 * i);
    }
    v[3] ^= last;
    sip_round(v);
    v[0] ^= last;
    v[2] ^= 0xff;
    for (int i = 0; i < 3; i++) {
        sip_round(v);
    }
    return v[0] ^ v[1] ^ v[2] ^ v[3];
}

void hashmap_init(struct hashmap *t, size_t limit)
{
    *t = (struct hashmap){.limit = limit};
    /* Without entropy (never after boot) the address of the table is the seed. */
    if (getrandom(t->seed, sizeof t->seed, GRND_NONBLOCK) != (ssize_t)sizeof t->seed) {
        t->seed[0] = (uint64_t)(uintptr_t)t;
    }
}

void hashmap_clear(struct hashmap *t)
{
    for (size_t i = 0; i < t->slot_count; i++) {
        free(t->slots[i]);
    }
    free(t->slots);
    t->slots = NULL;
    t->slot_count = t->count = t->bytes = 0;
}

static const unsigned char *node_key(const struct hashmap_node *n)
{
    return n->bytes + n->value_size;
}

void *hashmap_find(const struct hashmap *t, const void *key, size_t key_size)
{
    if (t->count == 0) {
        return NULL;
    }
    uint64_t hash = hash_key(t->seed, key, key_size);
    for (size_t i = hash & (t->slot_count - 1); t->slots[i]; i = (i + 1) & (t->slot_count - 1)) {
        struct hashmap_node *n = t->slots[i];
        if (n->hash == hash && n->key_size == key_size && memcmp(node_key(n), key, key_size) == 0) {
            return n->bytes;
        }
    }
    return NULL;
}

static void place_node(struct hashmap_node **slots, size_t slot_count, struct hashmap_node *n)
{
    size_t i = n->hash & (slot_count - 1);
    while (slots[i]) {
        i = (i + 1) & (slot_count - 1);
    }
    slots[i] = n;
}

/* Keeps the table at most half full. 0 on success. */
static int grow(struct hashmap *t)
{
    if (t->slot_count > 0 && t->count < t->slot_count / 2) {
        return 0;
    }
    size_t slot_count = t->slot_count == 0 ? 64 : t->slot_count * 2;
    struct hashmap_node **slots = calloc(slot_count, sizeof *slots);
    if (!slots) {
        return -1;
    }
    for (size_t i = 0; i < t->slot_count; i++) {
        if (t->slots[i]) {
            place_node(slots, slot_count, t->slots[i]);
        }
    }
    free(t->slots);
    t->slots = slots;
    t->slot_count = slot_count;
    return 0;
}

void *hashmap_put(struct hashmap *t, const void *key, size_t key_size, const void *value, size_t value_size)
{
    size_t size;
    if (__builtin_add_overflow(sizeof(struct hashmap_node) + value_size, key_size, &size)) {
        return NULL;
    }
    if (t->limit > 0 && t->bytes + size > t->limit) {
        hashmap_clear(t);
    }
    if (grow(t) != 0) {
        return NULL;
    }
    struct hashmap_node *n = malloc(size);
    if (!n) {
        return NULL;
    }
    n->hash = hash_key(t->seed, key, key_size);
    n->key_size = key_size;
    n->value_size = value_size;
    if (value_size > 0) {
        memcpy(n->bytes, value, value_size);
    }
    if (key_size > 0) {
        memcpy(n->bytes + value_size, key, key_size);
    }
    place_node(t->slots, t->slot_count, n);
    t->count++;
    t->bytes += size;
    return n->bytes;
}

void hashmap_remove(struct hashmap *t, void *value)
{
    struct hashmap_node *n = (void *)((unsigned char *)value - offsetof(struct hashmap_node, bytes));
    const size_t mask = t->slot_count - 1;
    size_t hole = n->hash & mask;
    while (t->slots[hole] != n) {
        hole = (hole + 1) & mask;
    }
    /* Every later node of the run that may be stored in the hole moves there, so that no search ends too early. */
    for (size_t i = (hole + 1) & mask; t->slots[i] != NULL; i = (i + 1) & mask) {
        if (((i - t->slots[i]->hash) & mask) >= ((i - hole) & mask)) {
            t->slots[hole] = t->slots[i];
            hole = i;
        }
    }
    t->slots[hole] = NULL;
    t->count--;
    t->bytes -= sizeof *n + n->value_size + n->key_size;
    free(n);
}

void *hashmap_next(const struct hashmap *t, size_t *position, const void **key)
{
    while (*position < t->slot_count) {
        struct hashmap_node *n = t->slots[(*position)++];
        if (n != NULL) {
            if (key != NULL) {
                *key = node_key(n);
            }
            return n->bytes;
        }
    }
    return NULL;
}
