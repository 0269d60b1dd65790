/* The executables and libraries that imported profiles speak of: found once, kept until the last upload has gone. */
#ifndef PROFD_CLIENT_IMPORT_SHELF_H
#define PROFD_CLIENT_IMPORT_SHELF_H

#include "import/import_binary.h"
#include "import/import_profile.h"

struct import_shelf {
    const char *root;               /* stands in front of every path; NULL or "": nothing */
    const char *const *executables; /* where executables are that are not at their paths, or have changed there */
    size_t executable_count;
    void (*found)(void *context,
                  const struct profd_executable *x); /* called for each once; x lives as long as the shelf */
    void *context;
    struct import_shelved *list;
    size_t count, capacity;
};

void import_shelf_done(struct import_shelf *s);

/* The binary of an object: one of the executables given, by its build-id or file name; of those that belong to no
 * object of the profile by name, the first one is the program, unless the profile is one of several processes; else the
 * file at its path. time: the profile's end, 0 if unknown. NO_INPUT: no such file; WRONG_BUILD: it has another
 * build-id, or, where none is stated, it was written after the profile; or as profd_executable_open. */
enum profd_status import_shelf_find(struct import_shelf *s, const struct import_profile *p,
                                    const struct import_object *o, bool is_program, const struct import_binary **out,
                                    struct profd_error *e);

/* What stands behind the last slash. */
const char *import_shelf_base(const char *path);

#endif
