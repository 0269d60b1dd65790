/* Symbols by name, once for all listings. */
#ifndef PROFD_COMPAT_COMPAT_NAMES_H
#define PROFD_COMPAT_COMPAT_NAMES_H

#include <stdint.h>

#include "core/arena.h"
#include "proto/status.h"

/* Orders the numbers 0 … n − 1 by their names as strcmp does; equal names keep the order of their numbers. Sorts by
 * eight bytes at a time, so that common prefixes cost little. NO_MEMORY. O(bytes of names) and at most n log n
 * comparisons. */
enum profd_status compat_names_order(const char *const *names, uint32_t n, struct arena *a, uint32_t **out);

#endif
