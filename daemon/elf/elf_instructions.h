/* The instructions of an object, as text, for readers. */
#ifndef PROFD_ELF_ELF_INSTRUCTIONS_H
#define PROFD_ELF_ELF_INSTRUCTIONS_H

#include <stdbool.h>
#include <stdint.h>

#include "elf/elf_build.h"
#include "elf/elf_file.h"
#include "elf/elf_symbols.h"

struct elf_instructions;

/* Prepares reading the code of this file; functions stay the caller's. *out is NULL, with a note, for other machines
 * and for executable sections of more than LIMIT_CODE_BYTES together. NO_MEMORY. */
enum profd_status elf_instructions_new(struct elf_build *b, const struct elf_file *f,
                                       const struct elf_functions *functions, struct elf_instructions **out,
                                       struct profd_error *e);
/* Accepts NULL. */
void elf_instructions_free(struct elf_instructions *i);

/* Disassembles the bytes of one section, beginning anew at each function. Call it in ascending order of addresses; a
 * section that overlaps the previous one is skipped. NO_MEMORY. */
enum profd_status elf_instructions_scan(struct elf_instructions *i, const GElf_Shdr *s, const uint8_t *bytes,
                                        struct profd_error *e);

/* Moves the instructions into the object. */
enum profd_status elf_instructions_finish(struct elf_instructions *i, struct profd_error *e);

#endif
