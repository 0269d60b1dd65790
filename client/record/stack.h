/* A sample's call chain becomes frames of builds. */
#ifndef PROFD_CLIENT_RECORD_STACK_H
#define PROFD_CLIENT_RECORD_STACK_H

#include "proto/limits.h"
#include "record/kernel.h"
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

/* The frames of a sample: the user's, and above them those of the kernel: its functions, or one for all of it. The
 * user's are those of the chain, with the callers that it skips because functions at its end keep no frame pointer; or,
 * if the event has no chain of the user, those that the unwind tables find. Without any caller, with a caller that is
 * in no executable memory, with as many frames as the kernel records, or where a table is missing, the stack begins
 * with COUNTS_FRAME_INCOMPLETE: the outer frames are not known. False: there are no frames. O(frames · log maps). */
bool stack_find(struct images *images, const struct kernel *k, struct process *p, const struct event *e,
                struct stack *out);

#endif
