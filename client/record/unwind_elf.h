/* Makes the unwind table of an ELF file. */
#ifndef PROFD_RECORD_UNWIND_ELF_H
#define PROFD_RECORD_UNWIND_ELF_H

#include "record/unwind_table.h"

/* Reads the sections of a file (by pread: its owner may truncate it) and makes the table as unwind_table_make. A file
 * without unwind information gets a table without rows. A vDSO is read from a sealed memfd. MALFORMED: not an ELF
 * executable or shared object, or damaged. REFUSED: not of x86-64 or AArch64. IO, LIMIT, NO_MEMORY. */
enum profd_status unwind_elf_read(int fd, struct unwind_table **out, struct profd_error *e);

#endif
