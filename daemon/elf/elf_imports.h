/* Dynamic relocations that write addresses of functions into words. */
#ifndef PROFD_ELF_ELF_IMPORTS_H
#define PROFD_ELF_ELF_IMPORTS_H

#include <stdint.h>

#include "elf/elf_build.h"
#include "elf/elf_file.h"

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

#endif
