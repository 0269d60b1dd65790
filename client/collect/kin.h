/* Children tell their parents that they count. A child that no daemon reads leaves no other trace: the parent's
 * CHILDREN shows that counts are missing. A child that never counts tells nothing, and may never be read: then its own
 * children tell its parent, too. Raw system calls only. */
#ifndef PROFD_COLLECT_KIN_H
#define PROFD_COLLECT_KIN_H

#include <stdbool.h>
#include <stdint.h>

#include "proto/attach.h"

/* Processes that do not know yet that this child counts. */
extern uint32_t kin_untold __attribute__((visibility("hidden")));

/* In a fork's child, while its parent's region is still mapped: keeps the first page of that. */
void kin_begin_child(const struct attach_header *parent);

/* Nothing is to be told: this process does not count, or its parent knows. */
void kin_reset(void);

bool kin_tell_now(struct attach_header *child);

/* Before anything is counted that the stubs do not count by themselves: each process's first call and first tick come
 * by here. True once, of a child: a daemon should be looked for. One that was born while there was none may never
 * tick. */
static inline bool kin_tell(struct attach_header *child)
{
    return __builtin_expect(__atomic_load_n(&kin_untold, __ATOMIC_RELAXED) != 0, 0) && kin_tell_now(child);
}

#endif
