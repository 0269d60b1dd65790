/* Arcs between symbols (reference 3.3), in the order gprof met them. */
#ifndef PROFD_COMPAT_COMPAT_ARCS_H
#define PROFD_COMPAT_COMPAT_ARCS_H

#include <stdint.h>

#include "compat/compat_calls.h"
#include "compat/compat_filter.h"
#include "compat/compat_symbols.h"
#include "core/arena.h"
#include "proto/counts.h"
#include "proto/status.h"

/* Arc i goes from parent[i] to child[i]; arcs ascend by first arrival. gprof puts a new arc at the front of its lists, so
 * both lists run from the newest arc to the oldest. */
struct compat_arcs {
    uint32_t count;
    uint32_t recorded; /* the first so many were counted; the others are known from the machine code only */
    uint32_t *parent, *child;
    uint64_t *calls;
    uint32_t *child_first, *child_list;   /* arcs out of symbol s: child_list[child_first[s] … child_first[s + 1]) */
    uint32_t *parent_first, *parent_list; /* arcs into s, likewise */
    uint64_t *total;                      /* by symbol: calls into it, self calls included */
};

/* Finds both ends of every record that the filter (may be NULL) lets pass, and adds up; then come the machine code's calls
 * (may be NULL), with count 0. Records with an end that no symbol owns are dropped; a call to a symbol that is no
 * function goes to the nearest function in front of it. Sums wrap at 2^64, as gprof's do. O(arcs × (log symbols + arc rules)). */
enum profd_status compat_arcs_tally(const struct counts *c, const struct compat_symbols *s,
                                    const struct compat_filter *f, const struct compat_calls *calls, struct arena *a,
                                    struct compat_arcs *out, struct profd_error *e);

#endif
