/* The orders of the listings. */
#ifndef PROFD_COMPAT_COMPAT_ORDER_H
#define PROFD_COMPAT_COMPAT_ORDER_H

#include <stdint.h>

#include "compat/compat_graph.h"
#include "compat/compat_symbols.h"
#include "core/arena.h"
#include "proto/status.h"

/* Fills g->listing, the order of the call graph: by time with callees; equal ones with cycles first, names with '_'
 * last, then by calls and name. g->by_name must be set. Linear, by radix, unless times are NaN. NO_MEMORY. */
enum profd_status compat_order_nodes(struct compat_graph *g, const struct compat_symbols *s, struct arena *a);

/* Sorts n symbols, which ascend, into the order of the flat profile: by own time, calls, name. Linear, unless times are
 * NaN. NO_MEMORY. */
enum profd_status compat_order_flat(const struct compat_graph *g, const struct compat_symbols *s, uint32_t *list,
                                    uint32_t n, struct arena *a);

#endif
