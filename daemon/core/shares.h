/* The share of each build in counts. */
#ifndef PROFD_CORE_SHARES_H
#define PROFD_CORE_SHARES_H

#include <stdbool.h>
#include <stdint.h>

#include "proto/counts.h"

/* What counts say of each build: time spent in it, calls into it. */

struct share {
    uint64_t nanoseconds; /* Σ ticks / rate of its histograms of dimension seconds, each rounded down */
    uint64_t calls;       /* Σ calls of arcs into it */
};

/* Adds to shares[i] what is build i's. True if a sum stopped at 2^63−1. O(bins + arcs). */
bool share_add_counts(struct share *shares, const struct counts *c);

#endif
