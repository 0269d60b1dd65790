/* The stack of an interrupted thread: from its program counter to its outermost caller.
 *
 * The unwind information of the objects leads the way; what it says of a return address is kept in a small cache in
 * private memory. In code without it, the frame pointer is followed once, if it points into the stack and to a return
 * address behind a call instruction. */
#ifndef PROFD_COLLECT_STACK_H
#define PROFD_COLLECT_STACK_H

#include <stdbool.h>
#include <stdint.h>

/* Counts the stack of a signal's context weight times in the tree. Of the stack reads only [sp, high) and the red zone,
 * and nothing if sp is not in [low, high): on an alternate or borrowed stack the callers are unknown, and likewise
 * while a dlclose() is in progress. From the handler of ticks only. */
void stack_count(const void *context, uintptr_t low, uintptr_t high, uint64_t weight);

/* Where the thread is. */
uintptr_t stack_get_pc(const void *context);

/* Forgets what the unwind information says: objects were unloaded. No tick reads objects meanwhile
 * (unload_begin). O(cache). */
void stack_forget(void);

#endif
