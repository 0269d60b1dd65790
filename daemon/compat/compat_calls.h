/* -c: calls in the machine code, found as gprof finds them (reference 3.5, A1). On x86 each byte 0xe8 is read as a call
 * with an unsigned operand, so backward calls are not found. On AArch64 each word that is b or bl is a call. */
#ifndef PROFD_COMPAT_COMPAT_CALLS_H
#define PROFD_COMPAT_COMPAT_CALLS_H

#include <stdbool.h>
#include <stdint.h>

#include "compat/compat_hist.h"
#include "compat/compat_symbols.h"
#include "core/arena.h"
#include "core/object.h"
#include "proto/status.h"

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

#endif
