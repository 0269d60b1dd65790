/* What a user of gprof's listings may choose. */
#ifndef PROFD_COMPAT_COMPAT_OPTIONS_H
#define PROFD_COMPAT_COMPAT_OPTIONS_H

#include <stdbool.h>

/* What to print. Zero it and set brief for what `gprof -b EXE GMON…` prints. */
struct compat_options {
    bool brief;           /* -b: no explanations */
    bool no_flat, no_graph; /* -P, -Q without symspec: bare negative styles */
    bool all_symbols;     /* -z */
    unsigned width;       /* -w, of the index; 0 means 80 */
};

#endif
