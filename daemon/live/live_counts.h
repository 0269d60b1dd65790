/* What is counted of live processes. */
#ifndef PROFD_LIVE_COUNTS_H
#define PROFD_LIVE_COUNTS_H

#include <stddef.h>
#include <stdint.h>

#include "core/figures.h"

struct live_counts {
    /* since the start */
    uint64_t attached; /* ATTACH frames acknowledged */
    struct refusals attach_refused, harvests_refused;
    uint64_t harvests, relabelled; /* relabelled: some of them, as STORE_RELABELLED */
    uint64_t samples, calls;       /* of stored harvests */
    uint64_t ended, orphaned;
    struct durations seconds; /* from the beginning of a harvest to its being stored */
    /* now */
    size_t processes, silent, paused, kept; /* all; without a connection; told to pause; held by the service manager */
    size_t pending;                         /* harvests under way */
};

#endif
