/* Executables and libraries of imported profiles: opened once, kept until the last upload has been sent. */
#ifndef PROFD_CLIENT_IMPORT_SHELF_H
#define PROFD_CLIENT_IMPORT_SHELF_H

#include "import/import_binary.h"
#include "import/import_profile.h"

struct import_shelf {
    const char *root;               /* prefix of every path; NULL or "": none */
    const char *const *executables; /* locations of executables that are not at their paths, or have changed there */
    size_t executable_count;
    void (*found)(void *context,
                  const struct profd_executable *x); /* called once for each; x lives as long as the shelf */
    void *context;
    struct import_shelved *list;
    size_t count, capacity;
};

void import_shelf_done(struct import_shelf *s);

/* Finds the binary of an object. First, one of the given executables with its build-id or file name. The first given
 * executable that matches no object of the profile by name is the program, unless the profile is one of several
 * processes. Otherwise, the file at its path. time: the profile's end, 0 if unknown. NO_INPUT: no such file.
 * WRONG_BUILD: it has another build-id, or, if no build-id is stated, it was written after the profile. Other statuses
 * as profd_executable_open. */
enum profd_status import_shelf_find(struct import_shelf *s, const struct import_profile *p,
                                    const struct import_object *o, bool is_program, const struct import_binary **out,
                                    struct profd_error *e);

/* Returns the part after the last slash. */
const char *import_shelf_base(const char *path);

#endif
