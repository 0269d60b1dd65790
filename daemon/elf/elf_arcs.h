/* Static arcs: calls found in the machine code. */
#ifndef PROFD_ELF_ELF_ARCS_H
#define PROFD_ELF_ELF_ARCS_H

#include <stdbool.h>
#include <stdint.h>

#include "elf/elf_build.h"
#include "elf/elf_file.h"
#include "elf/elf_plt.h"
#include "elf/elf_symbols.h"

struct elf_arcs;

/* Prepares reading the code of this file; functions and plt stay the caller's. Machines other than x86-64, i386 and
 * AArch64 are not decoded: *out is NULL, with a note. NO_MEMORY. */
enum profd_status elf_arcs_new(struct elf_build *b, const struct elf_file *f, const struct elf_functions *functions,
                               struct elf_plt *plt, struct elf_arcs **out, struct profd_error *e);
/* Accepts NULL. */
void elf_arcs_free(struct elf_arcs *a);

/* Decodes the bytes of one section. Call it in ascending order of addresses. PLT sections are skipped; a section that
 * overlaps the previous one is skipped with a note. Arcs above LIMIT_STATIC_ARCS are left out, with a note. NO_MEMORY.
 */
enum profd_status elf_arcs_scan(struct elf_arcs *a, const GElf_Shdr *s, const uint8_t *bytes, struct profd_error *e);

/* Moves the arcs into the object. */
enum profd_status elf_arcs_finish(struct elf_arcs *a, struct profd_error *e);

#endif
