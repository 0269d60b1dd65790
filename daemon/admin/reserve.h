/* Disk space reserved for removals: a file of allocated blocks beside the database. A removal writes before it frees:
 * the write-ahead log, and the pages of the rows that change. On a full disk the file is truncated, so that the removal
 * can use its blocks. */
#ifndef PROFD_ADMIN_RESERVE_H
#define PROFD_ADMIN_RESERVE_H

#include <stdbool.h>
#include <stdint.h>

#include "proto/status.h"

/* One full write-ahead log (16 MiB, SQLITE_WAL_FRAMES) and as much again for the pages of a delete; on a small disk an
 * eighth of it. */
#define RESERVE_BYTES (UINT64_C(32) << 20)
#define RESERVE_PART 8u

enum reserve_state {
    RESERVE_MISSING, /* it cannot be made here, for another reason than space: the sentence says why */
    RESERVE_HELD,
    RESERVE_GIVEN_UP, /* there is no space for it now */
};

struct reserve {
    char path[4096];
    enum reserve_state state;
    uint64_t bytes;         /* held */
    struct profd_error why; /* of the latest attempt that failed */
};

/* Looks for the reserve of an earlier process in the directory; nothing is allocated. TOO_LARGE: the path. */
enum profd_status reserve_open(struct reserve *r, const char *directory, struct profd_error *e);
/* Creates or extends the reserve if the file system has space for it and a quarter more. Blocks are really allocated
 * (posix_fallocate): if the file system only promises them, because of compression or sparse files, the reserve is
 * MISSING. Cheap if the reserve is held or there is no space. */
void reserve_take(struct reserve *r);
/* Returns the blocks to the file system. False if there were none. */
bool reserve_give_up(struct reserve *r);
/* Free bytes of the reserve's file system, and its size. False if they cannot be determined. */
bool reserve_measure(const struct reserve *r, uint64_t *available, uint64_t *size);
/* "held", "given-up", "missing". */
const char *reserve_name(enum reserve_state state);

#endif
