/* DWARF (versions 2 to 5), which libdw reads: opens it, walks its entries, and finds the names of functions. libdw
 * opens files by path, for -gsplit-dwarf and dwz; the sandbox of the worker answers EPERM to these calls, and what is
 * in such files is left out. */
#ifndef PROFD_ELF_ELF_DWARF_H
#define PROFD_ELF_ELF_DWARF_H

#include <elfutils/libdw.h>
#include <stdbool.h>
#include <stdint.h>

#include "elf/elf_file.h"

struct elf_build; /* elf_internal.h */

struct elf_dwarf {
    Elf *elf;
    Dwarf *dwarf;   /* NULL: there is none, or it cannot be read */
    uint64_t bytes; /* of the sections of DWARF */
};

/* Sets what libdw does in this process when memory is exhausted; act must end the process. Otherwise libdw prints a
 * sentence and exits. */
void elf_dwarf_set_no_memory(void (*act)(void));

/* Opens the DWARF of f, otherwise of debug (may be NULL). Adds a note to the object if it cannot be read. */
void elf_dwarf_open(struct elf_dwarf *d, struct elf_build *b, const struct elf_file *f, const struct elf_file *debug);
void elf_dwarf_close(struct elf_dwarf *d);

/* Returns the bytes of a section, ".debug_line" for example, as libdw reads them; NULL if there is none. */
Elf_Data *elf_dwarf_section(const struct elf_dwarf *d, const char *name);

/* Returns an attribute's text, NULL if it has none. */
const char *elf_dwarf_text(Dwarf_Attribute *a);

/* A walk over all entries, in their order in the file. Begins with .dwarf only. */
struct elf_entries {
    Dwarf *dwarf;
    Dwarf_Die entry;
    int tag;            /* of the entry */
    bool damaged;       /* the rest of a unit could not be read */
    uint32_t split;     /* units that name a .dwo file (-gsplit-dwarf), where their functions are */
    uint32_t missing;   /* references to a file of dwz that could not be opened */
    Dwarf_CU *unit;     /* internal, from here on */
    const uint8_t *end; /* of the unit */
    unsigned depth;
};

/* Moves to the next entry. False at the end. Passes over the children of enumerations, arrays, types of functions and
 * call sites, which have no code. */
bool elf_entries_next(struct elf_entries *w);

/* Finds the entry that this one is a copy or the definition of. False if there is none, or it is missing. */
bool elf_entries_origin(struct elf_entries *w, Dwarf_Die *out);

/* Adds a note if entries were left out because they are in other files, and returns whether there were any. */
bool elf_entries_note(const struct elf_entries *w, struct elf_build *b);

/* Returns the name of a function as the symbol table has it, else its name in the source text, else NULL. *certain is
 * false if the symbol table may have another name, which depends on the language. Follows references. */
const char *elf_dwarf_name(Dwarf_Die *entry, bool *certain);

#endif
