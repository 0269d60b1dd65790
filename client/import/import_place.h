/* Converts a profile of another tool to an upload: its frames get link-time addresses of builds. */
#ifndef PROFD_CLIENT_IMPORT_PLACE_H
#define PROFD_CLIENT_IMPORT_PLACE_H

#include "import/import_shelf.h"

/* Counts that could not be placed or are uncertain, added up over profiles for the final message. */
struct import_notes {
    uint64_t ticks, outside_ticks; /* all ticks, and those in no build, which are left out */
    uint64_t calls, outside_calls; /* all calls, and those with an end outside all builds */
    uint64_t ambiguous; /* functions that cannot be distinguished from others of the same name; the first one got their
                           counts */
    uint64_t nameless;  /* functions that are not in the symbol table of their object */
    uint64_t left_out;  /* processes that ran entirely outside all builds: in the kernel */
    void (*say)(void *context,
                const char *sentence); /* called for each object that is not available; NULL: not reported */
    void *context;
};

/* Creates the upload, with window, dimension and reasons; the caller adds labels and frees it. Ticks are in bins of one
 * byte over the code of their build. If counts of a build have no address in it, the upload is marked inexact. An
 * object that is not a file, or that has neither a build-id nor an available file, is outside all builds; if strict
 * is set, the second case refuses the profile. REFUSED: the program is unknown, or no counts are inside any build.
 * WRONG_BUILD: the program's file has less than half of the names and addresses of the profile, or none although its
 * build-id is right. NO_INPUT and others: the program's file cannot be read, as in import_shelf_find. If it fails,
 * nothing is created, but notes may have been changed. O(frames · log symbols + pairs). */
enum profd_status import_place_profile(struct import_shelf *shelf, const struct import_profile *p, bool strict,
                                       struct import_notes *notes, struct profd_upload **out, struct profd_error *e);

/* Returns the object that is the program: the one that the file names, the one with the program's name, or the one that
 * contains main. IMPORT_NONE if all are outside. */
uint32_t import_place_program(const struct import_profile *p);

#endif
