/* Reads gmon.out files as gprof does, and refuses the same files with the same messages. proto/gmon.h validates; this
 * reader accepts everything that gprof accepts: rate 0, no bins, no records, and the two BSD formats without the magic
 * number "gmon". */
#ifndef PROFD_COMPAT_COMPAT_GMON_H
#define PROFD_COMPAT_COMPAT_GMON_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/arena.h"
#include "proto/counts.h"
#include "proto/status.h"

struct compat_gmon {
    struct arena *arena;
    const char *program;                             /* in front of complaints */
    unsigned pointer;                                /* bytes, 4 or 8, by the class of the executable; little-endian */
    bool has_histogram, has_arcs, has_block_records; /* such a record was read from any file */
    bool has_blocks;                                 /* a basic-block record that is not empty */
    /* of the last file: */
    uint32_t version; /* a BSD file does not change it */
    uint32_t histograms, arcs, blocks;
    struct counts counts; /* counts of all files, in the arena; never pass them to counts_done */
    uint32_t histogram_capacity, bin_capacity, arc_capacity;
    /* of the first BSD file: */
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
