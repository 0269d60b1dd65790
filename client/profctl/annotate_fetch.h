/* What annotate reads and this machine does not have: downloads from debuginfod servers. */
#ifndef PROFD_CLIENT_ANNOTATE_FETCH_H
#define PROFD_CLIENT_ANNOTATE_FETCH_H

#include <stdbool.h>
#include <time.h>

#include "proto/status.h"

struct annotate_fetch {
    const char *url; /* NULL: the servers of DEBUGINFOD_URLS */
    const char *build_id;
    unsigned seconds;   /* for one file, and for all sources together */
    time_t sources_end; /* of the monotonic clock; 0: none was asked for */
    bool silent;        /* no more sources are asked for */
};

/* The executable of the build. The caller frees *path, a file in the cache of libdebuginfod. TOO_LARGE: its compressed
 * sections have more than 2 GiB. */
enum profd_status annotate_fetch_executable(const struct annotate_fetch *f, char **path, struct profd_error *e);
/* An executable without lines, joined with its debug file. *path NULL: it has lines, or the servers have no debug file,
 * which is said. The caller removes the file and frees the string. Starts eu-unstrip of elfutils. */
enum profd_status annotate_fetch_lines(const struct annotate_fetch *f, const char *executable, char **path,
                                       struct profd_error *e);
/* For struct source_finder; context: a struct annotate_fetch. When the servers did not answer once, or the time for
 * sources is over, none is asked for any more: a function may have lines of thousands of files. */
char *annotate_fetch_source(void *context, const char *name);

#endif
