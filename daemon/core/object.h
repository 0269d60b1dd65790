/* What an ELF object says about itself: symbols, executable ranges, static arcs. Made by the sandboxed worker, stored
 * per (build, variant), and trusted only after object_decode has validated it: the worker may be owned by the file it
 * read. */
#ifndef PROFD_CORE_OBJECT_H
#define PROFD_CORE_OBJECT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/arena.h"
#include "core/buffer.h"
#include "proto/buildid.h"
#include "proto/status.h"

enum object_bind { OBJECT_BIND_LOCAL, OBJECT_BIND_GLOBAL, OBJECT_BIND_WEAK, OBJECT_BIND_UNIQUE };
enum object_type { OBJECT_TYPE_NONE, OBJECT_TYPE_DATA, OBJECT_TYPE_FUNCTION, OBJECT_TYPE_IFUNC, OBJECT_TYPE_OTHER };

#define OBJECT_SYMBOL_EXECUTABLE 1u /* its section has SHF_EXECINSTR */
#define OBJECT_SYMBOL_DYNAMIC 2u    /* from .dynsym */
#define OBJECT_SYMBOL_DEBUG 4u      /* from the separate debug file */
#define OBJECT_SYMBOL_UNLISTED 8u   /* a local name of .symtab that GNU gprof leaves out */

/* Symbols stand in the order of the symbol table. Left out: section and file symbols, undefined, common and absolute
 * ones, except __executable_start and etext; all others outside executable sections except weak ones that are no
 * data, which GNU gprof lists; names of nothing; the assembler's marks $x, $d, $a, $t of ARM, AArch64 and RISC-V. */
struct object_symbol {
    uint64_t address, size;
    uint32_t name;      /* offset into names */
    uint32_t demangled; /* offset into names; same as name where there is nothing to demangle */
    uint32_t file;      /* offset of the source file's path, 0 (the empty string) if unknown */
    uint32_t line;      /* 0 if unknown */
    uint8_t bind, type, flags;
    uint64_t code; /* hash of a function's code without addresses (elf/elf_code.c), < 2^56; 0 if unknown */
};

enum object_range_kind { OBJECT_RANGE_TEXT, OBJECT_RANGE_EXECUTABLE, OBJECT_RANGE_PLT, OBJECT_RANGE_SEGMENT };

/* [low, high). TEXT: the section .text; EXECUTABLE: another SHF_EXECINSTR section, or, where no function has a name,
 * the part of .text from the program's entry point on; PLT: .plt, .plt.got, .plt.sec; SEGMENT: a PT_LOAD segment with
 * execute permission. Ascending by (kind, low). */
struct object_range {
    uint64_t low, high;
    uint8_t kind;
};

enum object_arc_kind { OBJECT_ARC_CALL, OBJECT_ARC_TAIL };

/* A direct call or tail jump to another function's entry. to is the entry's address in this object, or 0 and
 * import the name of the imported function when it goes through the PLT (or, -fno-plt, a GOT word) out of the object.
 * from is the branch instruction's own address. Ascending by from. */
struct object_arc {
    uint64_t from, to;
    uint32_t import; /* offset into names, 0 if none */
    uint8_t kind;
};

/* A PLT slot: code at [address, address + size) jumps to the function of that name. Ascending by address. */
struct object_plt {
    uint64_t address;
    uint32_t size;
    uint32_t import; /* offset into names */
};

/* Code of one source line, without gaps. Ascending by low; units that contradict each other overlap. */
struct object_line {
    uint64_t low, high;
    uint32_t file, line; /* file: offset into names */
    uint32_t function;   /* index into line_functions; 0 if the function is unknown */
};

/* MD5 of a source file as DWARF 5 states it. A file has several if units were compiled from different texts of it. */
#define OBJECT_DIGEST_BYTES 16u
struct object_digest {
    uint32_t file; /* offset into names */
    uint8_t md5[OBJECT_DIGEST_BYTES];
};

/* A function that lines are of, perhaps one that exists as inlined copies only: offsets into names. */
struct object_line_function {
    uint32_t name, demangled;
};

struct object {
    struct buildid id;
    char variant[65]; /* SHA-256 over symbols and text, hex: two contents under one id differ here */
    uint16_t machine; /* e_machine */
    uint8_t bits;     /* 32 or 64 */
    bool big_endian;
    bool position_independent;            /* ET_DYN */
    bool has_names;                       /* at least one function symbol from .symtab, .dynsym or the debug file */
    bool only_dynamic;                    /* .symtab was missing, .dynsym was used */
    bool has_executable_start, has_etext; /* the symbols that bound a gmon.out */
    uint64_t executable_start, etext;
    uint32_t symbol_count, range_count, arc_count, plt_count;
    struct object_symbol *symbols;
    struct object_range *ranges;
    struct object_arc *arcs;
    struct object_plt *plt;
    /* Where all machine code was read: a return address stands behind a call of arcs of the usual
     * length (object_call_bytes), or is one of returns: behind another call, through a register for example. Ascending.
     * signal_returns: code that a signal handler returns to; no call stands before it. */
    bool knows_returns;
    uint32_t return_count, signal_return_count;
    uint64_t *returns, *signal_returns;
    /* Where debug information was read, the names of the functions that it has inlined copies of, each once, in strcmp
     * order. Static functions of several files have one name. */
    bool knows_inlined;
    uint32_t inlined_count;
    uint32_t *inlined; /* offsets into names */
    uint32_t name_bytes;
    const char *names;   /* NUL-terminated strings; offset 0 is the empty string */
    const uint8_t *text; /* the section .text as it stands in the file; NULL unless asked for. Never encoded */
    uint64_t text_address, text_size;
    /* Source lines: 0 unless they were read. They are stored without functions, as bytes that core/object.h
     * reads; a decoded object has these bytes in place of lines. */
    uint32_t line_count;
    struct object_line *lines;
    const uint8_t *line_bytes; /* NULL: the object was not decoded, or has no lines */
    size_t line_size;
    uint32_t digest_count;         /* of files with lines */
    struct object_digest *digests; /* ascending by (file, md5), each once */
    /* Instructions, if they were asked for. core/object.h reads and writes both. */
    uint32_t instruction_count, instruction_text_bytes;
    const char *instruction_texts;
    const uint8_t *instruction_bytes;
    size_t instruction_size;
    uint32_t line_function_count; /* with lines; the first one stands for no function. Never encoded */
    struct object_line_function *line_functions;
    const char *note; /* a sentence on what was wrong or left out ("" if nothing): shown on the build */
};

/* Encodes for the worker's pipe and for the store, into a new block that the caller frees. */
enum profd_status object_encode(const struct object *o, uint8_t **out, size_t *out_size, struct profd_error *e);

/* Decodes and validates: every limit of limits.h, offsets inside names, names NUL-terminated, enum
 * values, low ≤ high, ranges and arcs in order, the id and variant well-formed; all but lines and instructions, which
 * object_lines_find and object_instructions_find validate. Arrays live in the arena. O(bytes). */
enum profd_status object_decode(struct arena *a, const uint8_t *in, size_t n, struct object **out,
                                struct profd_error *e);

static inline const char *object_name(const struct object *o, uint32_t offset)
{
    return o->names + offset;
}

/* What stands before a return address. */
enum object_call {
    OBJECT_CALL_NONE,     /* no call: the address is none */
    OBJECT_CALL_POSSIBLE, /* a call of an unknown target, or the object does not know */
    OBJECT_CALL_DIRECT,   /* *arc */
    OBJECT_CALL_SIGNAL,   /* code that a signal handler returns to */
};
/* arc: untouched unless DIRECT. O(log arcs). */
enum object_call object_find_call(const struct object *o, uint64_t return_address, const struct object_arc **arc);

/* True if the object has inlined copies of a function with this raw name of n bytes, as far as is known. O(log names).
 */
bool object_has_inlined(const struct object *o, const char *name, size_t n);

/* True if the address lies in an executable range of any kind. O(ranges). */
bool object_holds(const struct object *o, uint64_t address);

/* What two objects of one build have in common. */

/* *adds: o has something that `more` lacks: a symbol, or more lines, digests, inlined functions, calls or instructions;
 * or the two are no copies of one file. A copy without debug information, or without local symbols, adds nothing.
 * *adds is untouched unless OK. NO_MEMORY. O(symbols). */
enum profd_status object_compare_content(const struct object *o, const struct object *more, struct arena *scratch,
                                         bool *adds, struct profd_error *e);

/* Reads the source lines of a decoded object from their stored form, which core/object.c describes. */

/* Reads all lines of a decoded object, validates them, and gives those that have an address in [low, high), in
 * ascending order, in the arena. *count is 0 if the object has no lines. MALFORMED if the bytes break a rule,
 * NO_MEMORY. O(bytes of lines). */
enum profd_status object_lines_find(const struct object *o, struct arena *a, uint64_t low, uint64_t high,
                                    struct object_line **out, uint32_t *count, struct profd_error *e);

/* The instructions of an object in their stored form, which core/object.h describes. */

struct object_instruction {
    uint64_t address;
    uint32_t size; /* bytes, > 0 */
    uint32_t text; /* offset into the object's instruction_texts; with a target, the target belongs behind it */
    bool targeted; /* a direct branch */
    uint64_t target;
};

/* Appends an instruction behind *last, which is zero at first, and makes it *last. Addresses ascend. */
void object_instructions_add(struct buffer *rows, struct object_instruction *last, const struct object_instruction *i);

/* Reads all instructions of a decoded object, validates them, and gives those that begin in [low, high), in ascending
 * order, in the arena. *count is 0 if the object has none there. MALFORMED if the bytes break a rule, NO_MEMORY.
 * O(bytes of instructions). */
enum profd_status object_instructions_find(const struct object *o, struct arena *a, uint64_t low, uint64_t high,
                                           struct object_instruction **out, uint32_t *count, struct profd_error *e);

/* Encodes an encoded object again, without its instructions, into a new block that the caller frees. As object_decode
 * and object_encode. */
enum profd_status object_instructions_remove(const uint8_t *in, size_t n, uint8_t **out, size_t *out_size,
                                             struct profd_error *e);

#endif
