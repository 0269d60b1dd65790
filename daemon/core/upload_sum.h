/* Uploads of the same builds are added up by key, without sorting each one. Private to core/rollup.c. Memory is not
 * tested: the arena has a boundary. */
#ifndef PROFD_CORE_UPLOAD_SUM_H
#define PROFD_CORE_UPLOAD_SUM_H

#include "core/runs.h"

struct upload_sum;
struct upload_sum *upload_sum_new(struct arena *a);
/* Adds the histograms and arcs of an upload that is not sorted. commit: its number in order of acceptance. O(bins +
 * arcs) expected. */
void upload_sum_add(struct upload_sum *s, const struct counts *c, uint64_t commit);
/* Returns the sum as a run without shares; nothing can be added after that. O(n) for each byte in which keys differ. */
struct runs_run *upload_sum_finish(struct upload_sum *s, struct runs *runs);

#endif
