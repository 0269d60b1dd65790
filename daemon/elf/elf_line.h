/* Source files and lines of static functions, from DWARF's line tables (versions 2 to 5) alone: gprof's index shows
 * them. Read by pread, one table at a time, nothing kept: libdw would look at /proc and open files of its own, which
 * the sandbox kills. */
#ifndef PROFD_ELF_ELF_LINE_H
#define PROFD_ELF_ELF_LINE_H

#include "elf/elf_build.h"
#include "elf/elf_file.h"

/* Sets file and line of the object's local symbols (all: of all symbols) in executable sections, from f's .debug_line,
 * else debug's (may be NULL). The file is what the table says: absolute in DWARF 5, relative to the compilation's
 * folder before, which all puts in front; all is for gprof's listings, and also starts DWARF 5 tables with entry 0, as
 * BFD 2.40 does. table: sets the object's lines and their functions, too. No table: nothing happens. Compressed or
 * damaged ones are a note. NO_MEMORY, IO. O(rows + symbols log symbols). */
enum profd_status elf_line_read(struct elf_build *b, const struct elf_file *f, const struct elf_file *debug, bool all,
                                bool table, struct profd_error *e);

#endif
