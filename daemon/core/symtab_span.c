#include "core/symtab_span.h"

#include "core/heap.h"
#include "core/symtab_rank.h"

struct sweep {
    const struct symtab *table;
    const struct symtab_claim *claims;
};

/* Is claim x better than y? */
static bool span_before(const void *context, uint32_t x, uint32_t y)
{
    const struct sweep *h = context;
    const struct symtab_owner *a = &h->table->owners[h->claims[x].owner], *b = &h->table->owners[h->claims[y].owner];
    if (a->symbol == SYMTAB_NONE || b->symbol == SYMTAB_NONE) {
        if ((a->symbol == SYMTAB_NONE) != (b->symbol == SYMTAB_NONE)) {
            return b->symbol == SYMTAB_NONE;
        }
        /* Without symbols the PLT goes before entries, then the innermost before what is around it. */
        if ((a->kind == SYMTAB_PLT) != (b->kind == SYMTAB_PLT)) {
            return a->kind == SYMTAB_PLT;
        }
        return x > y;
    }
    return symtab_rank_before(h->table->object, a->symbol, b->symbol);
}

static void span_emit(struct symtab *t, uint64_t low, uint32_t owner)
{
    uint32_t folded = t->owners[owner].folded_into;
    if (t->span_count > 0 && t->span_owner[t->span_count - 1] == folded) {
        return;
    }
    t->span_low[t->span_count] = low;
    t->span_owner[t->span_count++] = folded;
}

/* At most four times as many buckets as spans, each as wide as a power of two. */
static bool span_index(struct symtab *t, struct arena *a)
{
    uint64_t low = t->span_count > 1 ? t->span_low[1] : 0, high = t->span_low[t->span_count - 1];
    unsigned shift = 0;
    while ((high - low) >> shift >= (uint64_t)t->span_count * 4) {
        shift++;
    }
    t->bucket_low = low;
    t->bucket_shift = shift;
    t->bucket_count = (uint32_t)((high - low) >> shift) + 1;
    t->bucket = ARENA_ARRAY(a, t->bucket_count, uint32_t);
    if (t->bucket == NULL) {
        return false;
    }
    uint32_t span = 0;
    for (uint32_t i = 0; i < t->bucket_count; i++) {
        uint64_t start = low + ((uint64_t)i << shift);
        while (span + 1 < t->span_count && t->span_low[span + 1] <= start) {
            span++;
        }
        t->bucket[i] = span;
    }
    return true;
}

bool symtab_span_sweep(struct symtab *t, struct arena *a, const struct symtab_claim *claims, uint32_t n)
{
    const struct sweep sweep = {t, claims};
    /* Claims that hold the current address; those that have ended are dropped when they come to the top. */
    struct heap heap = {span_before, &sweep, ARENA_ARRAY(a, n, uint32_t), 0};
    /* Each iteration begins or ends a claim, and may leave a gap after it. */
    t->span_low = ARENA_ARRAY(a, (size_t)n * 3 + 2, uint64_t);
    t->span_owner = ARENA_ARRAY(a, (size_t)n * 3 + 2, uint32_t);
    if (heap.items == NULL || t->span_low == NULL || t->span_owner == NULL) {
        return false;
    }
    uint64_t at = 0;
    uint32_t next = 0;
    for (;;) {
        while (heap.count > 0 && claims[heap.items[0]].high <= at) {
            heap_pop(&heap);
        }
        while (next < n && claims[next].low == at) {
            heap_push(&heap, next++);
        }
        uint32_t top = heap.count > 0 ? heap.items[0] : SYMTAB_NONE;
        span_emit(t, at, top == SYMTAB_NONE ? 0 : claims[top].owner);
        if (top == SYMTAB_NONE && next == n) {
            break;
        }
        uint64_t start = next < n ? claims[next].low : UINT64_MAX;
        at = top != SYMTAB_NONE && claims[top].high < start ? claims[top].high : start;
        if (at == UINT64_MAX) {
            break;
        }
    }
    return span_index(t, a);
}

uint32_t symtab_find_span(const struct symtab *t, uint64_t address)
{
    if (address < t->bucket_low) {
        return 0;
    }
    uint64_t bucket = (address - t->bucket_low) >> t->bucket_shift;
    if (bucket >= t->bucket_count) {
        return t->span_count - 1;
    }
    uint32_t low = t->bucket[bucket];
    uint32_t high = bucket + 1 < t->bucket_count ? t->bucket[bucket + 1] + 1 : t->span_count;
    while (high - low > 1) { /* the span is in [low, high) */
        uint32_t middle = low + (high - low) / 2;
        if (t->span_low[middle] <= address) {
            low = middle;
        } else {
            high = middle;
        }
    }
    return low;
}

uint32_t symtab_find_next(const struct symtab *t, uint64_t address, uint32_t *span)
{
    uint32_t at = *span;
    if (t->span_low[at] > address || (at + 1 < t->span_count && t->span_low[at + 1] <= address)) {
        if (at + 2 < t->span_count && t->span_low[at + 1] <= address && address < t->span_low[at + 2]) {
            at++;
        } else {
            at = symtab_find_span(t, address);
        }
        *span = at;
    }
    return t->span_owner[at];
}
