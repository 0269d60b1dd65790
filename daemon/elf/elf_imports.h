/* The dynamic relocations that fill words with addresses of functions. */
#ifndef PROFD_ELF_ELF_IMPORTS_H
#define PROFD_ELF_ELF_IMPORTS_H

#include "elf/elf_plt.h"

/* Fills imports, ascending by word; the first relocation of a word counts. Tables that break their rules are a note. NO_MEMORY,
 * LIMIT. O(relocations + imports log imports). */
enum profd_status elf_imports_read(struct elf_build *b, const struct elf_file *f, struct elf_plt *out, struct profd_error *e);

#endif
