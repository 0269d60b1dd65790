/* Which function an imported name means: the first build in load order that exports it. */
#ifndef PROFD_CORE_REPORT_IMPORTS_H
#define PROFD_CORE_REPORT_IMPORTS_H

#include <stdbool.h>
#include <stdint.h>

#include "core/arena.h"
#include "core/object.h"
#include "core/report_builds.h"
#include "core/table.h"

/* The names are collected when the first one is sought. Begin with arena and builds set and all else zero. */
struct report_imports {
    struct arena *arena;
    const struct report_builds *builds;
    bool made;
    struct table table;
    const char **names;
    uint32_t *owners; /* as report_builds numbers them */
};

/* Owner of the name, a version behind '@' left out; SYMTAB_NONE if no build of the report exports it. O(length)
 * expected; the first time O(symbols). */
uint32_t report_imports_find(struct report_imports *imports, const char *name);

/* Owner that a call of the machine code goes to: inside the build exactly, else by the import's name; SYMTAB_NONE if it
 * is not known. span: as symtab_find_next. */
uint32_t report_imports_callee(struct report_imports *imports, uint32_t build, const struct object_arc *arc,
                               uint32_t *span, bool *by_name);

#endif
