/* Options of gprof's listings. */
#ifndef PROFD_COMPAT_COMPAT_OPTIONS_H
#define PROFD_COMPAT_COMPAT_OPTIONS_H

#include <stdbool.h>
#include <stdint.h>

/* Purposes for which a symspec includes or excludes symbols. */
enum compat_purpose { COMPAT_FLAT, COMPAT_GRAPH, COMPAT_TIME, COMPAT_EXEC, COMPAT_ARCS, COMPAT_PURPOSES };

/* A symspec, "f", "file.c", "file.c:12", ":odd.name", and for arcs "S/S" (reference 1). Borrowed. */
struct compat_spec {
    enum compat_purpose purpose;
    bool exclude;
    const char *text;
};

#define COMPAT_STYLE_FLAT 1u
#define COMPAT_STYLE_GRAPH 2u
#define COMPAT_STYLE_COUNTS 4u
#define COMPAT_STYLE_OTHER 8u /* not a listing (-i, -s): no style is chosen by default */

/* What to print. Set all to zero and brief to true for the output of `gprof -b EXE GMON…`. */
struct compat_options {
    bool brief;                      /* -b: no explanations */
    bool no_flat, no_graph;          /* -P, -Q without a symspec */
    bool all_symbols;                /* -z */
    unsigned width;                  /* -w, of the index; 0 means 80 */
    bool no_counts;                  /* -Z without symspec */
    unsigned styles;                 /* COMPAT_STYLE_…; 0: chosen by the counts, without the styles in no_… */
    bool traditional;                /* -T: the layout of 4.2BSD */
    bool raw_names;                  /* --no-demangle */
    bool file_names;                 /* --inline-file-names */
    bool full_paths;                 /* -L */
    bool no_static;                  /* -a */
    bool only_functions;             /* -D */
    bool static_calls;               /* -c: requires the object's text */
    bool lines;                      /* -l, which -s implies: also an entry for each source line */
    bool follows;                    /* something was printed before, so the first listing begins on a new page, too */
    const struct compat_spec *specs; /* in the order given */
    uint32_t spec_count;
};

#endif
