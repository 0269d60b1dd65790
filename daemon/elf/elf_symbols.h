/* Symbol tables: .symtab, else the debug file's, else .dynsym; and from them the functions of the object. */
#ifndef PROFD_ELF_ELF_SYMBOLS_H
#define PROFD_ELF_ELF_SYMBOLS_H

#include <stdbool.h>
#include <stdint.h>

#include "elf/elf_build.h"
#include "elf/elf_file.h"

/* A table of symbols and its strings, until its file is closed. */
struct elf_symtab {
    const struct elf_file *file;
    Elf_Data *symbols;
    Elf_Data *wide_sections; /* SHT_SYMTAB_SHNDX: section numbers that do not fit into 16 bits; NULL if none */
    uint32_t count;
    const char *strings; /* the last byte, or the byte after it, is NUL */
    uint64_t strings_size;
};

/* One entry, decoded. */
struct elf_symbol {
    uint64_t value, size;
    uint32_t section; /* index, or one of SHN_UNDEF, SHN_ABS, SHN_COMMON (as 16 bits) when special */
    bool special;
    uint8_t bind, type;
    const char *name; /* NUL-terminated, borrowed from the table; "" if it has none */
};

/* Reads the table in section number index. MALFORMED, LIMIT above LIMIT_SYMBOLS, NO_MEMORY. */
enum profd_status elf_symtab_load(const struct elf_file *f, uint32_t index, struct arena *a, struct elf_symtab **out,
                                  struct profd_error *e);
void elf_symtab_get(const struct elf_symtab *t, uint32_t i, struct elf_symbol *out);

/* Fills the object's symbols, executable_start, etext, has_names and only_dynamic. debug may be NULL. */
enum profd_status elf_symbols_read(struct elf_build *b, const struct elf_file *f, const struct elf_file *debug,
                                   struct profd_error *e);

/* A target of calls: the start of a function, with its aliases. */
struct elf_function {
    uint64_t address, end;   /* end: by size, or the next function's start where the size is 0 */
    uint32_t first, aliases; /* its symbols: symbols[first … first + aliases) */
    bool cold;               /* a `.cold` part: code of another function, never an entry */
};

struct elf_functions {
    struct elf_function *list; /* ascending by address, each address once */
    uint32_t *symbols;         /* indexes into the object's */
    uint32_t count;
};

/* From the object's symbols, into scratch: STT_FUNC and IFUNC, and untyped global or weak ones in executable sections.
 * O(n log n). NO_MEMORY. */
enum profd_status elf_functions_make(struct elf_build *b, struct elf_functions *out, struct profd_error *e);

/* The function that begins at the address, or NULL. O(log n). */
const struct elf_function *elf_functions_at(const struct elf_functions *f, uint64_t address);
/* The innermost function that holds the address, or NULL. O(log n). */
const struct elf_function *elf_functions_holding(const struct elf_functions *f, uint64_t address);
/* Index of the first function at or above the address; count if none. O(log n). */
uint32_t elf_functions_from(const struct elf_functions *f, uint64_t address);

#endif
