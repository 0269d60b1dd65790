/* Where a sum comes from: travels with every report. */
#ifndef PROFD_CORE_PROVENANCE_H
#define PROFD_CORE_PROVENANCE_H

#include <stddef.h>
#include <stdint.h>

/* Times are nanoseconds since the epoch, UTC; 0 where nothing was found. */
struct provenance {
    uint64_t uploads;
    uint64_t processes;  /* counted where a process's first upload lands (DECISIONS 7) */
    uint64_t hosts;      /* distinct */
    int64_t first, last; /* start of the earliest window, end of the latest */
    uint32_t inexact;    /* OR of all uploads' message_inexact bits: 0 means exact */
    uint32_t uid_count;
    const uint32_t *uids; /* ascending: whose data is in the sum */
};

#endif
