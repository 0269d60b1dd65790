/* gprof's own arithmetic and listings, byte for byte (GNU gprof 2.40 on Debian 12). True mode lives in core/. */
#ifndef PROFD_COMPAT_COMPAT_H
#define PROFD_COMPAT_COMPAT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/arena.h"
#include "core/buffer.h"
#include "core/object.h"
#include "proto/counts.h"
#include "proto/status.h"

/* Purposes for which a symspec includes or excludes symbols. */
enum compat_purpose { COMPAT_FLAT, COMPAT_GRAPH, COMPAT_TIME, COMPAT_EXEC, COMPAT_ARCS, COMPAT_PURPOSES };

/* A symspec, "f", "file.c", "file.c:12", ":odd.name", and for arcs "S/S". Borrowed. */
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

/* Prints the requested styles, or those that gprof chooses if none is requested: flat if there is a histogram, graph
 * and index if there are arcs, counts if there is neither. counts has the records of all files of one build in the
 * order read; rates are not compared, the first one is used. Histograms of the same geometry are added up, disjoint
 * ones are kept; otherwise CONFLICT, with gprof's message. REFUSED: the object has no .text or no .symtab symbols, or a
 * style requires counts that are missing. TOO_LARGE: the limit of the buffer was reached; the buffer then has its
 * previous size. compat_run.h has the single steps. O(n (log n + specs) + arcs). */
enum profd_status compat_print(const struct compat_options *options, const struct object *object,
                               const struct counts *counts, struct arena *a, struct buffer *out, struct profd_error *e);

/* Reads gmon.out files as gprof does, and refuses the same files with the same messages. proto/gmon.h validates; this
 * reader accepts everything that gprof accepts: rate 0, no bins, no records, and the two BSD formats without the magic
 * number "gmon". */

struct compat_gmon {
    struct arena *arena;
    const char *program;                             /* in front of complaints */
    unsigned pointer;                                /* bytes, 4 or 8, by the class of the executable; little-endian */
    bool has_histogram, has_arcs, has_block_records; /* such a record was read from any file */
    bool has_blocks;                                 /* a basic-block record that is not empty */
    /* Of the last file: */
    uint32_t version; /* a BSD file does not change it */
    uint32_t histograms, arcs, blocks;
    struct counts counts; /* counts of all files, in the arena; never pass them to counts_done */
    uint32_t histogram_capacity, bin_capacity, arc_capacity;
    /* Of the first BSD file: */
    bool has_bsd;
    uint64_t bsd_low, bsd_high;
    uint32_t bsd_bytes, bsd_rate;
};

/* Initialises g. program is borrowed. */
void compat_gmon_init(struct compat_gmon *g, struct arena *a, const char *program, unsigned pointer);

/* Adds the records of a file. MALFORMED or CONFLICT: the sentence is what gprof prints on stderr, with line ends if
 * gprof has them. TOO_LARGE and NO_MEMORY: the sentence is our own. After a failure g must not be used. O(bytes +
 * records × histograms). */
enum profd_status compat_gmon_read(struct compat_gmon *g, const char *file, const uint8_t *in, size_t n,
                                   const char **complaint);

#endif
