/* Static arcs: what the machine code calls. */
#ifndef PROFD_ELF_ELF_ARCS_H
#define PROFD_ELF_ELF_ARCS_H

#include <stdbool.h>
#include <stdint.h>

#include "elf/elf_build.h"
#include "elf/elf_file.h"
#include "elf/elf_plt.h"
#include "elf/elf_symbols.h"

struct elf_arcs;

/* Ready to read the code of this file; functions and plt stay the caller's. NULL in *out (and a note) for machines that
 * aren't decoded: x86-64, i386 and AArch64 are. NO_MEMORY. */
enum profd_status elf_arcs_new(struct elf_build *b, const struct elf_file *f, const struct elf_functions *functions,
                               struct elf_plt *plt, struct elf_arcs **out, struct profd_error *e);
/* Accepts NULL. */
void elf_arcs_free(struct elf_arcs *a);

/* Decodes one section's bytes. Call in ascending order of addresses; a section that overlaps the one before is passed
 * over with a note, PLT sections are passed over. At LIMIT_STATIC_ARCS the rest is left out, with a note. NO_MEMORY. */
enum profd_status elf_arcs_scan(struct elf_arcs *a, const GElf_Shdr *s, const uint8_t *bytes, struct profd_error *e);

/* Moves the arcs into the object. */
enum profd_status elf_arcs_finish(struct elf_arcs *a, struct profd_error *e);

#endif
