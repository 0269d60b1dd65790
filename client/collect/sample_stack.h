/* Reads the position of a thread from the context of a signal. */
#ifndef PROFD_COLLECT_SAMPLE_STACK_H
#define PROFD_COLLECT_SAMPLE_STACK_H

#include <stdint.h>

uintptr_t sample_stack_pc(const void *context);

/* Counts caller → callee pairs up the stack, each once, weight times, as far as the unwind information of the objects
 * goes: never by a frame pointer that a function may not keep. Of the stack reads only [sp, high), and nothing if sp is
 * not in [low, high): on an alternate or borrowed stack. At most 64 frames. */
void sample_stack_pairs(const void *context, uintptr_t low, uintptr_t high, uint64_t weight);

#endif
