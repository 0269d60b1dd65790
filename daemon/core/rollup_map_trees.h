/* Trees of stacks of one set of builds in the numbers of another. Private to core/rollup*. */
#ifndef PROFD_CORE_ROLLUP_MAP_TREES_H
#define PROFD_CORE_ROLLUP_MAP_TREES_H

#include "core/rollup_merge.h"

/* A run with the trees of r alone, mapped, sorted and added up where frames became the same. alone: the ticks of whole
 * stacks that end in a build that stays are kept, and their frames in other builds become COUNTS_FRAME_OUTSIDE. False
 * when memory is exhausted. O(nodes·log nodes). */
bool rollup_map_trees(const uint32_t *map, bool alone, struct rollup_runs *runs, const struct rollup *r,
                      struct rollup_run **out);

#endif
