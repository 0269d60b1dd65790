/* gmon.out, gprof's file format, as glibc writes it. Pure: bytes to counts and back. Used by clients only. */
#ifndef PROFD_PROTO_GMON_H
#define PROFD_PROTO_GMON_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "proto/counts.h"

struct gmon_format {
    bool big_endian;       /* of the target */
    unsigned pointer_size; /* 4 or 8, by the class of the executable */
};

/* Parses a whole file of n bytes: header "gmon", version 0 or 1, then histogram, arc and (skipped) basic-block records.
 * All ends get build index 0. Nothing is added up: records are returned as they are, and histograms with equal geometry
 * stay separate. MALFORMED names the offset and the rule: bad magic, version, tag, truncation, more bins than the file
 * has, low ≥ high, no bins, rate 0. Uses at most 8 × n bytes. */
enum profd_status gmon_parse(const uint8_t *in, size_t n, const struct gmon_format *format, struct counts *c,
                             struct profd_error *e);

/* Writes a gmon.out into a new block (the caller frees it). Bins above 65,535 and arcs above 2^32−1 are carried
 * by repeated records, which every reader adds up. REFUSED if there is more than one build, or an address does not fit.
 */
enum profd_status gmon_format_file(const struct counts *c, const struct gmon_format *format, uint8_t **out,
                                   size_t *out_size, struct profd_error *e);

#endif
