/* A profile: the sum of many uploads' histograms, arcs and stacks, in link-time addresses of builds. */
#ifndef PROFD_CORE_PROFILE_H
#define PROFD_CORE_PROFILE_H

#include <stdint.h>

#include "proto/counts.h"

struct profile {
    uint32_t build_count;
    const char *const *builds; /* build-id texts, in the order they were introduced */
    const struct counts_order
        *build_orders;    /* commit and place in it of the upload that brought each first: the load order, whatever the
                           * order of introduction. {UINT64_MAX, …}: none is known; NULL: of none */
    struct counts counts; /* sorted, in numbers of these builds; saturated: a number that is here stopped at 2^63−1 */
    struct counts_shares shares; /* by random group of processes; NULL: not asked for */
    uint64_t ticks, calls; /* totals, of all dimensions; the collector's counters (proto/collector.h) are no ticks */
};

#endif
