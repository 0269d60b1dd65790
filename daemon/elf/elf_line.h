/* Source files and lines of functions, from DWARF's line tables. */
#ifndef PROFD_ELF_ELF_LINE_H
#define PROFD_ELF_ELF_LINE_H

#include "elf/elf_build.h"
#include "elf/elf_dwarf.h"

/* Which source lines go into the object. */
enum elf_line_keep {
    ELF_LINE_KEEP_NONE,
    ELF_LINE_KEEP_ROWS,      /* adjacent rows of one line are one; none, with a note, if there are above LIMIT_LINES */
    ELF_LINE_KEEP_FUNCTIONS, /* split by functions, with their names */
};

/* Sets file and line of the object's local symbols (all: of all symbols) in executable sections. Relative paths begin
 * with the compilation directory, if it is known. all is for gprof's listings, and also begins the rows of DWARF 5
 * tables with file 0, as BFD 2.40 does. Does nothing without a table; damaged tables lead to a note. NO_MEMORY. O(rows
 * + symbols log symbols). */
enum profd_status elf_line_read(struct elf_build *b, const struct elf_dwarf *d, bool all, enum elf_line_keep keep,
                                struct profd_error *e);

#endif
