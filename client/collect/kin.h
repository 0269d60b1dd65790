/* A child that counts adds one to CHILDREN of its parent. If no daemon reads the child, this is the only sign that
 * counts are missing. A child that never counts adds nothing and may never be read; its own children then add
 * themselves to its parent, too. Raw system calls only. */
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
void kin_forget(void);

bool kin_tell_now(struct attach_header *child);

/* Called before anything is counted outside the stubs, so at the first call and the first tick of each process. Returns
 * true once in a child: the caller must look for a daemon, because a child that started without one may never tick. */
static inline bool kin_tell(struct attach_header *child)
{
    return __builtin_expect(__atomic_load_n(&kin_untold, __ATOMIC_RELAXED) != 0, 0) && kin_tell_now(child);
}

#endif
