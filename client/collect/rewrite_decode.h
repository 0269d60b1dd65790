/* Lengths of those x86-64 instructions that compilers emit before a call of mcount. */
#ifndef PROFD_COLLECT_REWRITE_DECODE_H
#define PROFD_COLLECT_REWRITE_DECODE_H

#include <stdint.h>

/* Returns the length of the instruction at code, which ends before end. 0: it is a call, jump, return, trap or system
 * call, is unknown, or does not end before end. Conditional jumps have a length. Reads nothing at end or beyond. O(1).
 */
unsigned rewrite_decode_length(const uint8_t *code, const uint8_t *end);

#endif
