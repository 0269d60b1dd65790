#include "query/cache.h"

#include <stdlib.h>
#include <string.h>

#include "query/lru.h"

struct entry {
    struct lru_entry lru;
    struct rollup r; /* its arrays are in the same block */
};

struct query_cache {
    uint64_t found, missed;
    struct lru lru;
};

struct query_cache *query_cache_new(size_t limit, const struct query_lock *lock)
{
    struct query_cache *c = calloc(1, sizeof *c);
    if (c != NULL) {
        lru_init(&c->lru, limit, SIZE_MAX, lock);
    }
    return c;
}

void query_cache_free(struct query_cache *c)
{
    if (c != NULL) {
        lru_clear(&c->lru);
    }
    free(c);
}

struct query_cache_use query_cache_measure(struct query_cache *c)
{
    lru_lock(&c->lru);
    struct query_cache_use use = {c->found, c->missed, c->lru.bytes, c->lru.entries};
    lru_unlock(&c->lru);
    return use;
}

enum profd_status cache_add(struct query_cache *c, const void *key, size_t size, struct rollup_sum *sum, bool *found,
                            struct profd_error *e)
{
    enum profd_status status = PROFD_OK;
    lru_lock(&c->lru);
    struct entry *entry = lru_find(&c->lru, key, size);
    *found = entry != NULL;
    c->found += entry != NULL;
    if (entry != NULL) {
        lru_use(&c->lru, entry);
        status = rollup_sum_add(sum, &entry->r, NULL, e);
    }
    lru_unlock(&c->lru);
    return status;
}

/* Appends an array of n rows to the block; arrays begin at multiples of 8. */
static void *append(unsigned char *block, size_t *at, const void *rows, size_t n)
{
    void *copy = block + *at;
    if (n > 0) {
        memcpy(copy, rows, n);
    }
    *at += (n + 7) & ~(size_t)7;
    return copy;
}

static size_t entry_size(const struct rollup *r)
{
    return sizeof(struct entry) + r->histogram_count * sizeof *r->histograms + (size_t)r->bin_count * 12 +
           (size_t)r->arc_count * 44 + 10 * 8;
}

static struct entry *copy_entry(const struct rollup *r, size_t size)
{
    unsigned char *block = malloc(size);
    size_t at = sizeof(struct entry), n = r->arc_count;
    if (block == NULL) {
        return NULL;
    }
    struct entry *entry = (struct entry *)(void *)block;
    *entry = (struct entry){.r = *r};
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
    size_t bytes = entry_size(r);
    struct entry *entry = bytes <= c->lru.limit / 4 ? copy_entry(r, bytes) : NULL;
    lru_lock(&c->lru);
    c->missed++;
    /* Another reader may have put the same sum meanwhile. */
    bool kept = entry != NULL && lru_find(&c->lru, key, size) == NULL && lru_put(&c->lru, key, size, entry, bytes);
    lru_unlock(&c->lru);
    if (!kept) {
        free(entry);
    }
}
