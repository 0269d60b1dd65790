/* Steps from a function to its caller by the unwind information of the object. Frame pointers are not used: in code
 * without them that register contains other values. */
#ifndef PROFD_COLLECT_UNWIND_H
#define PROFD_COLLECT_UNWIND_H

#include <stdbool.h>
#include <stdint.h>

#include "client/collect/frame_entry.h"

/* An object's unwind information as mapped; table 0: it has none. */
struct unwind_place {
    uintptr_t table;          /* its .eh_frame_hdr */
    struct frame_bytes bytes; /* of the segment with the table and .eh_frame */
};

/* The registers of a thread that the unwinder tracks. */
struct unwind_frame {
    uintptr_t pc, sp, fp;
    uintptr_t link; /* the register with the return address; 0 on machines without one */
    uintptr_t left; /* of a step: beginning of the function that was left */
};

/* Steps to the caller. called: pc is a return address, so the function is that of the preceding call instruction. Reads
 * the stack in [sp, high) only. False, and *frame is unchanged: the object has no information for this pc, or none that
 * is supported, or this is the outermost function. O(log functions + length of the entry). Allowed in signal handlers.
 */
bool unwind_step(const struct unwind_place *in, struct unwind_frame *frame, uintptr_t high, bool called);

#endif
