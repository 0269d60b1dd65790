/* What two objects of one build have in common. */
#ifndef PROFD_CORE_OBJECT_COMPARE_H
#define PROFD_CORE_OBJECT_COMPARE_H

#include "core/object.h"

/* *adds: o has something that `more` lacks: a symbol, or more lines, digests, inlined functions, calls or instructions;
 * or the two are no copies of one file. A copy without debug information, or without local symbols, adds nothing.
 * *adds is untouched unless OK. NO_MEMORY. O(symbols). */
enum profd_status object_compare_content(const struct object *o, const struct object *more, struct arena *scratch,
                                         bool *adds, struct profd_error *e);

#endif
