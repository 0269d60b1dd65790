/* Compilation units of .debug_info: only their compilation directories, which line tables before DWARF 5 do not
 * contain. */
#ifndef PROFD_ELF_ELF_LINE_UNITS_H
#define PROFD_ELF_ELF_LINE_UNITS_H

#include <stdint.h>

#include "core/arena.h"
#include "elf/elf_file.h"
#include "elf/elf_line_table.h"
#include "proto/status.h"

struct elf_unit {
    uint64_t lines;            /* offset of its table in .debug_line */
    struct line_string folder; /* section NULL if unknown */
};

struct elf_units {
    struct elf_unit *list; /* ascending by lines */
    uint32_t count;
};

/* Reads the header of every unit of versions 2 to 4. Damaged ones are left out. NO_MEMORY, IO. O(units log units). */
enum profd_status elf_units_read(const struct elf_file *f, struct arena *a, struct elf_units *out,
                                 struct profd_error *e);

/* Returns the compilation directory of the unit with that line table, or NULL. O(log units). */
const struct line_string *elf_units_folder(const struct elf_units *u, uint64_t lines);

#endif
