/* Equations about the callers of a function: in each stored row, and each random group of a sum, how many calls came
 * from each caller, and how many seconds the function took. */
#ifndef PROFD_QUERY_CALLER_CELLS_H
#define PROFD_QUERY_CALLER_CELLS_H

#include <stdint.h>

#include "core/arena.h"
#include "core/caller_mix.h"
#include "core/profile.h"
#include "proto/status.h"
#include "query/job.h"
#include "query/work.h"

#define CALLER_CELLS_MOST 16384u /* further rows are added to equations that there are */

struct caller_cells {
    uint32_t count, callers;
    double *calls;   /* [equation · callers + caller] */
    double *seconds; /* of each equation */
};

/* Reads what work_load selected once more, hour by hour (day by day if there are more than LIMIT_STEPS), so that sums
 * over longer times are not used. mix: of w's loaded profile. Arrays live in the arena. O(rows · arcs). */
enum profd_status caller_cells_load(struct job *job, const struct work *w, const struct caller_mix *mix,
                                    struct caller_cells *out, struct profd_error *e);

#endif
