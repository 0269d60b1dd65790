/* Which build a person means. */
#ifndef PROFD_CLIENT_PROFCTL_BUILD_H
#define PROFD_CLIENT_PROFCTL_BUILD_H

#include <stdbool.h>

#include "profctl/profctl.h"

/* The build-id or prefix for an argument: that of the file, if it contains '/' or exists; that of the program with this
 * name, as profctl builds prints it; that of the command with this name, which may be a link; otherwise the argument
 * itself, if it can be the beginning of a build-id.
 * AMBIGUOUS, with a list, if several builds have the name; NOT_FOUND if nothing stored is called so. id has 160 bytes.
 * Queries the daemon for its builds unless the argument is a file or too long for a name. */
enum profd_status build_find(const struct profctl_call *call, const char *argument, char id[160],
                             struct profd_error *e);

/* Is the file that build? */
bool build_is_file(const char *path, const char *id);

#endif
