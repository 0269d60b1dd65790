/* Reads one unit of .debug_line: the names in its header and the rows of its program. */
#ifndef PROFD_ELF_ELF_LINE_TABLE_H
#define PROFD_ELF_ELF_LINE_TABLE_H

#include <stdbool.h>
#include <stdint.h>

#include "elf/elf_file.h"

/* Location of a string: in the unit's bytes (section NULL), or at an offset of another section. */
struct line_string {
    const GElf_Shdr *section;
    uint64_t offset;
};

struct line_name {
    struct line_string text;
    uint64_t directory; /* of a file: index */
    const uint8_t *md5; /* of a file: 16 bytes of its text's MD5, in the unit's bytes; NULL if not stated */
    uint32_t cached;    /* for the caller: offset of the whole path, 0 before */
};

struct line_table {
    const struct elf_file *file;
    const uint8_t *bytes; /* the unit, without its length; borrowed */
    uint64_t size, program;
    uint16_t version;
    uint8_t offset_size, address_size, minimum, line_range, opcode_base;
    int8_t line_base;
    bool first_is_zero; /* rows before the first change of file have entry 0, as in BFD 2.40, not as in DWARF 5 */
    const uint8_t *operand_counts;
    const GElf_Shdr *line_strings, *strings; /* .debug_line_str and .debug_str, NULL if there are none */
    struct line_name *directories, *files;   /* malloc'd, reused by the next table */
    uint32_t directory_count, file_count, directory_capacity, file_capacity;
};

/* A range of addresses of one line. */
struct line_row {
    uint64_t low, high, file, line;
};

/* Parses the header of a unit; bytes holds the unit from its version to its last byte. False if it breaks DWARF's
 * rules, uses a form that line tables do not have, or memory runs out. */
bool line_table_open(struct line_table *t, const uint8_t *bytes, uint64_t size, uint8_t offset_size);
void line_table_done(struct line_table *t);

/* Runs the program; calls each() for every range that is not empty. False if the program is damaged. */
bool line_table_run(const struct line_table *t, void (*each)(void *context, const struct line_row *row), void *context);

/* Returns the file of that number in a row (from 1 before version 5, otherwise from 0); NULL if there is none. */
struct line_name *line_table_file(const struct line_table *t, uint64_t number);

/* Copies the path (directory/file) into out, NUL-terminated, cut at size. Returns its length, 0 if it cannot be read.
 */
size_t line_table_path(const struct line_table *t, const struct line_name *file, char *out, size_t size);

#endif
