/* A foreign profile becomes an upload: its frames get link-time addresses of builds. */
#ifndef PROFD_CLIENT_IMPORT_PLACE_H
#define PROFD_CLIENT_IMPORT_PLACE_H

#include "import/import_shelf.h"

/* What did not find its place, and what is uncertain: added up over profiles, for the closing words. */
struct import_notes {
    uint64_t ticks, outside_ticks; /* all, and those of no build: they are left out */
    uint64_t calls, outside_calls; /* all, and those with an end outside all builds */
    uint64_t ambiguous; /* functions with the same name that cannot be told apart: the first one got their counts */
    uint64_t nameless;  /* functions that are not in the symbol table of their object */
    uint64_t left_out;  /* processes that were all outside: of the kernel alone */
    void (*say)(void *context,
                const char *sentence); /* called for an object that is not available; NULL: not reported */
    void *context;
};

/* Makes the upload, with its window, dimension and reasons; the caller adds the labels. Ticks are in bins of one byte
 * over the code of their build. Counts of a build at no address of it make the upload inexact. An object that is not a
 * file, or that has no build-id and no file here, is outside all builds; strict: the second case refuses the profile.
 * REFUSED: the program is unknown, or there are no counts inside any build. WRONG_BUILD: the program's file has less
 * than half of the names and addresses of the profile, or none although its build-id is right. NO_INPUT and others: the
 * program's file cannot be read, as import_shelf_find. On failure nothing is made, but notes may have been added.
 * O(frames · log symbols + pairs). */
enum profd_status import_place_profile(struct import_shelf *shelf, const struct import_profile *p, bool strict,
                                       struct import_notes *notes, struct profd_upload **out, struct profd_error *e);

/* The object that is the program: said by the file, called so, or the one that main is in. IMPORT_NONE if all are
 * outside. */
uint32_t import_place_program(const struct import_profile *p);

#endif
