/* Symbols by name, once for all listings. */
#ifndef PROFD_COMPAT_COMPAT_NAMES_H
#define PROFD_COMPAT_COMPAT_NAMES_H

#include <stdint.h>

#include "core/arena.h"
#include "proto/status.h"

/* The numbers 0 … n − 1 ordered by their names as strcmp does; the same name keeps the order of numbers. Sorts by eight
 * bytes at a time, so that common beginnings cost little. NO_MEMORY. O(bytes of names) and n log n comparisons at most.
 */
enum profd_status compat_names_order(const char *const *names, uint32_t n, struct arena *a, uint32_t **out);

#endif
