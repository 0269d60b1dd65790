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

/* Addresses [low, high] of adjacent symbols that match. high may be below low: the last symbol owns no address. */
struct compat_range {
    uint64_t low, high;
    uint32_t first; /* the symbol at low */
};

#endif
