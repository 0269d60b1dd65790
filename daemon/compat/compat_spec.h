/* A parsed symspec and the symbols it matches. */
#ifndef PROFD_COMPAT_COMPAT_SPEC_H
#define PROFD_COMPAT_COMPAT_SPEC_H

#include <stdbool.h>
#include <stdint.h>

#include "compat/compat_symbols.h"
#include "core/arena.h"
#include "proto/status.h"

/* One side of a spec. NULL and 0 match everything. */
struct compat_pattern {
    const char *file; /* whole path */
    bool no_file;     /* the file is that of no symbol: matches nothing */
    uint32_t line;
    const char *name; /* as in the symbol table */
};

/* Splits text at the last ':'. Without a ':', a spec that contains a '.' is a file, and one that begins with a digit is
 * a line. The file is the path that ends in the spec's file name; of several, the last one in the symbol table.
 * O(symbols) with a file. NO_MEMORY. */
enum profd_status compat_pattern_parse(const char *text, size_t n, const struct compat_symbols *s, struct arena *a,
                                       struct compat_pattern *out);

/* Addresses [low, high] of adjacent symbols that match. high may be below low: the last symbol owns no address. */
struct compat_range {
    uint64_t low, high;
    uint32_t first; /* the symbol at low */
};

/* Lists the matches, ascending. O(symbols). NO_MEMORY. */
enum profd_status compat_pattern_ranges(const struct compat_pattern *p, const struct compat_symbols *s, struct arena *a,
                                        struct compat_range **out, uint32_t *count);

#endif
