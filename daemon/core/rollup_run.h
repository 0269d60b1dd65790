/* Where runs come from. Private to core/rollup*. NULL when memory is exhausted. */
#ifndef PROFD_CORE_ROLLUP_RUN_H
#define PROFD_CORE_ROLLUP_RUN_H

#include <stdbool.h>
#include <stdint.h>

#include "core/profile.h"
#include "core/rollup_merge.h"
#include "proto/counts.h"

/* True if two histograms of an upload have one geometry: such an upload cannot be sorted, only added up. */
bool rollup_run_repeats(const struct counts *c);
/* One upload, without repeated geometries, sorted; without spread. O(n) for each byte in which the keys differ. */
struct rollup_run *rollup_run_sort(struct rollup_runs *runs, const struct counts *c, uint64_t commit);
/* A finished profile; without spread. O(n). */
struct rollup_run *rollup_run_profile(struct rollup_runs *runs, const struct profile *p);
/* A copy with spread, all of it the group's. O(n). */
struct rollup_run *rollup_run_share(struct rollup_runs *runs, const struct rollup_run *from, uint32_t group);

#endif
