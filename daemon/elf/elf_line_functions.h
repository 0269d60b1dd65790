/* Assigns addresses to functions, for gprof's listings by line. An address belongs to the function or inlined copy with
 * the shortest range there, by .debug_info; to the last entry if two ranges are equally short; and without an entry, to
 * the nearest symbol before it. */
#ifndef PROFD_ELF_ELF_LINE_FUNCTIONS_H
#define PROFD_ELF_ELF_LINE_FUNCTIONS_H

#include <stdbool.h>
#include <stdint.h>

#include "elf/elf_build.h"
#include "elf/elf_line_entries.h"

/* A function or an inlined copy of one. */
struct line_copy {
    const char *name; /* in the sections; NULL if it has none */
    bool certain;     /* the name is the symbol table's; else it is if no symbol begins where the copy does */
    uint64_t low;     /* of its first range */
    uint32_t named;   /* its name among the object's line_functions; 0 before */
};

struct line_span {
    uint64_t low, high;
    uint32_t copy;
};

struct line_spans {
    struct line_copy *copies; /* malloc'd, in the order of the entries */
    struct line_span *spans;  /* malloc'd, ascending by low */
    uint32_t copy_count, copy_capacity, span_count, span_capacity;
    bool damaged; /* something was left out */
};

/* Makes the object's lines from rows without functions: the rows of .text, split where the function changes. Fills the
 * object's line_functions. Rows must ascend; where they overlap, the first one has the addresses. NO_MEMORY, IO. O(n
 * log n) in rows + spans + symbols. */
enum profd_status elf_line_functions_set(struct elf_build *b, const struct elf_file *f, const struct object_line *rows,
                                         uint32_t count, struct profd_error *e);

#endif
