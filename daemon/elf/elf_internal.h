/* What the readers of an executable share. Private to elf/. */
#ifndef PROFD_ELF_ELF_INTERNAL_H
#define PROFD_ELF_ELF_INTERNAL_H

#include <capstone/capstone.h>
#include <nettle/sha2.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/arena.h"
#include "core/buffer.h"
#include "core/object.h"
#include "elf/elf_file.h"
#include "proto/buildid.h"
#include "proto/status.h"

struct elf_dwarf; /* elf_dwarf.h */

/* An object under construction: its memory, names and note. */

struct elf_build {
    struct arena *out;     /* the caller's: data of the object */
    struct arena *scratch; /* freed when the object is complete */
    struct object *object;
    struct buffer names; /* begins with the empty string */
    struct buffer note;
    size_t name_limit;  /* bytes of one name: LIMIT_SYMBOL_NAME, or no limit */
    uint64_t names_cut; /* names that were longer */
};

/* Copies n bytes, cut at name_limit, and returns their offset. 0 for the empty name, and if memory or the limit of all
 * names is exhausted; that sets names.failed, which elf_build_finish checks. */
uint32_t elf_build_name(struct elf_build *b, const char *text, size_t n);

/* Adds one sentence to the object's note. */
void elf_build_note(struct elf_build *b, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* LIMIT or NO_MEMORY if names did not fit; otherwise moves names and note into the object. */
enum profd_status elf_build_finish(struct elf_build *b, struct profd_error *e);

/* Limits the names of a file of that size: symbols that share one long name must not need quadratic space. */
void elf_build_limit(struct elf_build *b, uint64_t file_size);

/* Sets the sentence for names.failed. Returns LIMIT. */
enum profd_status elf_build_names_full(const struct elf_build *b, struct profd_error *e);

/* Identity of a file: the GNU build-id of its notes, otherwise the hash of its code; and the hash of its contents. */

/* Reads the build-id. NOT_FOUND: no note section or segment contains a build-id of 1–64 bytes. Notes above 1 MiB are
 * skipped. */
enum profd_status elf_id_from_notes(const struct elf_file *f, struct buildid *id, struct profd_error *e);

/* Adds an executable section to the hash over code: u64 address, u64 size (little-endian), bytes. Call it in ascending
 * order of addresses. */
void elf_id_hash_section(struct sha256_ctx *hash, const GElf_Shdr *s, const uint8_t *bytes);

/* Finishes a copy of the hash. MALFORMED if sections is 0: nothing identifies the file. */
enum profd_status elf_id_from_code(const struct sha256_ctx *hash, uint32_t sections, struct buildid *id,
                                   struct profd_error *e);

/* Writes the SHA-256, in hex, over the code's hash and each symbol's address, size, bind, type and name. */
void elf_id_variant(const struct sha256_ctx *code, const struct object *o, const char *names, char variant[65]);

/* Symbol tables: .symtab, else the debug file's, else .dynsym; and from them the functions of the object. */

/* A table of symbols and its strings, until its file is closed. */
struct elf_symtab {
    const struct elf_file *file;
    Elf_Data *symbols;
    Elf_Data *wide_sections; /* SHT_SYMTAB_SHNDX: section numbers that do not fit into 16 bits; NULL if none */
    uint32_t count;
    const char *strings; /* the last byte, or the byte after it, is NUL */
    uint64_t strings_size;
};

/* One entry, decoded. */
struct elf_symbol {
    uint64_t value, size;
    uint32_t section; /* index, or one of SHN_UNDEF, SHN_ABS, SHN_COMMON (as 16 bits) when special */
    bool special;
    uint8_t bind, type;
    const char *name; /* NUL-terminated, borrowed from the table; "" if it has none */
};

/* Reads the table in section number index. MALFORMED, LIMIT above LIMIT_SYMBOLS, NO_MEMORY. */
enum profd_status elf_symtab_load(const struct elf_file *f, uint32_t index, struct arena *a, struct elf_symtab **out,
                                  struct profd_error *e);
void elf_symtab_get(const struct elf_symtab *t, uint32_t i, struct elf_symbol *out);

/* Fills the object's symbols, executable_start, etext, has_names and only_dynamic. debug may be NULL. */
enum profd_status elf_symbols_read(struct elf_build *b, const struct elf_file *f, const struct elf_file *debug,
                                   struct profd_error *e);

/* A target of calls: the start of a function, with its aliases. */
struct elf_function {
    uint64_t address, end;   /* end: by size, or the next function's start where the size is 0 */
    uint32_t first, aliases; /* its symbols: symbols[first … first + aliases) */
    bool cold;               /* a `.cold` part: code of another function, never an entry */
};

struct elf_functions {
    struct elf_function *list; /* ascending by address, each address once */
    uint32_t *symbols;         /* indexes into the object's */
    uint32_t count;
};

/* Lists the functions among the object's symbols, in scratch: STT_FUNC and IFUNC, and untyped global or weak symbols in
 * executable sections. O(n log n). NO_MEMORY. */
enum profd_status elf_functions_make(struct elf_build *b, struct elf_functions *out, struct profd_error *e);

/* Returns the function that begins at the address, or NULL. O(log n). */
const struct elf_function *elf_functions_at(const struct elf_functions *f, uint64_t address);
/* Returns the innermost function that holds the address, or NULL. O(log n). */
const struct elf_function *elf_functions_holding(const struct elf_functions *f, uint64_t address);
/* Returns the index of the first function at or above the address; count if there is none. O(log n). */
uint32_t elf_functions_from(const struct elf_functions *f, uint64_t address);

/* Executable address ranges of an object. */

/* Returns whether the section is .plt, .plt.got, .plt.sec or .iplt, which have slots and not functions. */
bool elf_ranges_is_plt(const struct elf_file *f, const GElf_Shdr *s);

/* Fills the object's ranges, ascending by (kind, low, high). LIMIT above LIMIT_SECTIONS, NO_MEMORY. */
enum profd_status elf_ranges_read(struct elf_build *b, const struct elf_file *f, struct profd_error *e);

/* Calls through tables: the function of each GOT word, and the GOT word of each PLT slot. Dynamic relocations write the
 * addresses of functions into these words. */

/* A word into which the dynamic linker writes a function's address. */
struct elf_import {
    uint64_t word;    /* its address */
    const char *text; /* the function's name, in scratch; NULL for an IRELATIVE word */
    uint64_t target;  /* of an IRELATIVE word: the resolver, which is the IFUNC symbol's address */
    uint32_t name;    /* offset in the object's names after its first use, 0 before */
};

struct elf_imports {
    struct elf_import *list; /* ascending by word */
    uint32_t count;
};

/* Returns the import of the word at this address; NULL if there is none. O(log n). */
struct elf_import *elf_imports_at(const struct elf_imports *i, uint64_t word);

/* Returns the offset of the name in the object, added on first use; 0 for an IRELATIVE word. */
uint32_t elf_imports_name(struct elf_build *b, struct elf_import *i);

struct elf_slot {
    uint64_t address;
    uint32_t size;
    uint32_t import; /* index */
};

struct elf_plt {
    struct elf_imports imports;
    struct elf_slot *slots; /* ascending by address, not overlapping */
    uint32_t slot_count;
};

/* Reads the dynamic relocations and decodes the PLT sections of x86-64, i386 and AArch64; other machines have no slots.
 * Also fills the object's plt. Damaged relocations lead to a note. LIMIT, NO_MEMORY, IO. */
enum profd_status elf_plt_read(struct elf_build *b, const struct elf_file *f, struct elf_plt *out,
                               struct profd_error *e);

/* Returns the import of the slot that begins at this address; NULL if there is none. O(log n). */
struct elf_import *elf_plt_slot_at(const struct elf_plt *p, uint64_t address);

/* Disassembling by capstone. The library is loaded when the first disassembler is opened. */

struct disassembler {
    csh handle;
    cs_insn *instruction; /* the one that disassembler_next has read; NULL: not open */
};

/* Returns whether it is x86-64, i386 or AArch64. */
bool disassembler_knows(uint16_t machine);

/* Loads the library for all threads; processes that may open no files later inherit it. INTERNAL: it is missing. */
enum profd_status disassembler_load(struct profd_error *e);

/* Opens a disassembler for a machine that is known. text: it writes instructions as objdump does, and other bytes as
 * .byte. NO_MEMORY or INTERNAL: it is not open. */
enum profd_status disassembler_open(struct disassembler *d, uint16_t machine, bool text, struct profd_error *e);
/* Reads one instruction at *bytes and moves all three behind it. False: there is none. */
bool disassembler_next(struct disassembler *d, const uint8_t **bytes, size_t *size, uint64_t *address);
/* Accepts one that is not open. */
void disassembler_close(struct disassembler *d);

/* Lengths of x86 instructions. A disassembler that also prints each one reads 15 MB/s; only boundaries are needed to
 * find the branches, and capstone then says what those are. */

struct elf_x86 {
    uint8_t length;  /* of the whole instruction, 1–15 */
    uint8_t at;      /* offset of the opcode: behind all prefixes */
    uint8_t opcode;  /* first opcode byte; 0x0f for the two-byte map */
    uint8_t address; /* offset of 32 bits that are an address, by itself or relative to the next instruction: of an
                      * operand without a base register; 0 if there are none */
    uint8_t second;  /* the byte behind it: second opcode byte or ModRM, where there is one */
    bool plain;      /* in the one-byte or two-byte map: not VEX, EVEX or XOP */
};

/* Decodes at p, at most n bytes. False where no instruction of the mode begins there, or it is longer than n. Lengths
 * follow Intel's manual; a near branch has 32 bits in 64-bit mode whatever its prefixes. O(1). */
bool elf_x86_decode(const uint8_t *p, size_t n, bool wide, struct elf_x86 *out);

/* Static arcs: calls found in the machine code. */

struct elf_arcs;

/* Prepares reading the code of this file; functions and plt stay the caller's. Machines other than x86-64, i386 and
 * AArch64 are not decoded: *out is NULL, with a note. NO_MEMORY. */
enum profd_status elf_arcs_new(struct elf_build *b, const struct elf_file *f, const struct elf_functions *functions,
                               struct elf_plt *plt, struct elf_arcs **out, struct profd_error *e);
/* Accepts NULL. */
void elf_arcs_free(struct elf_arcs *a);

/* Decodes the bytes of one section. Call it in ascending order of addresses. PLT sections are skipped; a section that
 * overlaps the previous one is skipped with a note. Arcs above LIMIT_STATIC_ARCS are left out, with a note. NO_MEMORY.
 */
enum profd_status elf_arcs_scan(struct elf_arcs *a, const GElf_Shdr *s, const uint8_t *bytes, struct profd_error *e);

/* Gives the arcs to the object. */
void elf_arcs_finish(struct elf_arcs *a);

/* Hashes of functions' machine code that do not depend on where the linker put it: a renamed function has the hash that
 * it had.
 *
 * Masked before hashing, because another link changes them: on x86 the offset of a direct call, and of a jump out of
 * the function; an address operand without a base register, or relative to the next instruction; and, where the object
 * is not position-independent, 32 bits at the end of an instruction that are an address in the object. On AArch64 the
 * offset of bl, of b out of the function and of adr and adrp, and the immediate of the add, load or store that uses a
 * register which adrp has set. Functions of less than ELF_CODE_LEAST bytes have no hash, because they are seldom
 * unique. */

#define ELF_CODE_LEAST 16u

/* Sets the code of all symbols of functions within the section, on x86 and AArch64. O(bytes). */
void elf_code_hash(struct elf_build *b, const struct elf_file *f, const struct elf_functions *functions,
                   const GElf_Shdr *s, const uint8_t *bytes);

/* The instructions of an object, as text, for readers. */

struct elf_instructions;

/* Prepares reading the code of this file; functions stay the caller's. *out is NULL, with a note, for other machines
 * and for executable sections of more than LIMIT_CODE_BYTES together. NO_MEMORY. */
enum profd_status elf_instructions_new(struct elf_build *b, const struct elf_file *f,
                                       const struct elf_functions *functions, struct elf_instructions **out,
                                       struct profd_error *e);
/* Accepts NULL. */
void elf_instructions_free(struct elf_instructions *i);

/* Disassembles the bytes of one section, beginning anew at each function. Call it in ascending order of addresses; a
 * section that overlaps the previous one is skipped. NO_MEMORY. */
enum profd_status elf_instructions_scan(struct elf_instructions *i, const GElf_Shdr *s, const uint8_t *bytes,
                                        struct profd_error *e);

/* Moves the instructions into the object. */
enum profd_status elf_instructions_finish(struct elf_instructions *i, struct profd_error *e);

/* Demangles C++ names by libstdc++, and Rust names by the rules of its compiler. */

/* Sets demangled of every symbol and of every function of lines in the object. cxx: names that begin with `_Z` or
 * `_GLOBAL_` + [._$][DI]_, after leading '.' and '$'; these and a trailing `@version` are kept. rust: hash and escapes
 * of Rust's names are removed. A name that cannot be demangled, or that exceeds the build's name_limit in either form,
 * keeps its raw form. */
void elf_demangle_all(struct elf_build *b, bool cxx, bool rust);

/* Names of the functions that an object has inlined copies of. */

/* Sets the object's inlined names: those of functions that the compiler marked as inlined, each once. They stay
 * unknown, with a note, if DWARF has more than LIMIT_INLINED_BYTES, is damaged, or is in other files. NO_MEMORY.
 * O(bytes + names log names). */
enum profd_status elf_inlined_read(struct elf_build *b, const struct elf_dwarf *d, struct profd_error *e);

/* Assigns addresses to functions, for gprof's listings by line. An address belongs to the function or inlined copy with
 * the shortest range there, by .debug_info; to the last entry if two ranges are equally short; and without an entry, to
 * the nearest symbol before it. */

/* Makes the object's lines from rows without functions: the rows of .text, split where the function changes. Fills the
 * object's line_functions. Rows must ascend; where they overlap, the first one has the addresses. NO_MEMORY. O(n
 * log n) in rows + spans + symbols. */
enum profd_status elf_line_functions_set(struct elf_build *b, const struct elf_dwarf *d, const struct object_line *rows,
                                         uint32_t count, struct profd_error *e);

/* Source files and lines of functions, from DWARF's line tables. */

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
