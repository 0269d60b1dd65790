/* A store of a test's own: a SQLite database on a file system in memory, where there is one. store_close closes it, and
 * it is removed when the process ends. At most SCRATCH_STORES may be open at once. */
#ifndef PROFD_TESTS_SCRATCH_STORE_H
#define PROFD_TESTS_SCRATCH_STORE_H

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "store/store.h"

#define SCRATCH_STORES 16u
static char scratch_store_directory[64];

static inline void scratch_store_remove(unsigned i, char path[96])
{
    static const char *const suffixes[] = {"-wal", "-shm", ""};
    for (size_t k = 0; k < sizeof suffixes / sizeof suffixes[0]; k++) {
        snprintf(path, 96, "%s/%u.db%s", scratch_store_directory, i, suffixes[k]);
        unlink(path);
    }
}

static inline void scratch_store_remove_all(void)
{
    char path[96];
    for (unsigned i = 0; i < SCRATCH_STORES; i++) {
        scratch_store_remove(i, path);
    }
    rmdir(scratch_store_directory);
}

static inline enum profd_status scratch_store_open(struct store **out, struct profd_error *e)
{
    static unsigned opened;
    char path[96];
    if (opened == 0) {
        snprintf(scratch_store_directory, sizeof scratch_store_directory, "%s/profd-scratch-XXXXXX",
                 access("/dev/shm", W_OK) == 0 ? "/dev/shm" : "/tmp");
        if (!mkdtemp(scratch_store_directory) || atexit(scratch_store_remove_all) != 0) {
            return profd_error_set(e, PROFD_CANT_CREATE, "no folder for a test's database");
        }
    }
    scratch_store_remove(opened++ % SCRATCH_STORES, path);
    return store_sqlite_open_writer(path, out, e);
}

#endif
