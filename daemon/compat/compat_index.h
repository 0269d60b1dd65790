/* The index by function name (reference 3.6). */
#ifndef PROFD_COMPAT_COMPAT_INDEX_H
#define PROFD_COMPAT_COMPAT_INDEX_H

#include "compat/compat_run.h"
#include "core/arena.h"
#include "core/buffer.h"
#include "proto/status.h"

/* Appends the index in three columns, without the form feed before it. NO_MEMORY; reaching the limit of the buffer is
 * recorded in the buffer. O(symbols log symbols). */
enum profd_status compat_index_print(const struct compat_run *r, struct arena *a, struct buffer *out,
                                     struct profd_error *e);

#endif
