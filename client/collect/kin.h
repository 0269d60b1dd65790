/* Children record in their parents' memory that they count. A child that no daemon reads has no other effect: CHILDREN
 * of the parent shows that counts are missing. A child that never counts records nothing, and may never be read; then
 * its own children record themselves in its parent, too. Raw system calls only. */
#ifndef PROFD_COLLECT_KIN_H
#define PROFD_COLLECT_KIN_H

#include <stdbool.h>
#include <stdint.h>

#include "proto/attach_memory.h"

/* Processes in which this child is not recorded yet. */
extern uint32_t kin_untold __attribute__((visibility("hidden")));

/* In a child of fork, while its parent's region is still mapped: keeps the first page of that region. */
void kin_begin_child(const struct attach_header *parent);

/* True if nothing is to be recorded: this process does not count, or its parent has recorded it. */
void kin_reset(void);

bool kin_tell_now(struct attach_header *child);

/* Call before anything is counted outside the stubs: at each process's first call and first tick. True once, in a
 * child: connect to a daemon now. A child that was created while no daemon ran may never have a tick. */
static inline bool kin_tell(struct attach_header *child)
{
    return __builtin_expect(__atomic_load_n(&kin_untold, __ATOMIC_RELAXED) != 0, 0) && kin_tell_now(child);
}

#endif
