#include "proto/sort.h"

#include <stdlib.h>
#include <string.h>

#define SORT_RUN 12u /* runs of this length are sorted by insertion */

void sort_radix(struct sort_item *items, struct sort_item *scratch, size_t n)
{
    if (n < 32) {
        for (size_t i = 1; i < n; i++) {
            const struct sort_item item = items[i];
            size_t j = i;
            for (; j > 0 && items[j - 1].key > item.key; j--) {
                items[j] = items[j - 1];
            }
            items[j] = item;
        }
        return;
    }
    uint64_t varying = 0;
    for (size_t i = 1; i < n; i++) {
        varying |= items[i].key ^ items[0].key;
    }
    struct sort_item *from = items, *to = scratch;
    for (unsigned shift = 0; shift < 64; shift += 8) {
        if ((varying >> shift & 255) == 0) {
            continue;
        }
        size_t start[257] = {0};
        for (size_t i = 0; i < n; i++) {
            start[(from[i].key >> shift & 255) + 1]++;
        }
        for (size_t d = 0; d < 256; d++) {
            start[d + 1] += start[d];
        }
        for (size_t i = 0; i < n; i++) {
            to[start[from[i].key >> shift & 255]++] = from[i];
        }
        struct sort_item *swap = from;
        from = to;
        to = swap;
    }
    if (from != items) {
        memcpy(items, from, n * sizeof *items);
    }
}

void sort_keys(struct sort_item *items, struct sort_item *scratch, size_t n, int keys, sort_key_of *key_of,
               const void *context)
{
    for (int key = 0; key < keys; key++) {
        for (size_t i = 0; i < n; i++) {
            items[i].key = key_of(context, items[i].value, key);
        }
        sort_radix(items, scratch, n);
    }
}

uint64_t sort_key_double(double value)
{
    uint64_t bits;
    memcpy(&bits, &value, sizeof bits);
    return bits >> 63 != 0 ? ~bits : bits | UINT64_C(1) << 63;
}

void sort_merge(uint32_t *items, uint32_t *scratch, size_t n, sort_compare *compare, const void *context)
{
    for (size_t low = 0; low < n; low += SORT_RUN) {
        const size_t high = n - low < SORT_RUN ? n : low + SORT_RUN;
        for (size_t i = low + 1; i < high; i++) {
            const uint32_t item = items[i];
            size_t j = i;
            for (; j > low && compare(context, items[j - 1], item) > 0; j--) {
                items[j] = items[j - 1];
            }
            items[j] = item;
        }
    }
    uint32_t *from = items, *to = scratch;
    for (size_t run = SORT_RUN; run < n; run *= 2) {
        for (size_t low = 0; low < n; low += 2 * run) {
            const size_t middle = n - low < run ? n : low + run, high = n - low < 2 * run ? n : low + 2 * run;
            if (middle == high || compare(context, from[middle - 1], from[middle]) <= 0) {
                memcpy(to + low, from + low, (high - low) * sizeof *to);
                continue;
            }
            for (size_t i = low, j = middle, k = low; k < high; k++) {
                to[k] = j == high || (i < middle && compare(context, from[i], from[j]) <= 0) ? from[i++] : from[j++];
            }
        }
        uint32_t *swap = from;
        from = to;
        to = swap;
    }
    if (from != items) {
        memcpy(items, from, n * sizeof *items);
    }
}

void heap_push(struct heap *h, uint32_t item)
{
    uint32_t at = h->count++;
    for (; at > 0 && h->before(h->context, item, h->items[(at - 1) / 2]); at = (at - 1) / 2) {
        h->items[at] = h->items[(at - 1) / 2];
    }
    h->items[at] = item;
}

uint32_t heap_pop(struct heap *h)
{
    uint32_t top = h->items[0], moved = h->items[--h->count], at = 0;
    for (uint32_t child = 1; child < h->count; child = 2 * at + 1) {
        if (child + 1 < h->count && h->before(h->context, h->items[child + 1], h->items[child])) {
            child++;
        }
        if (!h->before(h->context, h->items[child], moved)) {
            break;
        }
        h->items[at] = h->items[child];
        at = child;
    }
    h->items[at] = moved;
    return top;
}

void *list_grow(void *list, size_t count, size_t *capacity, size_t size)
{
    if (count < *capacity) {
        return list;
    }
    const size_t more = *capacity > 0 ? *capacity * 2 : 8;
    void *grown = reallocarray(list, more, size);
    *capacity = grown != NULL ? more : *capacity;
    return grown;
}
