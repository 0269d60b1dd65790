/* Names of the functions that an object has inlined copies of. */
#ifndef PROFD_ELF_ELF_INLINED_H
#define PROFD_ELF_ELF_INLINED_H

#include "elf/elf_build.h"
#include "elf/elf_dwarf.h"

/* Sets the object's inlined names: those of functions that the compiler marked as inlined, each once. They stay
 * unknown, with a note, if DWARF has more than LIMIT_INLINED_BYTES, is damaged, or is in other files. NO_MEMORY.
 * O(bytes + names log names). */
enum profd_status elf_inlined_read(struct elf_build *b, const struct elf_dwarf *d, struct profd_error *e);

#endif
