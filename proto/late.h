/* Libraries that are loaded when they are first needed. Most commands of profctl need none of them, and the dynamic
 * linker would take longer to relocate them than the command takes. */
#ifndef PROFD_PROTO_LATE_H
#define PROFD_PROTO_LATE_H

#include <stddef.h>

#include "proto/status.h"

/* Loads the library of this file name ("libx.so.4"), which stays loaded, and writes the addresses of the functions of
 * these names to functions, a struct of count pointers to functions in that order that was NULL at first. The next
 * calls with the same struct cost nothing. Any thread may call it. INTERNAL: the library or a function is missing. */
enum profd_status late_load(const char *file, const char *const *names, size_t count, void *functions,
                            struct profd_error *e);

#endif
