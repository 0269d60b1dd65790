/* Rollups of one set of builds in the numbers of another. Private to core/rollup*. */
#ifndef PROFD_CORE_ROLLUP_MAP_H
#define PROFD_CORE_ROLLUP_MAP_H

#include <stdbool.h>
#include <stdint.h>

#include "core/rollup_merge.h"

struct rollup_map {
    const uint32_t *map;
    uint32_t builds;
    bool alone; /* builds without a number are left out, as rollup_sum_add_mapped says */
};

/* Pushes what the map makes of a rollup, without spread. False when memory is exhausted. */
bool rollup_map_push(const struct rollup_map *m, struct rollup_runs *runs, struct rollup_stack *stack,
                     const struct rollup *r);

#endif
