#include "query/lru.h"

#include <stdlib.h>

void lru_init(struct lru *l, size_t limit, size_t entries_max, const struct query_lock *lock)
{
    *l = (struct lru){.lock = *lock, .limit = limit, .entries_max = entries_max};
    hashmap_init(&l->map, 0);
    TAILQ_INIT(&l->list);
}

void lru_clear(struct lru *l)
{
    while (!TAILQ_EMPTY(&l->list)) {
        lru_remove(l, TAILQ_FIRST(&l->list));
    }
    hashmap_clear(&l->map);
}

void lru_lock(struct lru *l)
{
    l->lock.take(l->lock.context);
}

void lru_unlock(struct lru *l)
{
    l->lock.give(l->lock.context);
}

void *lru_find(struct lru *l, const void *key, size_t key_size)
{
    struct lru_entry **slot = hashmap_find(&l->map, key, key_size);
    return slot != NULL ? *slot : NULL;
}

void lru_use(struct lru *l, void *entry)
{
    struct lru_entry *e = entry;
    TAILQ_REMOVE(&l->list, e, use);
    TAILQ_INSERT_HEAD(&l->list, e, use);
}

bool lru_put(struct lru *l, const void *key, size_t key_size, void *entry, size_t bytes)
{
    struct lru_entry *e = entry;
    e->bytes = bytes + key_size;
    if (e->bytes > l->limit) {
        return false;
    }
    while (l->bytes + e->bytes > l->limit || l->entries >= l->entries_max) {
        lru_remove(l, TAILQ_LAST(&l->list, lru_list));
    }
    e->slot = hashmap_put(&l->map, key, key_size, &e, sizeof e);
    if (e->slot == NULL) {
        return false;
    }
    TAILQ_INSERT_HEAD(&l->list, e, use);
    l->bytes += e->bytes;
    l->entries++;
    return true;
}

void lru_remove(struct lru *l, void *entry)
{
    struct lru_entry *e = entry;
    hashmap_remove(&l->map, e->slot);
    TAILQ_REMOVE(&l->list, e, use);
    l->bytes -= e->bytes;
    l->entries--;
    free(e);
}
