/* Shares of counts: of each build, and of each random group of processes. */
#ifndef PROFD_CORE_SHARES_H
#define PROFD_CORE_SHARES_H

#include <stdbool.h>
#include <stdint.h>

#include "core/arena.h"
#include "core/profile.h"
#include "core/rollup.h"
#include "core/spread.h"
#include "proto/counts.h"
#include "proto/status.h"

/* What counts say of each build: time spent in it, calls into it. */

struct share {
    uint64_t nanoseconds; /* Σ ticks / rate of its histograms of dimension seconds, each rounded down */
    uint64_t calls;       /* Σ calls of arcs into it */
};

/* Adds to shares[i] what is build i's. True if a sum stopped at 2^63−1. O(bins + arcs). */
bool share_add_counts(struct share *shares, const struct counts *c);

/* The counts of a profile in 16 columns, one for each random group of processes (schema/spread.md). */

/* Row i, group g stands at [i·RANDOM_GROUPS + g]. The sum of a row is the number of the profile, unless that stopped at
 * 2^63−1 or counts without a known spread are among them. */
struct shares {
    const struct profile *profile;
    uint64_t *first; /* of each histogram: row of its first bin in ticks */
    uint64_t *ticks; /* of each used bin */
    uint64_t *calls; /* of each arc */
};

/* Shares of a finished profile, all zero, in the arena; the profile must outlive them. calls: NULL, or a spread's rows
 * of all arcs (shares_has_arcs), which become the shares' without being copied. O(rows). */
void shares_new(struct arena *a, const struct profile *p, uint64_t *calls, struct shares *out);

/* Returns whether a rollup has the arcs of the profile, in the same order. map and alone as in shares_add. O(arcs). */
bool shares_has_arcs(const struct profile *p, const struct counts *r, const uint32_t *map, bool alone);

/* Adds a rollup that is part of the profile, with its spread; spread NULL: all of it is the group's. map[i] is the
 * profile's number of build i; alone: as rollup_sum_add_mapped. Rows that the profile does not have are left out, and
 * so are arcs if the spread's rows of them are the shares' already. O(rows) where the orders
 * agree, else O(rows log rows). */
void shares_add(struct shares *s, const struct counts *r, const struct counts_shares *spread, uint32_t group,
                const uint32_t *map, bool alone);

#endif
