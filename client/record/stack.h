/* A sample's call chain becomes frames of builds. */
#ifndef PROFD_CLIENT_RECORD_STACK_H
#define PROFD_CLIENT_RECORD_STACK_H

#include "proto/limits.h"
#include "record/process.h"

struct stack {
    struct counts_frame frames[LIMIT_STACK_DEPTH]; /* outermost first; the last is the program counter */
    uint32_t count;
};

/* Registers for the walk by unwind tables, as in attr.sample_regs_user. */
#if defined __x86_64__
#define STACK_REGISTERS (UINT64_C(1) << 6 | UINT64_C(1) << 7 | UINT64_C(1) << 8) /* BP, SP, IP */
#elif defined __aarch64__
#define STACK_REGISTERS (UINT64_C(15) << 29) /* X29, LR, SP, PC */
#else
#define STACK_REGISTERS 0 /* no unwind tables */
#endif

/* The user's part of a sample: of its chain or, if it has STACK_REGISTERS and a copy of the stack, by unwind tables.
 * Without any caller, with a caller that is in no executable memory, with as many frames as there is space for, or
 * where no table says how to go on, the stack begins with COUNTS_FRAME_INCOMPLETE: the outer frames are not known.
 * False: there is no user's part, as in a kernel thread. O(frames · log maps). */
bool stack_find_user(struct images *images, const struct process *p, const struct event *e, struct stack *out);

#endif
