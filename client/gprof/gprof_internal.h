/* The command line. Private to client/gprof. */
#ifndef PROFD_CLIENT_GPROF_INTERNAL_H
#define PROFD_CLIENT_GPROF_INTERNAL_H

#include <stdbool.h>

#include "compat/compat.h"

struct gprof_options {
    struct compat_options listing;
    bool info, sum, debug;  /* -i, -s, -d */
    bool no_rust, no_cxx;   /* --demangle=STYLE */
    const char *executable; /* a.out */
    char **files;           /* profiles; at least one */
    int file_count;
    struct compat_spec *specs; /* owned */
};

/* Parses the arguments, which are permuted and borrowed. False: stop with exit status *status; the complaint, the help
 * or the version was printed. */
bool gprof_options_parse(const char *program, int argc, char **argv, struct gprof_options *out, int *status);
void gprof_options_done(struct gprof_options *o);

#endif
