/* -C: how often each function was called, by source file and line. */
#ifndef PROFD_COMPAT_COMPAT_EXECUTIONS_H
#define PROFD_COMPAT_COMPAT_EXECUTIONS_H

#include "compat/compat_run.h"
#include "core/arena.h"
#include "core/buffer.h"
#include "proto/status.h"

/* Appends a line for each function that was called; with -z, for every function. NO_MEMORY. O(symbols log symbols). */
enum profd_status compat_executions_print(const struct compat_run *r, struct arena *a, struct buffer *out,
                                          struct profd_error *e);

#endif
