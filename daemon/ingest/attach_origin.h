/* Which process on which machine: what a harvest is taken from, and what a snapshot remembers. */
#ifndef PROFD_INGEST_ATTACH_ORIGIN_H
#define PROFD_INGEST_ATTACH_ORIGIN_H

#include <stdint.h>

/* Identity of a process, by which a later daemon can tell whether it still lives. */
struct attach_origin {
    uint32_t pid;     /* as the daemon sees it; 0: unknown */
    uint64_t started; /* field 22 of /proc/PID/stat; 0: unknown */
    uint8_t boot[16]; /* boot_id of the machine */
    char host[33];    /* machine-id, or "" */
};

#endif
