/* The stored form of an object's source lines. Each is four varints: low (difference to the one before), high − low,
 * file and line (zigzag differences to those before). */
#ifndef PROFD_CORE_OBJECT_LINES_H
#define PROFD_CORE_OBJECT_LINES_H

#include "core/buffer.h"
#include "core/object.h"

#define OBJECT_LINE_BYTES 4u /* the fewest of one */

/* Appends the number of lines, the number of their bytes, and these. The lines must ascend by low. */
void object_lines_put(struct buffer *b, const struct object *o);

#endif
