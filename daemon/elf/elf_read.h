/* Reads ELF and machine code into the struct of core/object.h. It has no sandbox: broker.h runs it in one; profctl's
 * local verbs and sanitizer builds call it directly. */
#ifndef PROFD_ELF_ELF_READ_H
#define PROFD_ELF_ELF_READ_H

#include <stdbool.h>

#include "core/arena.h"
#include "core/object.h"
#include "proto/status.h"

struct elf_read_options {
    bool static_arcs; /* decode the machine code */
    bool demangle;
    bool lines;   /* file and line of static functions, if there is DWARF (gprof's index shows them) */
    bool rows;    /* with lines: the object's lines, without functions */
    bool inlined; /* names of inlined functions, if there is DWARF */
    bool instructions;
    /* For local verbs: */
    bool all_lines;       /* file and line of every function, not only static ones */
    bool line_table;      /* the object's lines, with functions */
    bool text;            /* the bytes of .text */
    bool long_names;      /* names are not cut at LIMIT_SYMBOL_NAME */
    bool no_rust, no_cxx; /* do not demangle by the rules of Rust, of C++ */
};

/* Reads the file by libelf (never by mmap: the owner may truncate it). debug is −1 or a separate debug file with the
 * same build-id. MALFORMED, with the rule and the value, if the file is not an ELF executable or shared object. */
enum profd_status elf_read(int executable, int debug, const struct elf_read_options *options, struct arena *a,
                           struct object **out, struct profd_error *e);

/* A loaded part of the file: size bytes at offset are at address. */
struct elf_load {
    uint64_t offset, address, size;
};

/* The PT_LOAD segments in the order of the table, in the arena. MALFORMED as elf_read. */
enum profd_status elf_read_loads(int executable, struct arena *a, struct elf_load **out, uint32_t *count,
                                 struct profd_error *e);

/* Reads only the build-id, from the notes or by hashing; for clients. LIMIT: more than `most` bytes of code are to be
 * hashed. Memory does not depend on their number. */
enum profd_status elf_read_id(int executable, uint64_t most, struct buildid *id, struct profd_error *e);

#endif
