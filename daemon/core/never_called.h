/* Functions of one build that no process of the window entered. */
#ifndef PROFD_CORE_NEVER_CALLED_H
#define PROFD_CORE_NEVER_CALLED_H

#include <stdbool.h>
#include <stdint.h>

#include "core/arena.h"
#include "core/object.h"
#include "core/report.h"
#include "proto/status.h"

/* A function with its clones (core/names.h): those of one name and file. */
struct never_row {
    const struct report_function *function; /* the largest of them */
    uint64_t bytes;                         /* of all of them that were not entered */
    uint32_t copies;                        /* how many these are */
    bool entered_elsewhere;                 /* another copy was entered: this one never was */
    bool inlined; /* other functions have copies of it, which count no calls: its code may have run. So it is if the
                     build's debug information says so, and if only a part of it (.part) is left of the function */
};

struct never_called {
    uint32_t count;
    struct never_row *rows; /* whole functions first; by bytes, largest first */
    uint32_t functions;     /* whole functions among the rows: neither entered elsewhere nor inlined */
    uint64_t bytes;         /* theirs */
    uint64_t copy_bytes;    /* of the other rows */
    bool knows_inlined;     /* the build's debug information was read */
    const char *named;      /* functions with names: "yes", "exported" if only those have any, "no" */
    uint32_t counted;       /* functions of the build that call a counter */
    uint32_t not_called;    /* report's not_called_count: each copy by itself, in all builds of it */
};

/* Of the report's build with this id (core/report.h: not_called). o: its object, or NULL. Only functions that call a
 * counter can be listed, and no start-up code. Everything lives in the arena. O(n log n). */
void never_called_make(struct arena *a, const struct report *r, const char *build_id, const struct object *o,
                       struct never_called *out);

#endif
