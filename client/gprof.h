/* profctl gprof: a local gprof, without a daemon. */
#ifndef PROFD_CLIENT_GPROF_H
#define PROFD_CLIENT_GPROF_H

/* Does what gprof does with these arguments and says what it says. program stands in front of complaints; argv[0] is
 * not looked at. Returns the exit status: gprof's 0 and 1, sysexits' for what gprof would not refuse. */
int gprof_main(const char *program, int argc, char **argv);

#endif
