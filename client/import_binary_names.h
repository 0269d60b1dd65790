/* The functions of an object by name. */
#ifndef PROFD_CLIENT_IMPORT_BINARY_NAMES_H
#define PROFD_CLIENT_IMPORT_BINARY_NAMES_H

#include "client/import_binary.h"

/* One name of a function: raw or demangled. */
struct binary_name {
    const char *text;
    uint32_t symbol;
};

struct binary_names {
    const struct object *object;
    struct binary_name *list; /* in order of the names */
    const uint32_t *order;    /* of list, ascending by text */
    uint32_t count;
};

/* NO_MEMORY. O(n log n). */
enum profd_status binary_names_make(struct arena *a, const struct object *o, struct binary_names *out,
                                    struct profd_error *e);
/* A name of n bytes exactly as it stands. Of namesakes at several addresses those of the source file count; if that
 * leaves several the one with the lowest address is taken, and ambiguous. */
bool binary_names_find(const struct binary_names *names, const char *name, size_t n, const char *file,
                       struct import_function *out);

#endif
