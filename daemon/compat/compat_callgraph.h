/* The call graph listing (reference 3.6). */
#ifndef PROFD_COMPAT_COMPAT_CALLGRAPH_H
#define PROFD_COMPAT_COMPAT_CALLGRAPH_H

#include "compat/compat_run.h"
#include "core/arena.h"
#include "core/buffer.h"
#include "proto/status.h"

/* Appends the listing. NO_MEMORY; reaching the limit of the buffer is recorded in the buffer. O(symbols + arcs log
 * arcs). */
enum profd_status compat_callgraph_print(const struct compat_run *r, struct arena *a, struct buffer *out,
                                         struct profd_error *e);

#endif
