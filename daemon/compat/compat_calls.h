/* -c: calls in the machine code, found as gprof finds them (reference 3.5, A1). On x86 every byte 0xe8 is taken for a
 * call and its operand for unsigned, so that calls backwards are not found; on AArch64 every word that is b or bl. */
#ifndef PROFD_COMPAT_COMPAT_CALLS_H
#define PROFD_COMPAT_COMPAT_CALLS_H

#include <stdbool.h>
#include <stdint.h>

#include "compat/compat_hist.h"
#include "compat/compat_symbols.h"
#include "core/arena.h"
#include "core/object.h"
#include "proto/status.h"

/* In the order gprof meets them; may repeat. */
struct compat_calls {
    uint32_t count;
    uint32_t *parent, *child;
};

/* False for a machine that gprof does not know calls of. */
bool compat_calls_possible(const struct object *o);

/* Scans each symbol's part of .text that a histogram covers. Scans nothing outside .text, and not the last symbol:
 * gprof reads the end of that symbol from memory that it does not own. NO_MEMORY. O(bytes × log symbols). */
enum profd_status compat_calls_find(const struct object *o, const struct compat_symbols *s, const struct compat_hist *h,
                                    struct arena *a, struct compat_calls *out, struct profd_error *e);

#endif
