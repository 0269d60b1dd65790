/* Libraries that are loaded when they are first needed. Most commands of profctl need none of them, and the dynamic
 * linker would take longer to relocate them than the command takes. */
#ifndef PROFD_PROTO_LATE_H
#define PROFD_PROTO_LATE_H

#include <stddef.h>

#include "proto/status.h"

struct late_library {
    const char *file;         /* "libx.so.4" */
    const char *const *names; /* of count functions */
    size_t count;
    void *functions; /* a struct of count pointers to functions, in that order; NULL until the library is loaded */
};

/* Loads the library, which stays loaded, and fills in the pointers. The next calls cost nothing. Any thread may call
 * it. INTERNAL: the library or a function is missing. */
enum profd_status late_load(const struct late_library *l, struct profd_error *e);

#endif
