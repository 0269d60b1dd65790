/* Reads the entries of .debug_info (DWARF 2 to 5), one after the other, as far as needed to find functions and their
 * inlined copies. Reads whole sections: the worker does so up to LIMIT_INLINED_BYTES only. */
#ifndef PROFD_ELF_ELF_LINE_ENTRIES_H
#define PROFD_ELF_ELF_LINE_ENTRIES_H

#include <stdbool.h>
#include <stdint.h>

#include "core/arena.h"
#include "elf/elf_file.h"
#include "elf/elf_line_cursor.h"
#include "proto/status.h"

enum { TAG_ENTRY_POINT = 0x03, TAG_COMPILE_UNIT = 0x11, TAG_INLINED = 0x1d, TAG_SUBPROGRAM = 0x2e };

enum {
    AT_NAME = 0x03,
    AT_LOW_PC = 0x11,
    AT_HIGH_PC = 0x12,
    AT_LANGUAGE = 0x13,
    AT_ABSTRACT_ORIGIN = 0x31,
    AT_SPECIFICATION = 0x47,
    AT_RANGES = 0x55,
    AT_LINKAGE_NAME = 0x6e,
    AT_STR_OFFSETS_BASE = 0x72,
    AT_ADDR_BASE = 0x73,
    AT_MIPS_LINKAGE_NAME = 0x2007
};

/* Layout of the entries with one code. */
struct entry_kind {
    uint64_t code, attributes; /* offset in .debug_abbrev */
    uint64_t tag;
};

struct entry_unit {
    uint64_t start, entries, end; /* offsets in .debug_info: of its header and of its first entry */
    uint64_t abbreviations;
    const struct entry_kind *kinds; /* ascending by code */
    uint32_t kind_count;
    uint16_t version;
    uint8_t offset_size, address_size;
    bool plain_names;                  /* the names of its language are those of the symbol table */
    uint64_t base, strings, addresses; /* low_pc, and the bases of its parts of the tables of DWARF 5 */
};

struct entry_section {
    const uint8_t *bytes; /* NULL if there is none */
    uint64_t size;
};

struct entry_file {
    const struct elf_file *file;
    struct entry_section info, kinds, strings, line_strings, string_offsets, addresses, old_ranges, ranges;
    struct entry_unit *units; /* ascending by start */
    uint32_t unit_count;
    uint64_t steps; /* remaining: bounds the work for damaged entries */
};

enum entry_value_kind {
    ENTRY_VALUE_OTHER,
    ENTRY_VALUE_ADDRESS,
    ENTRY_VALUE_NUMBER,
    ENTRY_VALUE_TEXT,
    ENTRY_VALUE_REFERENCE
};

/* A value: an address, a number, a NUL-terminated text, an offset in .debug_info. */
struct entry_value {
    enum entry_value_kind kind;
    bool is_index; /* base of an address or a list of ranges */
    uint64_t number;
    const char *text;
};

/* One entry, and the position of its next attribute. */
struct entry {
    const struct entry_unit *unit;
    const struct entry_kind *kind;
    struct line_cursor values, attributes;
};

/* Loads the sections and reads the headers of all units. If the sections are missing or damaged, there are no units.
 * NO_MEMORY, IO. Work and memory are O(sections). */
enum profd_status entry_file_open(const struct elf_file *f, struct arena *a, struct entry_file *out,
                                  struct profd_error *e);

/* Returns the unit that contains the offset, or NULL. O(log units). */
const struct entry_unit *entry_file_unit(const struct entry_file *d, uint64_t at);

/* Opens the entry at an offset. False at the end of a list (values then follows the mark), and for damage
 * (values.failed). */
bool entry_open(const struct entry_file *d, const struct entry_unit *u, uint64_t at, struct entry *out);

/* Reads the next attribute. False after the last one; values is then at the next entry, or has failed. */
bool entry_next(struct entry_file *d, struct entry *entry, uint64_t *name, struct entry_value *out);

/* The address of a value. False if it has none. */
bool entry_address(const struct entry_file *d, const struct entry_unit *u, const struct entry_value *v, uint64_t *out);

/* Calls each() for the ranges of AT_RANGES, in their order; a list given by its index is skipped, as in gprof. False if
 * they are damaged, or each() returns false. */
bool entry_ranges(struct entry_file *d, const struct entry_unit *u, const struct entry_value *v,
                  bool (*each)(void *context, uint64_t low, uint64_t high), void *context);

#endif
