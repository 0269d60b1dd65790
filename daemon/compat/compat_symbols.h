/* gprof's table of symbols (reference rules S1–S8): which symbols of .symtab count, which of several at one address is
 * kept, where each ends. "Table order" is ascending by address. */
#ifndef PROFD_COMPAT_COMPAT_SYMBOLS_H
#define PROFD_COMPAT_COMPAT_SYMBOLS_H

#include <stdbool.h>
#include <stdint.h>

#include "compat/compat_options.h"
#include "core/arena.h"
#include "core/object.h"
#include "proto/status.h"

#define COMPAT_NONE UINT32_MAX

#define COMPAT_SYMBOL_FUNCTION 1u /* STT_FUNC: may be called */
#define COMPAT_SYMBOL_STATIC 2u   /* local */

/* Parallel arrays of count entries. Symbol sizes play no part: an entry ends where the next begins. */
struct compat_symbols {
    uint32_t count;
    uint64_t *address; /* strictly ascending */
    uint64_t *end;     /* last address it owns; the last entry's is the end of .text and may lie below its address */
    const char **raw;  /* name in the symbol table */
    const char **name; /* name shown: demangled */
    const char **file; /* source path, "" if unknown */
    uint32_t *line;    /* 0 if unknown */
    uint8_t *flags;
    const struct object *object;
    uint32_t *met; /* the object's symbols that count, before one of each address was chosen; in its order */
    uint32_t met_count;
    uint32_t *stripe; /* entries before each of stripes stretches of 2^stripe_bits addresses from the first entry on;
                         may be NULL */
    uint32_t stripes;
    unsigned stripe_bits;
};

/* Chooses from the symbols of .symtab as the options say (no_static, only_functions, lines). Strings are borrowed from
 * the object. REFUSED if it has no .text or no symbol that gprof would take. O(symbols log symbols). */
enum profd_status compat_symbols_choose(const struct object *object, const struct compat_options *options,
                                        struct arena *a, struct compat_symbols *out, struct profd_error *e);

/* -l's table: an entry for each change of the source line or its function in [low, high), none of them a function,
 * beside the others; the last one ends before end. For choose. NO_MEMORY. O(symbols + lines). */
enum profd_status compat_symbols_add_lines(struct compat_symbols *s, uint64_t low, uint64_t high, uint64_t end,
                                           struct arena *a);

/* Names as they are printed: raw, demangled, with file and line. NO_MEMORY. O(symbols). */
enum profd_status compat_symbols_name(struct compat_symbols *s, const struct compat_options *options, struct arena *a,
                                      struct profd_error *e);

/* The path that ends in the file name base; of several, the last one in the symbol table. NOT_FOUND, NO_MEMORY.
 * O(symbols × matching paths). */
enum profd_status compat_symbols_source(const struct compat_symbols *s, const char *base, struct arena *a,
                                        const char **out);

/* The last part of a path. */
const char *compat_symbols_file(const char *path);

/* Makes finding fast: at most as many stripes as there are entries. For choose. NO_MEMORY. O(count). */
enum profd_status compat_symbols_stripe(struct compat_symbols *s, struct arena *a);

/* The entry that owns the address, or COMPAT_NONE. O(1) where entries are spread evenly over the addresses, else O(log
 * count). */
uint32_t compat_symbols_find(const struct compat_symbols *s, uint64_t address);

#endif
