/* Hashes of functions' machine code that do not depend on where the linker put it: a renamed function has the hash that
 * it had.
 *
 * Masked before hashing, because another link changes them: on x86 the offset of a direct call, and of a jump out of
 * the function; an address operand without a base register, or relative to the next instruction; and, where the object
 * is not position-independent, 32 bits at the end of an instruction that are an address in the object. On AArch64 the
 * offset of bl, of b out of the function and of adr and adrp, and the immediate of the add, load or store that uses a
 * register which adrp has set. A function of less than ELF_CODE_LEAST bytes has no hash: such are seldom unique. */
#ifndef PROFD_ELF_ELF_CODE_H
#define PROFD_ELF_ELF_CODE_H

#include <stdint.h>

#include "elf/elf_build.h"
#include "elf/elf_file.h"
#include "elf/elf_symbols.h"

#define ELF_CODE_LEAST 16u

/* Sets the code of all symbols of functions within the section, on x86 and AArch64. O(bytes). */
void elf_code_hash(struct elf_build *b, const struct elf_file *f, const struct elf_functions *functions,
                   const GElf_Shdr *s, const uint8_t *bytes);

#endif
