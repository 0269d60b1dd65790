/* Arcs between symbols (reference 3.3), from both of their ends. */
#ifndef PROFD_COMPAT_COMPAT_ARCS_H
#define PROFD_COMPAT_COMPAT_ARCS_H

#include <stdbool.h>
#include <stdint.h>

#include "compat/compat_filter.h"
#include "compat/compat_hist.h"
#include "compat/compat_symbols.h"
#include "core/arena.h"
#include "core/object.h"
#include "proto/counts.h"
#include "proto/status.h"

/* -c: calls in the machine code, found as gprof finds them (reference 3.5, A1). On x86 each byte 0xe8 is read as a call
 * with an unsigned operand, so backward calls are not found. On AArch64 each word that is b or bl is a call. */

/* in the order in which gprof finds them; may repeat */
struct compat_calls {
    uint32_t count;
    uint32_t *parent, *child;
};

/* False if gprof does not find calls on this machine. */
bool compat_calls_possible(const struct object *o);

/* Scans the part of .text of each symbol that a histogram covers. Code outside .text and the last symbol are not
 * scanned: gprof reads the end of that symbol from memory outside the data. NO_MEMORY. O(bytes × log symbols). */
enum profd_status compat_calls_find(const struct object *o, const struct compat_symbols *s, const struct compat_hist *h,
                                    struct arena *a, struct compat_calls *out, struct profd_error *e);

/* Two tables of the same arcs, so that iterating over a symbol's arcs reads memory in order. In each list the oldest
 * arc is first; gprof inserts new arcs at the front of its lists, so it visits the newest first. */
struct compat_arcs {
    uint32_t count;
    uint32_t *child_first; /* arcs out of symbol s: places child_first[s] … child_first[s + 1] of the next two */
    uint32_t *child;
    uint64_t *calls;
    uint32_t *parent_first; /* arcs into s, likewise */
    uint32_t *parent;
    uint64_t *parent_calls;
    uint32_t *recorded; /* by symbol: its arcs before this place were counted, the others are known from the machine
                           code only */
    uint64_t *total;    /* by symbol: calls to it, including its own */
};

/* Finds both ends of every record that the filter (may be NULL) passes, and adds up the records of each pair; then adds
 * the calls of the machine code (may be NULL) with count 0. A record is dropped if no symbol owns one of its ends. A
 * call to a symbol that is not a function goes to the nearest function before it. Sums wrap at 2^64, as in gprof.
 * NO_MEMORY; LIMIT from 2^32 − 1 records. O(symbols + records × arc rules): arcs are sorted by radix, first by one end,
 * then by the other. */
enum profd_status compat_arcs_tally(const struct counts *c, const struct compat_symbols *s,
                                    const struct compat_filter *f, const struct compat_calls *calls, struct arena *a,
                                    struct compat_arcs *out, struct profd_error *e);

#endif
