/* The stored encoding of rollups, for both directions. Private to core/rollup*.
 *
 * counts: format byte, raw size of the arcs' section, its packed size, raw size of the histograms' section; both
 * sections follow, each one zstd frame with a checksum. Numbers are LEB128 varints, columns those of rollup_columns.h.
 * arcs: flags (1: saturated) · arcs, runs of equal from_build, callees, runs of equal to_build among callees · the runs
 * (length, build + 1 or 0 for nowhere, first address) · callees, which ascend by (build, address): gaps of addresses ·
 * lowest commit · columns, a number for each arc: gap of from, position of its callee, commit above the lowest, zigzag
 * difference of ranks, calls. The first gap of a run is 0. histograms: how many, bins · heads (build, bins, low, span,
 * rate, dimension, abbreviation, used, commit, rank) · columns, a number for each bin: empty bins before it, ticks.
 * spread: format byte, raw size, one such frame: two columns for bins and arcs: mask of the groups that have a share;
 * then one column for the shares in order, bins first: of each row all but the last, which is what remains of the row's
 * number; all of them where that number is 2^63−1, from which nothing can be subtracted. */
#ifndef PROFD_CORE_ROLLUP_FORMAT_H
#define PROFD_CORE_ROLLUP_FORMAT_H

#include <stddef.h>
#include <stdint.h>

#include "proto/status.h"

#define ROLLUP_FORMAT 1
#define ROLLUP_FORMAT_SPREAD 2
#define ROLLUP_FORMAT_STACKS 3 /* counts with stacks */
#define ROLLUP_FORMAT_STACKS_SPREAD 4
#define ROLLUP_SATURATED 1u
#define ROLLUP_HEAD_MIN 10u /* encoded bytes of the smallest head of a histogram */
#define ROLLUP_HEAD_MAX 96u
#define ROLLUP_RUN_MAX 30u
#define ROLLUP_TREE_MAX 32u /* encoded bytes of the largest head of a tree */

/* A section compressed into a block of its own that the caller frees; skip bytes are left free in front of it.
 * TOO_LARGE, NO_MEMORY or OK. */
enum profd_status rollup_pack(const uint8_t *raw, size_t n, size_t skip, uint8_t **out, size_t *size,
                              struct profd_error *e);
/* A section of a stated size in a new block that the caller frees. DAMAGED, NO_MEMORY or OK. */
enum profd_status rollup_unpack(const uint8_t *in, size_t n, uint64_t size, uint8_t **out, struct profd_error *e);

#endif
