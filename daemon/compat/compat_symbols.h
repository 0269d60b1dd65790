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

/* Parallel arrays of count entries. Symbol sizes are not used: an entry ends where the next one begins. */
struct compat_symbols {
    uint32_t count;
    uint64_t *address; /* strictly ascending */
    uint64_t
        *end; /* last address that it owns; that of the last entry is the end of .text and may be below its address */
    const char **raw;  /* name in the symbol table */
    const char **name; /* name shown: demangled */
    const char **file; /* source path, "" if unknown */
    uint32_t *line;    /* 0 if unknown */
    uint8_t *flags;
    const struct object *object;
    uint32_t *met; /* usable symbols of the object in its order, before one for each address was chosen */
    uint32_t met_count;
    uint32_t *stripe; /* number of entries before each stripe of 2^stripe_bits addresses, from the first entry on; may
                         be NULL */
    uint32_t stripes;
    unsigned stripe_bits;
};

/* Chooses symbols of .symtab by the options (no_static, only_functions, lines). Strings are borrowed from the object.
 * REFUSED: it has no .text or no symbol that gprof uses. O(symbols log symbols). */
enum profd_status compat_symbols_choose(const struct object *object, const struct compat_options *options,
                                        struct arena *a, struct compat_symbols *out, struct profd_error *e);

/* Makes the printed names: raw, demangled, with file and line. NO_MEMORY. O(symbols). */
enum profd_status compat_symbols_name(struct compat_symbols *s, const struct compat_options *options, struct arena *a,
                                      struct profd_error *e);

/* Finds the path that ends in the file name base; of several, the last one in the symbol table. NOT_FOUND, NO_MEMORY.
 * O(symbols × matching paths). */
enum profd_status compat_symbols_source(const struct compat_symbols *s, const char *base, struct arena *a,
                                        const char **out);

/* The last part of a path. */
const char *compat_symbols_file(const char *path);

/* Builds the stripes, at most as many as there are entries. Called by choose. NO_MEMORY. O(count). */
enum profd_status compat_symbols_stripe(struct compat_symbols *s, struct arena *a);

/* Returns the entry that owns the address, or COMPAT_NONE. O(1) if entries are spread evenly over the addresses,
 * otherwise O(log count). */
uint32_t compat_symbols_find(const struct compat_symbols *s, uint64_t address);

#endif
