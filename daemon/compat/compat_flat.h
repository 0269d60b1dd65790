/* The flat profile (reference 3.6). */
#ifndef PROFD_COMPAT_COMPAT_FLAT_H
#define PROFD_COMPAT_COMPAT_FLAT_H

#include "compat/compat_run.h"
#include "core/arena.h"
#include "core/buffer.h"
#include "proto/status.h"

/* Appends the listing. NO_MEMORY; reaching the limit of the buffer is recorded in the buffer. O(symbols log symbols).
 */
enum profd_status compat_flat_print(const struct compat_run *r, struct arena *a, struct buffer *out,
                                    struct profd_error *e);

#endif
