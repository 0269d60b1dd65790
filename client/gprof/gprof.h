/* profctl gprof: a local gprof, without a daemon. */
#ifndef PROFD_CLIENT_GPROF_H
#define PROFD_CLIENT_GPROF_H

#include <stddef.h>

/* What of a listing a terminal would obey is escaped. */
struct gprof_terminal {
    /* Writes to out, of 4 * (n + 4) bytes, what the terminal may get of n bytes of the listing; returns its size. n = 0
     * is the end of the listing. */
    size_t (*clean)(void *context, const void *bytes, size_t n, char *out);
    void *context;
};

/* Does what gprof does with these arguments and says what it says. program stands in front of complaints; argv[0] is
 * not looked at. terminal is NULL unless standard output is a terminal. Returns the exit status: gprof's 0 and 1,
 * sysexits' for what gprof would not refuse. */
int gprof_main(const char *program, int argc, char **argv, const struct gprof_terminal *terminal);

#endif
