/* Functions of generated code: programs that compile while they run write their addresses to /tmp/perf-PID.map, a line
 * "start size name" each, hexadecimal. The functions that samples found are a build of their own for each process: the
 * addresses in it are numbers that they get in the order of their first samples. */
#ifndef PROFD_CLIENT_RECORD_JIT_H
#define PROFD_CLIENT_RECORD_JIT_H

#include "proto/counts_stacks.h"
#include "proto/limits.h"
#include "record/image.h"

struct jit; /* of one process */

/* The process that generated the code. */
struct jit_owner {
    uint32_t pid, uid;
    uint8_t key[LIMIT_PROCESS];
};

/* Sets build and address of the frame at an address of generated code. False: no function is known there. *j is NULL at
 * the first call. Reads the file again, from where it ended before, if the address is not known and the previous
 * reading was long before time, in ns. The file must be a regular one of the process's user, in the process's root
 * directory and under its number there; of a file that is too large, what comes late is not known. O(log functions),
 * without reading. */
bool jit_find(struct jit **j, struct images *images, const struct jit_owner *owner, uint64_t time, uint64_t address,
              struct counts_frame *out);
/* Gives the build the functions that were found; its id depends on them and on the process. O(functions). */
enum profd_status jit_finish(struct jit *j, struct images *images, const struct jit_owner *owner,
                             struct profd_error *e);
/* Accepts NULL. */
void jit_free(struct jit *j);

#endif
