/* Source text, found on this machine and compared with what the compiler read. */
#ifndef PROFD_CLIENT_ANNOTATE_SOURCE_H
#define PROFD_CLIENT_ANNOTATE_SOURCE_H

#include <stddef.h>

#include "proto/status.h"

/* lines NULL: there is no text, and note says why. A note may also stand beside text. */
struct source {
    char *text, **lines; /* lines[0] is line 1 */
    size_t count;
    char note[400];
};

/* Where sources may be: an executable with DWARF, and directories of --source-path, tried in order before the path that
 * the compiler was given. */
struct source_finder {
    const char *executable;
    const char *const *folders;
    size_t folder_count;
    /* Downloads a file that is not here and returns its path, which the finder frees; NULL: it cannot. May be NULL. */
    char *(*fetch)(void *context, const char *name);
    void *context; /* its */
};

/* The text of a file as DWARF names it. A folder is tried with the whole name, then with its ends, the longest first. A
 * file that differs from the MD5 of DWARF 5 is not taken; where there is no MD5, one that is newer than the executable
 * gets a note. NO_MEMORY; any other failure is a note. */
enum profd_status source_find(const struct source_finder *f, const char *name, struct source *out,
                              struct profd_error *e);
void source_done(struct source *s);

#endif
