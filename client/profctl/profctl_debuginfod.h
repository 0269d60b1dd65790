/* Debug files of builds, from debuginfod servers. Only verbs that are asked to use this: the daemon has no network. */
#ifndef PROFD_CLIENT_PROFCTL_DEBUGINFOD_H
#define PROFD_CLIENT_PROFCTL_DEBUGINFOD_H

#include "profctl/profctl.h"
#include "proto/status.h"

#define DEBUGINFOD_SIZE_MAX (512ul << 20) /* bytes of a file */

enum debuginfod_kind { DEBUGINFOD_DEBUG, DEBUGINFOD_EXECUTABLE, DEBUGINFOD_SOURCE };

struct debuginfod_file {
    const char *url; /* servers, separated by spaces; NULL: those of DEBUGINFOD_URLS */
    const char *build_id;
    enum debuginfod_kind kind;
    const char *source; /* absolute path of a SOURCE, as DWARF has it */
    unsigned seconds;   /* the download takes at most these and one more */
};

/* Downloads a file of a build, or finds it in the user's cache of libdebuginfod. *path: the file in the cache, which
 * the caller frees (the string). USAGE: there is no server. NOT_FOUND: they do not have it. TIMEOUT, TOO_LARGE,
 * UNAVAILABLE: as the sentence says. The content is not checked. */
enum profd_status debuginfod_fetch(const struct debuginfod_file *file, char **path, struct profd_error *e);

/* The value of --timeout; 120 if it is not given. USAGE. */
enum profd_status debuginfod_read_timeout(const struct profctl_call *call, unsigned *seconds, struct profd_error *e);

#endif
