/* Source files and lines of functions, from DWARF's line tables (versions 2 to 5) only. Read by pread, one table at a
 * time, without a cache. libdw is not used, because it opens files, which the sandbox forbids. */
#ifndef PROFD_ELF_ELF_LINE_H
#define PROFD_ELF_ELF_LINE_H

#include "elf/elf_build.h"
#include "elf/elf_file.h"

/* Which source lines go into the object. */
enum elf_line_keep {
    ELF_LINE_KEEP_NONE,
    ELF_LINE_KEEP_ROWS,      /* adjacent rows of one line are one; none, with a note, if there are above LIMIT_LINES */
    ELF_LINE_KEEP_FUNCTIONS, /* split by functions, with their names */
};

/* Sets file and line of the object's local symbols (all: of all symbols) in executable sections, from .debug_line of f,
 * otherwise of debug (may be NULL). The file is as the table states it: absolute in DWARF 5, before that relative to
 * the compilation directory, which all prepends. all is for gprof's listings, and also starts DWARF 5 tables with entry
 * 0, as BFD 2.40 does. Does nothing without a table. Compressed or damaged tables lead to a note. NO_MEMORY, IO.
 * O(rows + symbols log symbols). */
enum profd_status elf_line_read(struct elf_build *b, const struct elf_file *f, const struct elf_file *debug, bool all,
                                enum elf_line_keep keep, struct profd_error *e);

#endif
