/* Stable sort of indices: gprof breaks ties by the order before the sort. */
#ifndef PROFD_COMPAT_COMPAT_SORT_H
#define PROFD_COMPAT_COMPAT_SORT_H

#include <stddef.h>
#include <stdint.h>

/* Returns a negative number, zero or a positive number if a sorts before, with or after b. */
typedef int compat_compare(const void *context, uint32_t a, uint32_t b);

/* Sorts n items in place; equal items keep their order. scratch has capacity for n items. Divides and merges as glibc's
 * qsort does, because one of gprof's comparisons contradicts itself (-C), so the result depends on which pairs are
 * compared. O(n log n), no recursion. */
void compat_sort(uint32_t *items, uint32_t *scratch, size_t n, compat_compare *compare, const void *context);

#endif
