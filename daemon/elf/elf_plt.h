/* Calls that leave through a table: which GOT word stands for which function, and which PLT slot jumps through which word. */
#ifndef PROFD_ELF_ELF_PLT_H
#define PROFD_ELF_ELF_PLT_H

#include <stdint.h>

#include "elf/elf_build.h"
#include "elf/elf_file.h"

/* A word that the dynamic linker fills with a function's address. */
struct elf_import {
    uint64_t word;    /* its address */
    const char *text; /* the function's name, in scratch; NULL for an IRELATIVE word */
    uint64_t target;  /* of an IRELATIVE word: the resolver, which is the IFUNC symbol's address */
    uint32_t name;    /* offset into the object's names once it was asked for, 0 before */
};

struct elf_slot {
    uint64_t address;
    uint32_t size;
    uint32_t import; /* index */
};

struct elf_plt {
    struct elf_import *imports; /* ascending by word */
    struct elf_slot *slots;     /* ascending by address, not overlapping */
    uint32_t import_count, slot_count;
};

/* Reads the dynamic relocations and decodes the PLT sections of x86-64, i386 and AArch64; other machines have no slots. Fills the
 * object's plt too. Damaged relocations are a note. LIMIT, NO_MEMORY, IO. */
enum profd_status elf_plt_read(struct elf_build *b, const struct elf_file *f, struct elf_plt *out, struct profd_error *e);

/* The import behind the word at this address, or the slot's that begins at this address; NULL if none. O(log n). */
struct elf_import *elf_plt_import_at(const struct elf_plt *p, uint64_t word);
struct elf_import *elf_plt_slot_at(const struct elf_plt *p, uint64_t address);

/* The name's offset in the object, added on first use. */
uint32_t elf_plt_import_name(struct elf_build *b, struct elf_import *i);

#endif
