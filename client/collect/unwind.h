/* Steps from a function to its caller by the unwind information of the object. */
#ifndef PROFD_COLLECT_UNWIND_H
#define PROFD_COLLECT_UNWIND_H

#include <stdbool.h>
#include <stdint.h>

#include "client/collect/frame_entry.h"

/* An object's unwind information as mapped; table 0: it has none. */
struct unwind_info {
    uintptr_t table;          /* its .eh_frame_hdr */
    struct frame_bytes bytes; /* of the segment with the table and .eh_frame */
};

/* The registers of a thread that the unwinder tracks. */
struct unwind_frame {
    uintptr_t pc, sp, fp;
    uintptr_t link;  /* the register with the return address; 0 on machines without one */
    uintptr_t floor; /* the lowest byte of its stack that holds: sp, or below it a red zone */
};

/* How the caller's registers are found from those of a function at one of its instructions. */
struct unwind_rule {
    uintptr_t begin; /* of the function */
    int32_t cfa_offset, fp_offset, link_offset;
    uint8_t cfa;      /* enum unwind_base: the base of the CFA, the caller's stack pointer */
    uint8_t fp, link; /* enum unwind_location */
    bool replaces;    /* as in struct cfi_row */
};
enum unwind_base { UNWIND_SP, UNWIND_FP, UNWIND_LOADED /* the CFA is in memory, at fp + cfa_offset */ };
enum unwind_location {
    UNWIND_SAME,      /* still in the register */
    UNWIND_AT,        /* in memory, offset bytes from the CFA */
    UNWIND_AT_FP,     /* in memory, offset bytes from fp */
    UNWIND_LOST,      /* not available, or not supported here */
    UNWIND_OUTERMOST, /* of the return address: there is no caller */
};

/* Finds the rule for pc in the object's unwind information; *absent: it has nothing about this code. False also where
 * the information is not supported, as of signal frames. called: pc is a return address, so the function is that of the
 * preceding call instruction. O(log functions + length of the entry). Allowed in signal handlers. */
bool unwind_find(const struct unwind_info *in, uintptr_t pc, bool called, struct unwind_rule *out, bool *absent);

enum unwind_step {
    UNWIND_STEPPED,
    UNWIND_END,   /* the frame is the outermost one */
    UNWIND_STUCK, /* the rule does not hold here */
};
/* Steps to the caller. Reads the stack in [floor, high) only. *frame is unchanged unless STEPPED. O(1). */
enum unwind_step unwind_apply(const struct unwind_rule *rule, struct unwind_frame *frame, uintptr_t high, bool called);

#endif
