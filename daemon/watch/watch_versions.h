/* The versions of watched programs, in the order in which they appeared. */
#ifndef PROFD_WATCH_WATCH_VERSIONS_H
#define PROFD_WATCH_WATCH_VERSIONS_H

#include <stdbool.h>
#include <stddef.h>

#include "core/arena.h"
#include "proto/status.h"
#include "render/document.h"

struct watch_version {
    /* What has versions: the base name of the program, if uploads of it state a version, because each version may
     * have a directory of its own; otherwise its path, because two programs of one name are not versions of each
     * other. */
    const char *group;
    const char *name; /* the label's value, or the build-id */
    const char *label, *build_id, *program;
    int64_t uploads;
};

/* The rows of /api/v1/versions, which has a program's rows one after another, by group, then by the time of the first
 * upload. The list is in the arena, and its texts live as long as rows does. O(n log n). */
enum profd_status watch_versions_read(const json_t *rows, struct arena *arena, struct watch_version **out,
                                      size_t *count, struct profd_error *e);

/* Is a version, of which a program's path, a name and a build-id were stored, one of the group? */
bool watch_versions_has(const char *group, const char *program, const char *name, const char *build_id);

#endif
