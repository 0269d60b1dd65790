/* Calls through tables: the function of each GOT word, and the GOT word of each PLT slot. */
#ifndef PROFD_ELF_ELF_PLT_H
#define PROFD_ELF_ELF_PLT_H

#include <stdint.h>

#include "elf/elf_build.h"
#include "elf/elf_file.h"

/* Dynamic relocations that write addresses of functions into words. */

/* A word into which the dynamic linker writes a function's address. */
struct elf_import {
    uint64_t word;    /* its address */
    const char *text; /* the function's name, in scratch; NULL for an IRELATIVE word */
    uint64_t target;  /* of an IRELATIVE word: the resolver, which is the IFUNC symbol's address */
    uint32_t name;    /* offset in the object's names after its first use, 0 before */
};

struct elf_imports {
    struct elf_import *list; /* ascending by word */
    uint32_t count;
};

/* Returns the import of the word at this address; NULL if there is none. O(log n). */
struct elf_import *elf_imports_at(const struct elf_imports *i, uint64_t word);

/* Returns the offset of the name in the object, added on first use; 0 for an IRELATIVE word. */
uint32_t elf_imports_name(struct elf_build *b, struct elf_import *i);

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
