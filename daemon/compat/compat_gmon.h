/* gmon.out files read as gprof reads them: the same files are refused, in the same words. proto/gmon.h is the reader
 * that judges; this one takes what gprof takes: rate 0, no bins, no records at all, and the two BSD formats before
 * "gmon". */
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
    bool has_blocks;                                 /* a basic-block record that says something */
    /* of the last file: */
    uint32_t version; /* a BSD file leaves it as it was */
    uint32_t histograms, arcs, blocks;
    struct counts counts; /* of all files, in the arena; never counts_done */
    uint32_t histogram_capacity, bin_capacity, arc_capacity;
    /* of the first BSD file: */
    bool has_bsd;
    uint64_t bsd_low, bsd_high;
    uint32_t bsd_bytes, bsd_rate;
};

/* Nothing read yet. program is borrowed. */
void compat_gmon_init(struct compat_gmon *g, struct arena *a, const char *program, unsigned pointer);

/* Adds a file's records. MALFORMED or CONFLICT with what gprof says on stderr, line ends included where it ends lines;
 * TOO_LARGE and NO_MEMORY likewise in our words. After a failure g is good for nothing. O(bytes + records ×
 * histograms). */
enum profd_status compat_gmon_read(struct compat_gmon *g, const char *file, const uint8_t *in, size_t n,
                                   const char **complaint);

#endif
