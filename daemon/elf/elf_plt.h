/* Calls through tables: the function of each GOT word, and the GOT word of each PLT slot. */
#ifndef PROFD_ELF_ELF_PLT_H
#define PROFD_ELF_ELF_PLT_H

#include <stdint.h>

#include "elf/elf_build.h"
#include "elf/elf_file.h"
#include "elf/elf_imports.h"

struct elf_slot {
    uint64_t address;
    uint32_t size;
    uint32_t import; /* index */
};

struct elf_plt {
    struct elf_imports imports;
    struct elf_slot *slots; /* ascending by address, not overlapping */
    uint32_t slot_count;
};

/* Reads the dynamic relocations and decodes the PLT sections of x86-64, i386 and AArch64; other machines have no slots.
 * Also fills the object's plt. Damaged relocations lead to a note. LIMIT, NO_MEMORY, IO. */
enum profd_status elf_plt_read(struct elf_build *b, const struct elf_file *f, struct elf_plt *out,
                               struct profd_error *e);

/* Returns the import of the slot that begins at this address; NULL if there is none. O(log n). */
struct elf_import *elf_plt_slot_at(const struct elf_plt *p, uint64_t address);

#endif
