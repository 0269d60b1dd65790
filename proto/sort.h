/* Lists: stable sorts, comparisons, searches, a heap, and growing. */
#ifndef PROFD_PROTO_SORT_H
#define PROFD_PROTO_SORT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

/* Stable sorts without recursion. The caller provides the scratch space. */

struct sort_item {
    uint64_t key;
    uint32_t value;
};

/* Sorts ascending by key. Equal keys keep their order: to sort by several keys, sort by the least important one first.
 * scratch holds n items. O(n) for each byte in which the keys differ. */
void sort_radix(struct sort_item *items, struct sort_item *scratch, size_t n);

/* Returns key number `key` of a value, for sort_keys. */
typedef uint64_t sort_key_of(const void *context, uint32_t value, int key);

/* Sorts the values of items by several keys: by key 0 where all later keys are equal, and so on; equal values keep
 * their order. scratch and cost as sort_radix, for each key. */
void sort_keys(struct sort_item *items, struct sort_item *scratch, size_t n, int keys, sort_key_of *key_of,
               const void *context);

/* Returns a 64-bit key that ascends as the doubles do; −0 is below 0. */
uint64_t sort_key_double(double value);

/* Returns a number that is negative, 0 or positive if item a comes before, with or after b. */
typedef int sort_compare(const void *context, uint32_t a, uint32_t b);

/* Sorts ascending by compare; equal items keep their order. scratch holds n items. O(n log n) comparisons. */
void sort_merge(uint32_t *items, uint32_t *scratch, size_t n, sort_compare *compare, const void *context);

/* Comparisons for qsort and sort_merge: below 0, 0 or above 0. */

static inline int compare_u64(uint64_t a, uint64_t b)
{
    return (a > b) - (a < b);
}

/* Compares pairs: by the second numbers if the first are equal. */
static inline int compare_pairs(uint64_t a, uint64_t b, uint64_t then_a, uint64_t then_b)
{
    return a != b ? compare_u64(a, b) : compare_u64(then_a, then_b);
}

/* Sets i to the first number in [low, high) for which `before`, an expression of i, is false, as it is for all numbers
 * behind it; to high if there is none. O(log n). */
#define SORT_SEARCH(i, low, high, before)                                                                              \
    do {                                                                                                               \
        uint32_t search_low = (low), search_high = (high);                                                             \
        while (search_low < search_high) {                                                                             \
            (i) = search_low + (search_high - search_low) / 2;                                                         \
            if (before) {                                                                                              \
                search_low = (i) + 1;                                                                                  \
            } else {                                                                                                   \
                search_high = (i);                                                                                     \
            }                                                                                                          \
        }                                                                                                              \
        (i) = search_low;                                                                                              \
    } while (0)

/* Returns the number of the first of count rows that is not below key; count if there is none. Each row has size bytes
 * and begins with a uint64_t, by which the rows ascend. O(log n). */
static inline uint32_t compare_find_first(const void *rows, uint32_t count, size_t size, uint64_t key)
{
    uint32_t i;
    uint64_t at;
    SORT_SEARCH(i, 0, count, (memcpy(&at, (const char *)rows + size * i, sizeof at), at < key));
    return i;
}

/* Ensures space for one more row of this size behind count rows: returns the list, which may have moved. NULL if memory
 * is exhausted: then nothing has changed. Amortized O(size). */
void *list_grow(void *list, size_t count, size_t *capacity, size_t size);

/* Replaces a list by where it has moved, unless that is NULL. Returns whether it is not. */
#define LIST_MOVE(list, to)                                                                                            \
    (__extension__({                                                                                                   \
        void *list_moved = (to);                                                                                       \
        (list) = list_moved != NULL ? list_moved : (list);                                                             \
        list_moved != NULL;                                                                                            \
    }))
/* list_grow for a list, its number of rows, and its capacity, a size_t. False if memory is exhausted. */
#define LIST_GROW(list, count, capacity) LIST_MOVE(list, list_grow((list), (count), &(capacity), sizeof *(list)))

/* A binary heap of numbers: the first by an order is on top. Pushing and popping are O(log n). */

struct heap {
    bool (*before)(const void *context, uint32_t a, uint32_t b); /* a total order */
    const void *context;
    uint32_t *items; /* the caller's, with capacity for all; items[0] is on top */
    uint32_t count;
};

void heap_push(struct heap *h, uint32_t item);
/* Removes the top, which there must be, and returns it. */
uint32_t heap_pop(struct heap *h);

#endif
