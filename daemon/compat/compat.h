/* gprof's own arithmetic and listings, byte for byte (GNU gprof 2.40 on Debian 12). True mode lives in core/. */
#ifndef PROFD_COMPAT_COMPAT_H
#define PROFD_COMPAT_COMPAT_H

#include "compat/compat_options.h"
#include "core/arena.h"
#include "core/buffer.h"
#include "core/object.h"
#include "proto/counts.h"
#include "proto/status.h"

/* Prints the requested styles, or those that gprof chooses if none is requested: flat if there is a histogram, graph
 * and index if there are arcs, counts if there is neither. counts has the records of all files of one build in the
 * order read; rates are not compared, the first one is used. Histograms of the same geometry are added up, disjoint
 * ones are kept; otherwise CONFLICT, with gprof's message. REFUSED: the object has no .text or no .symtab symbols, or a
 * style requires counts that are missing. TOO_LARGE: the limit of the buffer was reached; the buffer then has its
 * previous size. compat_run.h has the single steps. O(n (log n + specs) + arcs). */
enum profd_status compat_print(const struct compat_options *options, const struct object *object,
                               const struct counts *counts, struct arena *a, struct buffer *out, struct profd_error *e);

#endif
