/* Figures of the daemon's own work: how long things took, what was refused, when it did not run. */
#ifndef PROFD_CORE_FIGURES_H
#define PROFD_CORE_FIGURES_H

#include <stddef.h>
#include <stdint.h>

#include "proto/status.h"

/* How long things took: a histogram with the same bounds everywhere. */

#define DURATIONS_BOUNDS 12

struct durations {
    uint64_t buckets[DURATIONS_BOUNDS + 1]; /* not cumulative; the last is above every bound */
    uint64_t count;
    double sum; /* seconds */
};

/* Upper bounds in seconds, growing. */
extern const double durations_bounds[DURATIONS_BOUNDS];

void durations_add(struct durations *d, double seconds);

/* The times in which the daemon did not run. What processes counted then is found later. A process
 * that began and ended within such a time remains unknown. */

#define DOWNTIME_MAX 1024u

/* Ascending, in nanoseconds since the epoch. */
struct downtime {
    size_t count;
    struct downtime_gap {
        int64_t from, to;
    } gaps[DOWNTIME_MAX];
};

/* The number of gaps between first and last, in *count, and the sum of what of them lies between the two, in *ns. */
void downtime_measure(const struct downtime *d, int64_t first, int64_t last, uint64_t *count, int64_t *ns);

/* How often something was refused, by status. */

#define REFUSALS_STATUSES 64

struct refusals {
    uint64_t of[REFUSALS_STATUSES]; /* by enum profd_status; 0: one that is not known */
};

static inline void refusals_add(struct refusals *r, enum profd_status status)
{
    r->of[(unsigned)status < REFUSALS_STATUSES ? (unsigned)status : 0]++;
}

#endif
