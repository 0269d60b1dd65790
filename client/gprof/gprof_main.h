/* profctl gprof: a local gprof, without a daemon. */
#ifndef PROFD_CLIENT_GPROF_MAIN_H
#define PROFD_CLIENT_GPROF_MAIN_H

#include <stddef.h>

/* Escapes the parts of a listing that a terminal would obey. */
struct gprof_terminal {
    /* Writes n bytes of the listing, escaped, to out, which has 4 * (n + 4) bytes; returns their number. n = 0 ends the
     * listing. */
    size_t (*clean)(void *context, const void *bytes, size_t n, char *out);
    void *context;
};

/* Does what gprof does with these arguments, with the same output and complaints. program is the prefix of complaints;
 * argv[0] is ignored. terminal is NULL unless standard output is a terminal. Returns the exit status: gprof's 0 and 1,
 * or one of sysexits for a failure that gprof does not have. */
int gprof_main(const char *program, int argc, char **argv, const struct gprof_terminal *terminal);

#endif
