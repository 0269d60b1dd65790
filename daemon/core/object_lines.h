/* Reads the source lines of a decoded object from their stored form, which core/object.c describes. */
#ifndef PROFD_CORE_OBJECT_LINES_H
#define PROFD_CORE_OBJECT_LINES_H

#include "core/object.h"

/* Reads all lines of a decoded object, validates them, and gives those that have an address in [low, high), in
 * ascending order, in the arena. *count is 0 if the object has no lines. MALFORMED if the bytes break a rule,
 * NO_MEMORY. O(bytes of lines). */
enum profd_status object_lines_find(const struct object *o, struct arena *a, uint64_t low, uint64_t high,
                                    struct object_line **out, uint32_t *count, struct profd_error *e);

#endif
