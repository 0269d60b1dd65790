/* Names of the functions that an object has inlined copies of. */
#ifndef PROFD_ELF_ELF_INLINED_H
#define PROFD_ELF_ELF_INLINED_H

#include "elf/elf_build.h"
#include "elf/elf_file.h"

/* Sets the object's inlined names, from .debug_info of f, otherwise of debug (may be NULL): those of functions that the
 * compiler marked as inlined, each once. Debug information above LIMIT_INLINED_BYTES is not read, with a note.
 * NO_MEMORY, IO. O(bytes + names log names). */
enum profd_status elf_inlined_read(struct elf_build *b, const struct elf_file *f, const struct elf_file *debug,
                                   struct profd_error *e);

#endif
