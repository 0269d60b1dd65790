/* One histogram in the making: dense where the bins pay for it, else a hash of the bins that are not zero. */
#ifndef PROFD_CORE_PROFILE_BINS_H
#define PROFD_CORE_PROFILE_BINS_H

#include <stdbool.h>
#include <stdint.h>

#include "core/arena.h"
#include "core/table.h"
#include "proto/counts.h"

struct profile_bins {
    uint32_t bins;   /* of the geometry */
    uint64_t *dense; /* ticks by bin, or NULL */
    uint32_t *index; /* else: bins in order of arrival, and their ticks */
    uint64_t *ticks;
    uint32_t used, capacity;
    struct table table;
    uint64_t seed;
};

/* Adds the non-zero bins of one histogram of an upload. O(used) expected. False when memory is exhausted. */
bool profile_bins_add(struct profile_bins *b, struct arena *a, const uint32_t *index, const uint64_t *ticks,
                      uint32_t used, bool *saturated);

/* The non-zero bins, ascending, in new arrays of the arena. O(bins) when dense, else O(used). */
bool profile_bins_finish(const struct profile_bins *b, struct arena *a, uint32_t **index, uint64_t **ticks,
                         uint32_t *used);

#endif
