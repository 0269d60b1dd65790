/* Where a sum comes from: travels with every report. */
#ifndef PROFD_CORE_PROVENANCE_H
#define PROFD_CORE_PROVENANCE_H

#include <stddef.h>
#include <stdint.h>

#include "core/random_groups.h"

/* Times are nanoseconds since the epoch, UTC; 0 where nothing was found. */
struct provenance {
    uint64_t uploads;
    uint64_t processes; /* counted where a process's first upload lands (DECISIONS 7) */
    struct random_groups
        groups;           /* of these processes by random group: for comparisons with intervals, known of some or all */
    uint64_t hosts;       /* distinct machines, by machine-id */
    uint64_t host_labels; /* distinct values of the label "host"; uploads without it count for none */
    int64_t first, last;  /* start of the earliest window, end of the latest */
    uint32_t inexact;     /* OR of all uploads' message_inexact bits: 0 means exact */
    uint32_t inexact_all; /* AND of them: the reasons that every upload has */
    uint64_t unread;      /* processes that count and were not read yet since the daemon started; 0: none */
    int64_t unread_since; /* the earliest of their latest readings */
    uint64_t live;        /* processes that count and are read */
    int64_t as_of;        /* the latest of their latest readings: what was read until then is in the sum */
    uint64_t
        down_count;  /* times between first and last in which the daemon did not run: what began and ended then is */
    int64_t down_ns; /* not known; and their sum */
    uint32_t uid_count;
    const uint32_t *uids; /* ascending: the users with data in the sum */
};

#endif
