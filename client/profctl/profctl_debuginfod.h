/* Debug files of builds, from debuginfod servers. Only verbs that are asked to use this: the daemon has no network. */
#ifndef PROFD_CLIENT_PROFCTL_DEBUGINFOD_H
#define PROFD_CLIENT_PROFCTL_DEBUGINFOD_H

#include "proto/status.h"

#define DEBUGINFOD_SIZE_MAX (512ul << 20) /* bytes of a file */

/* Downloads the debug file of a build, or finds it in the user's cache of libdebuginfod. url: servers, separated by
 * spaces; NULL: those of DEBUGINFOD_URLS. *path: the file in the cache, which the caller frees (the string). Takes at
 * most `seconds` and a second. USAGE: there is no server. NOT_FOUND: they do not have it. TIMEOUT, TOO_LARGE,
 * UNAVAILABLE: as the sentence says. The content is not checked. */
enum profd_status debuginfod_fetch(const char *url, const char *build_id, unsigned seconds, char **path,
                                   struct profd_error *e);

#endif
