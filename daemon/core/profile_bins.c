#include "core/profile_bins.h"

#include <string.h>

#include "core/sort.h"
#include "core/sum.h"

#define PROFILE_BINS_SMALL 1024u
#define PROFILE_BINS_SPARSE 32u /* dense costs at most this many words for a bin that is stored */

static uint64_t profile_bins_hash(const void *context, uint32_t i)
{
    const struct profile_bins *b = context;
    return table_mix(b->index[i], b->seed);
}

static bool profile_bins_make_dense(struct profile_bins *b, struct arena *a)
{
    b->dense = ARENA_ARRAY(a, b->bins, uint64_t);
    if (b->dense == NULL) {
        return false;
    }
    for (uint32_t i = 0; i < b->used; i++) {
        b->dense[b->index[i]] = b->ticks[i];
    }
    return true;
}

static bool profile_bins_grow(struct profile_bins *b, struct arena *a)
{
    uint32_t capacity = b->capacity == 0 ? 256 : b->capacity * 2;
    uint32_t *index = ARENA_ARRAY(a, capacity, uint32_t);
    uint64_t *ticks = ARENA_ARRAY(a, capacity, uint64_t);
    if (capacity < b->capacity || index == NULL || ticks == NULL) {
        return false;
    }
    if (b->used > 0) {
        memcpy(index, b->index, b->used * sizeof *index);
        memcpy(ticks, b->ticks, b->used * sizeof *ticks);
    }
    b->index = index;
    b->ticks = ticks;
    b->capacity = capacity;
    return true;
}

/* Position of a bin among those that arrived, introduced with 0 ticks if new; UINT32_MAX when memory is exhausted. */
static uint32_t profile_bins_find(struct profile_bins *b, struct arena *a, uint32_t bin)
{
    if (!table_reserve(&b->table, a, profile_bins_hash, b)) {
        return UINT32_MAX;
    }
    uint32_t at = table_slot(&b->table, table_mix(bin, b->seed));
    for (; b->table.slots[at] != 0; at = (at + 1) & b->table.mask) {
        if (b->index[b->table.slots[at] - 1] == bin) {
            return b->table.slots[at] - 1;
        }
    }
    if (b->used == b->capacity && !profile_bins_grow(b, a)) {
        return UINT32_MAX;
    }
    b->index[b->used] = bin;
    b->ticks[b->used] = 0;
    b->table.slots[at] = ++b->used;
    b->table.used++;
    return b->used - 1;
}

bool profile_bins_add(struct profile_bins *b, struct arena *a, const uint32_t *index, const uint64_t *ticks,
                      uint32_t used, bool *saturated)
{
    uint32_t most = b->used > used ? b->used : used;
    if (b->dense == NULL && (b->bins <= PROFILE_BINS_SMALL || b->bins / PROFILE_BINS_SPARSE <= most)) {
        if (!profile_bins_make_dense(b, a)) {
            return false;
        }
    }
    if (b->dense != NULL) {
        for (uint32_t i = 0; i < used; i++) {
            sum_add(&b->dense[index[i]], ticks[i], saturated);
        }
        return true;
    }
    uint32_t at = UINT32_MAX; /* uploads of one program often bring the same bins in the same order: guess the next */
    for (uint32_t i = 0; i < used; i++) {
        at++;
        if (at >= b->used || b->index[at] != index[i]) {
            at = profile_bins_find(b, a, index[i]);
        }
        if (at == UINT32_MAX) {
            return false;
        }
        sum_add(&b->ticks[at], ticks[i], saturated);
    }
    return true;
}

static bool profile_bins_finish_dense(const struct profile_bins *b, struct arena *a, uint32_t **index, uint64_t **ticks,
                                      uint32_t *used)
{
    uint32_t n = 0;
    for (uint32_t i = 0; i < b->bins; i++) {
        n += b->dense[i] != 0;
    }
    *index = ARENA_ARRAY(a, n, uint32_t);
    *ticks = ARENA_ARRAY(a, n, uint64_t);
    if (*index == NULL || *ticks == NULL) {
        return false;
    }
    *used = n;
    n = 0;
    for (uint32_t i = 0; i < b->bins; i++) {
        if (b->dense[i] != 0) {
            (*index)[n] = i;
            (*ticks)[n++] = b->dense[i];
        }
    }
    return true;
}

bool profile_bins_finish(const struct profile_bins *b, struct arena *a, uint32_t **index, uint64_t **ticks,
                         uint32_t *used)
{
    if (b->dense != NULL) {
        return profile_bins_finish_dense(b, a, index, ticks, used);
    }
    struct sort_item *items = ARENA_ARRAY(a, (size_t)b->used * 2, struct sort_item);
    *index = ARENA_ARRAY(a, b->used, uint32_t);
    *ticks = ARENA_ARRAY(a, b->used, uint64_t);
    if (items == NULL || *index == NULL || *ticks == NULL) {
        return false;
    }
    for (uint32_t i = 0; i < b->used; i++) {
        items[i] = (struct sort_item){b->index[i], i};
    }
    sort_radix(items, items + b->used, b->used);
    uint32_t n = 0;
    for (uint32_t i = 0; i < b->used; i++) {
        if (b->ticks[items[i].value] != 0) {
            (*index)[n] = (uint32_t)items[i].key;
            (*ticks)[n++] = b->ticks[items[i].value];
        }
    }
    *used = n;
    return true;
}
