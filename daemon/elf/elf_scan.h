/* One section being decoded: shared by the decoders of the machines and the collection of arcs. */
#ifndef PROFD_ELF_ELF_SCAN_H
#define PROFD_ELF_ELF_SCAN_H

#include <capstone/capstone.h>
#include <stdbool.h>
#include <stdint.h>

#include "elf/elf_build.h"
#include "elf/elf_file.h"
#include "elf/elf_plt.h"
#include "elf/elf_symbols.h"

struct elf_arcs {
    struct elf_build *build;
    const struct elf_file *file;
    const struct elf_functions *functions;
    struct elf_plt *plt;
    csh capstone;
    cs_insn *instruction;
    struct object_arc *arcs;
    uint32_t count, capacity;
    uint64_t end; /* of the last section: the next must not begin below */
    bool full, no_memory;
    uint32_t overlapping; /* sections that were passed over */
};

/* A branch in the machine code, as its bytes say. */
struct elf_branch {
    uint64_t from, to; /* to: the target, or the GOT word when through_word */
    uint32_t length;   /* of the instruction */
    bool call, through_word;
};

/* Adds an arc if the branch goes to another function's entry or out of the object, and capstone reads the same
 * instruction. */
void elf_scan_branch(struct elf_arcs *a, const struct elf_branch *branch, const uint8_t *bytes);

/* The decoders: every branch of the section that could be an arc, ascending. */
void elf_scan_x86(struct elf_arcs *a, const GElf_Shdr *s, const uint8_t *bytes);
void elf_scan_arm64(struct elf_arcs *a, const GElf_Shdr *s, const uint8_t *bytes);

#endif
