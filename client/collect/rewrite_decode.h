/* Lengths of x86-64 instructions, as far as functions have them before they call mcount. */
#ifndef PROFD_COLLECT_REWRITE_DECODE_H
#define PROFD_COLLECT_REWRITE_DECODE_H

#include <stdint.h>

/* Bytes of the instruction at code, which ends before end. 0: it leaves the line (call, jump, return, trap, system
 * call), is not known here, or does not end in time. Conditional jumps do not leave the line. Reads nothing at end or
 * beyond. O(1). */
unsigned rewrite_decode_length(const uint8_t *code, const uint8_t *end);

#endif
