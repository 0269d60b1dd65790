/* Rollups of one set of builds in the numbers of another. Private to core/rollup*. */
#ifndef PROFD_CORE_ROLLUP_MAP_H
#define PROFD_CORE_ROLLUP_MAP_H

#include <stdbool.h>
#include <stdint.h>

#include "core/profile.h"
#include "core/rollup_merge.h"
#include "proto/counts.h"

/* Where runs come from. Private to core/rollup*. NULL when memory is exhausted. */

/* True if two histograms of an upload have one geometry: such an upload cannot be sorted, only added up. */
bool rollup_run_repeats(const struct counts *c);
/* One upload, without repeated geometries, sorted; without spread. O(n) for each byte in which the keys differ. */
struct rollup_run *rollup_run_sort(struct rollup_runs *runs, const struct counts *c, uint64_t commit);
/* A finished profile; without spread. O(n). */
struct rollup_run *rollup_run_profile(struct rollup_runs *runs, const struct profile *p);
/* A copy with spread, all of it the group's. O(n). */
struct rollup_run *rollup_run_share(struct rollup_runs *runs, const struct rollup_run *from, uint32_t group);

struct rollup_map {
    const uint32_t *map;
    uint32_t builds;
    bool alone; /* builds without a number are left out, as rollup_sum_add_mapped says */
};

/* Pushes what the map makes of a rollup, without spread. */
void rollup_map_push(const struct rollup_map *m, struct rollup_runs *runs, struct rollup_stack *stack,
                     const struct counts *r);

#endif
