/* From a function to its caller, by the unwind information of the object, not by frame pointers: code that keeps none
 * has anything in that register. */
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

/* What the unwinder follows of a thread's registers. */
struct unwind_frame {
    uintptr_t pc, sp, fp;
    uintptr_t link; /* the register that holds the return address; 0 on machines without one */
    uintptr_t left; /* of a step: where the function begins that was left */
};

/* Steps to the caller. called: pc is a return address, so the call in front of it says where the function was. Reads
 * the stack in [sp, high) only. False, and *frame untouched: the object says nothing about that pc, or something that
 * is not understood here, or this is the outermost function. O(log functions + length of the entry). Allowed in signal
 * handlers. */
bool unwind_step(const struct unwind_place *in, struct unwind_frame *frame, uintptr_t high, bool called);

#endif
