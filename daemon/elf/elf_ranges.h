/* Executable address ranges of an object. */
#ifndef PROFD_ELF_ELF_RANGES_H
#define PROFD_ELF_ELF_RANGES_H

#include <stdbool.h>

#include "elf/elf_build.h"
#include "elf/elf_file.h"

/* True for .plt, .plt.got, .plt.sec and .iplt: slots, not functions. */
bool elf_ranges_is_plt(const struct elf_file *f, const GElf_Shdr *s);

/* Fills the object's ranges, ascending by (kind, low, high). LIMIT above LIMIT_SECTIONS, NO_MEMORY. */
enum profd_status elf_ranges_read(struct elf_build *b, const struct elf_file *f, struct profd_error *e);

#endif
