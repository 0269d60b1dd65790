/* Faults in the daemon's own system calls: a library that is preloaded into the real profd counts what it does to its
 * database and fails, tears, or kills at the chosen one. Shared with the campaign through a mapped file. */
#ifndef PROFD_TESTS_CRASH_FAULT_H
#define PROFD_TESTS_CRASH_FAULT_H

#include <stdatomic.h>
#include <stdint.h>

/* Kinds of operations, as bits. Names are those of the files they are done to. */
enum fault_kind {
    FAULT_WRITE = 1,     /* pwrite, write */
    FAULT_SYNC = 2,      /* fsync, fdatasync of a file */
    FAULT_TRUNCATE = 4,  /* ftruncate, fallocate */
    FAULT_NAME = 8,      /* unlink, rename */
    FAULT_DIRECTORY = 16 /* fsync of a directory */
};
#define FAULT_ALL 31u

enum fault_action {
    FAULT_NONE,
    FAULT_ONCE,      /* the chosen operation fails with the error */
    FAULT_ON,        /* it and all later ones, until the action is set back */
    FAULT_TEAR,      /* half of a write is done, then it and all later ones fail */
    FAULT_SHORT,     /* half of a write is done and said so */
    FAULT_INTERRUPT, /* EINTR once */
    FAULT_KILL,      /* SIGKILL instead of the operation */
    FAULT_KILL_TORN, /* SIGKILL after half of a write, after the whole of anything else */
    FAULT_LIE        /* syncs of the log say yes and do nothing */
};

struct fault {
    _Atomic uint32_t action, kinds, error; /* enum fault_action; bits of fault_kind; errno */
    _Atomic uint64_t at;                   /* number of the operation, from 1 */
    _Atomic uint64_t operations;           /* counted so far, of those kinds */
    _Atomic uint64_t hits;                 /* failed */
    _Atomic uint64_t after;                /* attempted after the first hit */
    char last[64];                         /* what was done to which file, of the first hit */
};

#endif
