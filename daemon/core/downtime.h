/* The times in which the daemon did not run. What processes counted then is found later, unless a process began and
 * ended within such a time: nothing knows of it. */
#ifndef PROFD_CORE_DOWNTIME_H
#define PROFD_CORE_DOWNTIME_H

#include <stddef.h>
#include <stdint.h>

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

#endif
