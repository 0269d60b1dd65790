/* How long things took: a histogram with the same bounds everywhere. */
#ifndef PROFD_CORE_DURATIONS_H
#define PROFD_CORE_DURATIONS_H

#include <stdint.h>

#define DURATIONS_BOUNDS 12

struct durations {
    uint64_t buckets[DURATIONS_BOUNDS + 1]; /* not cumulative; the last is above every bound */
    uint64_t count;
    double sum; /* seconds */
};

/* Upper bounds in seconds, growing. */
extern const double durations_bounds[DURATIONS_BOUNDS];

void durations_add(struct durations *d, double seconds);

#endif
