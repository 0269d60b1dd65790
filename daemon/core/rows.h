/* Rows of lists that are not reports. */
#ifndef PROFD_CORE_ROWS_H
#define PROFD_CORE_ROWS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "proto/buildid.h"

/* One build as lists show it; strings belong to whoever made the row. Times: ns since the epoch, UTC. */
struct build_row {
    struct buildid build_id;
    const char *name;      /* as first delivered */
    bool is_program;       /* was ever a process's main executable */
    int64_t first_seen, last_seen;
    uint64_t uploads, processes;
    uint64_t nanoseconds;  /* Σ ticks/rate of its own histograms */
    uint64_t calls;        /* Σ calls into it */
    uint32_t inexact;      /* message_inexact bits, 0 = exact */
    bool has_names;
    const char *note;      /* sentence of the object worker, "" if none */
};

/* A label pair seen with a build. */
struct label_row {
    const char *name, *value;
    uint64_t uploads;
};

/* Uploads that have the same values of some labels, within a step of time if there are steps. */
struct group_row {
    const char *const *values; /* one per label asked for; an absent label is "" */
    int64_t time, width;       /* ns: start and length of the step; width 0: there are none */
    uint64_t uploads, processes, hosts;
    double seconds;            /* Σ ticks/rate, as in a report's totals */
    uint64_t calls;
    int64_t first, last;
    uint32_t inexact;
};

#endif
