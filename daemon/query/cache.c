#include "query/cache.h"

#include <stdlib.h>
#include <string.h>

#define CACHE_SLOTS 4096u /* lists of entries by hash; an entry is worth thousands of steps */

struct entry {
    struct entry *next;          /* of the same slot */
    struct entry *newer, *older; /* by last use */
    size_t bytes, key_size;
    unsigned char *key; /* in the same block, as the sum's arrays are */
    struct rollup r;
};

struct query_cache {
    size_t limit, bytes, entries;
    uint64_t found, missed;
    struct query_lock lock;
    struct entry *newest, *oldest;
    struct entry *slots[CACHE_SLOTS];
};

struct query_cache *query_cache_new(size_t limit, const struct query_lock *lock)
{
    struct query_cache *c = calloc(1, sizeof *c);
    if (c != NULL) {
        c->limit = limit;
        c->lock = *lock;
    }
    return c;
}

static struct entry **find_slot(struct query_cache *c, const void *key, size_t size)
{
    const unsigned char *p = key;
    uint64_t h = 1469598103934665603u;
    for (size_t i = 0; i < size; i++) {
        h = (h ^ p[i]) * 1099511628211u;
    }
    struct entry **at = &c->slots[(h ^ h >> 32) % CACHE_SLOTS];
    while (*at != NULL && ((*at)->key_size != size || memcmp((*at)->key, key, size) != 0)) {
        at = &(*at)->next;
    }
    return at;
}

static void unlink_use(struct query_cache *c, struct entry *entry)
{
    *(entry->newer != NULL ? &entry->newer->older : &c->newest) = entry->older;
    *(entry->older != NULL ? &entry->older->newer : &c->oldest) = entry->newer;
}

static void link_newest(struct query_cache *c, struct entry *entry)
{
    entry->newer = NULL;
    entry->older = c->newest;
    *(c->newest != NULL ? &c->newest->newer : &c->oldest) = entry;
    c->newest = entry;
}

static void remove_oldest(struct query_cache *c)
{
    struct entry *entry = c->oldest;
    *find_slot(c, entry->key, entry->key_size) = entry->next;
    unlink_use(c, entry);
    c->bytes -= entry->bytes;
    c->entries--;
    free(entry);
}

void query_cache_free(struct query_cache *c)
{
    while (c != NULL && c->oldest != NULL) {
        remove_oldest(c);
    }
    free(c);
}

struct query_cache_use query_cache_measure(struct query_cache *c)
{
    c->lock.take(c->lock.context);
    struct query_cache_use use = {c->found, c->missed, c->bytes, c->entries};
    c->lock.give(c->lock.context);
    return use;
}

enum profd_status cache_add(struct query_cache *c, const void *key, size_t size, struct rollup_sum *sum, bool *found,
                            struct profd_error *e)
{
    enum profd_status status = PROFD_OK;
    c->lock.take(c->lock.context);
    struct entry *entry = *find_slot(c, key, size);
    *found = entry != NULL;
    c->found += entry != NULL;
    if (entry != NULL) {
        unlink_use(c, entry);
        link_newest(c, entry);
        status = rollup_sum_add(sum, &entry->r, NULL, e);
    }
    c->lock.give(c->lock.context);
    return status;
}

/* n rows of an array behind what the block holds already; the arrays begin at multiples of 8. */
static void *append(unsigned char *block, size_t *at, const void *rows, size_t n)
{
    void *copy = block + *at;
    if (n > 0) {
        memcpy(copy, rows, n);
    }
    *at += (n + 7) & ~(size_t)7;
    return copy;
}

static size_t entry_size(const struct rollup *r, size_t key_size)
{
    return sizeof(struct entry) + ((key_size + 7) & ~(size_t)7) + r->histogram_count * sizeof *r->histograms +
           (size_t)r->bin_count * 12 + (size_t)r->arc_count * 44 + 10 * 8;
}

static struct entry *copy_entry(const void *key, size_t key_size, const struct rollup *r, size_t size)
{
    unsigned char *block = malloc(size);
    size_t at = sizeof(struct entry), n = r->arc_count;
    if (block == NULL) {
        return NULL;
    }
    struct entry *entry = (struct entry *)(void *)block;
    *entry = (struct entry){.bytes = size, .key_size = key_size, .r = *r};
    entry->key = append(block, &at, key, key_size);
    entry->r.histograms = append(block, &at, r->histograms, r->histogram_count * sizeof *r->histograms);
    entry->r.bin_ticks = append(block, &at, r->bin_ticks, r->bin_count * sizeof *r->bin_ticks);
    entry->r.bin_index = append(block, &at, r->bin_index, r->bin_count * sizeof *r->bin_index);
    entry->r.from = append(block, &at, r->from, n * sizeof *r->from);
    entry->r.to = append(block, &at, r->to, n * sizeof *r->to);
    entry->r.calls = append(block, &at, r->calls, n * sizeof *r->calls);
    entry->r.commit = append(block, &at, r->commit, n * sizeof *r->commit);
    entry->r.from_build = append(block, &at, r->from_build, n * sizeof *r->from_build);
    entry->r.to_build = append(block, &at, r->to_build, n * sizeof *r->to_build);
    entry->r.rank = append(block, &at, r->rank, n * sizeof *r->rank);
    return entry;
}

void cache_put(struct query_cache *c, const void *key, size_t size, const struct rollup *r)
{
    size_t bytes = entry_size(r, size);
    struct entry *entry = bytes <= c->limit / 4 ? copy_entry(key, size, r, bytes) : NULL;
    c->lock.take(c->lock.context);
    c->missed++;
    if (entry == NULL) {
        c->lock.give(c->lock.context);
        return;
    }
    struct entry **at = find_slot(c, key, size);
    bool known = *at != NULL; /* another reader was as fast */
    if (!known) {
        while (c->bytes + bytes > c->limit) {
            remove_oldest(c);
        }
        at = find_slot(c, key, size); /* the end of the list may have gone */
        *at = entry;
        link_newest(c, entry);
        c->bytes += bytes;
        c->entries++;
    }
    c->lock.give(c->lock.context);
    if (known) {
        free(entry);
    }
}
