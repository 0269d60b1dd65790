/* Lengths of x86 instructions. A disassembler that also prints each one reads 15 MB/s; only boundaries are needed to
 * find the branches, and capstone then says what those are. */
#ifndef PROFD_ELF_ELF_X86_H
#define PROFD_ELF_ELF_X86_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct elf_x86 {
    uint8_t length;  /* of the whole instruction, 1–15 */
    uint8_t at;      /* offset of the opcode: behind all prefixes */
    uint8_t opcode;  /* first opcode byte; 0x0f for the two-byte map */
    uint8_t address; /* offset of 32 bits that are an address, by itself or relative to the next instruction: of an
                      * operand without a base register; 0 if there are none */
    uint8_t second;  /* the byte behind it: second opcode byte or ModRM, where there is one */
    bool plain;      /* in the one-byte or two-byte map: not VEX, EVEX or XOP */
};

/* Decodes at p, at most n bytes. False where no instruction of the mode begins there, or it is longer than n. Lengths
 * follow Intel's manual; a near branch has 32 bits in 64-bit mode whatever its prefixes. O(1). */
bool elf_x86_decode(const uint8_t *p, size_t n, bool wide, struct elf_x86 *out);

#endif
