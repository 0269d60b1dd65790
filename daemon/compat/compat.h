/* gprof's own arithmetic and listings, byte for byte (GNU gprof 2.40 on Debian 12). True mode lives in core/. */
#ifndef PROFD_COMPAT_COMPAT_H
#define PROFD_COMPAT_COMPAT_H

#include "compat/compat_options.h"
#include "core/arena.h"
#include "core/buffer.h"
#include "core/object.h"
#include "proto/counts.h"
#include "proto/status.h"

/* Prints the styles asked for, or those that gprof would choose by itself: flat if there is a histogram, graph and
 * index if there are arcs, counts if there is neither. counts: the records of all files in the order read, of one
 * build; rates are not compared, the first holds. Same geometry adds, several disjoint ones are kept; otherwise
 * CONFLICT in gprof's words. REFUSED if the object has no .symtab symbols or no .text, or a style wants what was not
 * counted. TOO_LARGE if the buffer's limit is met; on failure its size is what it was before. compat_run.h has the
 * single steps. O(n (log n + specs) + arcs). */
enum profd_status compat_print(const struct compat_options *options, const struct object *object,
                               const struct counts *counts, struct arena *a, struct buffer *out, struct profd_error *e);

#endif
