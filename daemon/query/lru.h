/* Entries by a key of bytes, the least recently used of which go first. The caller holds a lock around each call. */
#ifndef PROFD_QUERY_LRU_H
#define PROFD_QUERY_LRU_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/queue.h>

#include "core/hashmap.h"
#include "query/query.h"

/* First member of an entry, which is one block of malloc. */
struct lru_entry {
    TAILQ_ENTRY(lru_entry) use; /* the most recently used first */
    struct lru_entry **slot;    /* the table's value: this entry */
    size_t bytes;
};

struct lru {
    struct query_lock lock;
    size_t limit, entries_max;
    size_t bytes, entries;
    struct hashmap map; /* key → struct lru_entry * */
    TAILQ_HEAD(lru_list, lru_entry) list;
};

/* Holds at most limit bytes in at most entries_max entries. lru_clear ends it. */
void lru_init(struct lru *l, size_t limit, size_t entries_max, const struct query_lock *lock);
/* Frees every entry. */
void lru_clear(struct lru *l);

void lru_lock(struct lru *l);
void lru_unlock(struct lru *l);

/* The entry of a key, or NULL. It does not count as used. */
void *lru_find(struct lru *l, const void *key, size_t key_size);
/* It is now the most recently used. */
void lru_use(struct lru *l, void *entry);
/* Adds an entry with a new key; bytes is the size of its block. Other entries are removed until it fits. False, and the
 * entry stays the caller's, if it alone exceeds the limit or memory is exhausted. */
bool lru_put(struct lru *l, const void *key, size_t key_size, void *entry, size_t bytes);
/* Removes an entry and frees it. */
void lru_remove(struct lru *l, void *entry);

#endif
