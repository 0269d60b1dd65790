/* Which build a person means. */
#ifndef PROFD_CLIENT_PROFCTL_BUILD_H
#define PROFD_CLIENT_PROFCTL_BUILD_H

#include "profctl/profctl.h"

/* The build-id or prefix for an argument: that of the file, if it contains '/' or exists; that of the program with this
 * name, as profctl builds prints it, if it cannot be a prefix. AMBIGUOUS, with a list, if several builds have the name.
 * Any other argument is copied to id, and the daemon reports what is wrong with it. id has 160 bytes. Queries the
 * daemon for its builds only to look up a name. */
enum profd_status build_find(const struct profctl_call *call, const char *argument, char id[160],
                             struct profd_error *e);

#endif
