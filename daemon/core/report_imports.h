/* Which function an imported name means: the first build in load order that exports it. */
#ifndef PROFD_CORE_REPORT_IMPORTS_H
#define PROFD_CORE_REPORT_IMPORTS_H

#include <stdint.h>

#include "core/arena.h"
#include "core/report_builds.h"
#include "core/table.h"

struct report_imports {
    struct table table;
    const char **names;
    uint32_t *owners; /* as report_builds numbers them */
};

/* Collects the global and weak function symbols of all builds. False when memory is exhausted. O(symbols) expected. */
bool report_imports_make(struct arena *a, const struct report_builds *b, struct report_imports *out);

/* Owner of the name, a version behind '@' left out; SYMTAB_NONE if no build of the report exports it. O(length)
 * expected. */
uint32_t report_imports_find(const struct report_imports *imports, const char *name);

#endif
