/* gprof's own arithmetic and listings, byte for byte (GNU gprof 2.40 on Debian 12). True mode lives in core/. */
#ifndef PROFD_COMPAT_COMPAT_H
#define PROFD_COMPAT_COMPAT_H

#include <stdbool.h>

#include "core/arena.h"
#include "core/buffer.h"
#include "core/object.h"
#include "proto/counts.h"
#include "proto/status.h"

/* What to print. Zero it and set brief for what `gprof -b EXE GMON…` prints. */
struct compat_options {
    bool brief;           /* -b: no explanations */
    bool no_flat, no_graph; /* -P, -Q without symspec: bare negative styles */
    bool all_symbols;     /* -z */
    unsigned width;       /* -w, of the index; 0 means 80 */
};

/* Prints the styles that gprof would choose by itself: flat if there is a histogram, graph and index if there are
 * arcs. counts: the records of all files in the order read, of one build. Same geometry adds, several disjoint ones are
 * kept; otherwise CONFLICT in gprof's words. REFUSED if the object has no .symtab symbols or no .text. */
enum profd_status compat_print(const struct compat_options *options, const struct object *object,
                               const struct counts *counts, struct arena *a, struct buffer *out, struct profd_error *e);

#endif
