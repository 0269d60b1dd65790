/* Assigns addresses to functions, for gprof's listings by line. An address belongs to the function or inlined copy with
 * the shortest range there, by .debug_info; to the last entry if two ranges are equally short; and without an entry, to
 * the nearest symbol before it. */
#ifndef PROFD_ELF_ELF_LINE_FUNCTIONS_H
#define PROFD_ELF_ELF_LINE_FUNCTIONS_H

#include <stdbool.h>
#include <stdint.h>

#include "elf/elf_build.h"
#include "elf/elf_dwarf.h"

/* Makes the object's lines from rows without functions: the rows of .text, split where the function changes. Fills the
 * object's line_functions. Rows must ascend; where they overlap, the first one has the addresses. NO_MEMORY. O(n
 * log n) in rows + spans + symbols. */
enum profd_status elf_line_functions_set(struct elf_build *b, const struct elf_dwarf *d, const struct object_line *rows,
                                         uint32_t count, struct profd_error *e);

#endif
