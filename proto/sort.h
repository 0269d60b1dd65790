/* Stable sorts without recursion; the caller brings the scratch space. */
#ifndef PROFD_PROTO_SORT_H
#define PROFD_PROTO_SORT_H

#include <stddef.h>
#include <stdint.h>

struct sort_item {
    uint64_t key;
    uint32_t value;
};

/* Ascending by key; equal keys keep their order, so that sorting by the least important key first sorts by several.
 * scratch holds n items. O(n) for each byte in which the keys differ. */
void sort_radix(struct sort_item *items, struct sort_item *scratch, size_t n);

/* A 64-bit key that ascends as the doubles do; −0 is below 0. */
uint64_t sort_key_double(double value);

/* Negative, 0 or positive as item a comes before, with or after b. */
typedef int sort_compare(const void *context, uint32_t a, uint32_t b);

/* Ascending by compare; equal items keep their order. scratch holds n items. O(n log n) comparisons. */
void sort_merge(uint32_t *items, uint32_t *scratch, size_t n, sort_compare *compare, const void *context);

#endif
