/* A sample's call chain becomes frames of builds. */
#ifndef PROFD_CLIENT_RECORD_STACK_H
#define PROFD_CLIENT_RECORD_STACK_H

#include "proto/limits.h"
#include "record/process.h"

struct stack {
    struct counts_frame frames[LIMIT_STACK_DEPTH]; /* outermost first; the last is the program counter */
    uint32_t count;
};

/* The user's part of a sample's chain. Without any caller, with a caller that is in no executable memory, or with as
 * many frames as the kernel records, the stack begins with COUNTS_FRAME_INCOMPLETE: the outer frames are not known.
 * False: there is no user's part, as in a kernel thread. O(frames · log maps). */
bool stack_find_user(struct images *images, const struct process *p, const struct event *e, struct stack *out);

#endif
