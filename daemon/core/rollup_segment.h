/* Sums as what travels in segments (proto/segment.h), and back. */
#ifndef PROFD_CORE_ROLLUP_SEGMENT_H
#define PROFD_CORE_ROLLUP_SEGMENT_H

#include "core/rollup.h"
#include "proto/segment.h"

/* The rows of a sum and its shares. Arrays live in the arena or are those of the sum. Times of first arrival become
 * ranks, so that equal sums become equal segments. Sets s->counts, and s->saturated if the sum stopped. NO_MEMORY,
 * TOO_LARGE or OK. O(rows). */
enum profd_status rollup_make_segment(const struct counts *r, const struct counts_shares *spread, struct arena *a,
                                      struct segment *s, struct profd_error *e);

/* The sum that a segment's rows are, as if they had arrived in their order, the first of them at this time. Arrays live
 * in the arena or are those of the segment, which has been checked. spread may be NULL: not wanted. NO_MEMORY or OK.
 * O(rows). */
enum profd_status rollup_from_segment(const struct segment *s, const struct counts_order *at, struct arena *a,
                                      struct counts *r, struct counts_shares *spread, struct profd_error *e);

#endif
