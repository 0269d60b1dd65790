/* A stable sort of indices: gprof's listings break ties by the order before the sort. */
#ifndef PROFD_COMPAT_COMPAT_SORT_H
#define PROFD_COMPAT_COMPAT_SORT_H

#include <stddef.h>
#include <stdint.h>

/* Negative, zero or positive as a sorts before, with or after b. */
typedef int compat_compare(const void *context, uint32_t a, uint32_t b);

/* Sorts n items in place; equal ones keep their order. scratch holds at least n items. Halves and merges as glibc's
 * qsort does, because gprof has an order that contradicts itself (-C), and what comes of it depends on which pairs are
 * compared. O(n log n), no recursion. */
void compat_sort(uint32_t *items, uint32_t *scratch, size_t n, compat_compare *compare, const void *context);

#endif
