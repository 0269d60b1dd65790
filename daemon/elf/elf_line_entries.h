/* The entries of .debug_info (DWARF 2 to 5), one after the other: enough of them to know where functions and their
 * inlined copies lie. For local verbs, which may hold whole sections; the worker never comes here. */
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

/* How the entries with one code are written. */
struct entry_kind {
    uint64_t code, attributes; /* offset in .debug_abbrev */
    uint64_t tag;
};

struct entry_unit {
    uint64_t start, entries, end; /* in .debug_info: its header, its first entry */
    uint64_t abbreviations;
    const struct entry_kind *kinds; /* ascending by code */
    uint32_t kind_count;
    uint16_t version;
    uint8_t offset_size, address_size;
    bool plain_names;                  /* its language's names are those of the symbol table */
    uint64_t base, strings, addresses; /* low_pc, and where its parts of the tables of DWARF 5 begin */
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
    uint64_t steps; /* left: damaged entries may ask for any work */
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
    bool is_index; /* of an address or a list of ranges */
    uint64_t number;
    const char *text;
};

/* One entry, and where its next attribute stands. */
struct entry {
    const struct entry_unit *unit;
    const struct entry_kind *kind;
    struct line_cursor values, attributes;
};

/* Loads the sections and reads the heads of all units. Nothing there, or damaged: no units. NO_MEMORY, IO. Work and
 * memory are O(sections). */
enum profd_status entry_file_open(const struct elf_file *f, struct arena *a, struct entry_file *out,
                                  struct profd_error *e);

/* The unit that holds the offset, or NULL. O(log units). */
const struct entry_unit *entry_file_unit(const struct entry_file *d, uint64_t at);

/* Opens the entry at an offset. False for the mark that ends a list (values stands behind it), and for damage
 * (values.failed). */
bool entry_open(const struct entry_file *d, const struct entry_unit *u, uint64_t at, struct entry *out);

/* Reads the next attribute. False behind the last; values then stands at the next entry, or has failed. */
bool entry_next(struct entry_file *d, struct entry *entry, uint64_t *name, struct entry_value *out);

/* The address a value means. False if it means none. */
bool entry_address(const struct entry_file *d, const struct entry_unit *u, const struct entry_value *v, uint64_t *out);

/* Calls each() for the ranges of AT_RANGES, in their order; for none of a list that is named by its number, which gprof
 * passes over. False if they are damaged, or each() says so. */
bool entry_ranges(struct entry_file *d, const struct entry_unit *u, const struct entry_value *v,
                  bool (*each)(void *context, uint64_t low, uint64_t high), void *context);

#endif
