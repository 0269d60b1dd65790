/* ELF files of code that is in no file: the kernel, its modules. They contain a build-id and symbols, and no code. */
#ifndef PROFD_CLIENT_RECORD_SYNTHETIC_H
#define PROFD_CLIENT_RECORD_SYNTHETIC_H

#include <stdint.h>

#include "proto/buildid.h"

struct synthetic_symbol {
    uint64_t address, size;
    const char *name;
};

/* Makes the file in a sealed memory of that name: n functions, code at [0, size), and the note with that build-id.
 * *fd is closed by the caller. NO_MEMORY, IO. O(n). */
enum profd_status synthetic_make(const char *name, const struct buildid *id, uint64_t size,
                                 const struct synthetic_symbol *symbols, uint32_t n, int *fd, struct profd_error *e);

#endif
