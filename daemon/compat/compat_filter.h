/* Decides which symbols and arcs are used for what. For each purpose, gprof keeps one table of included address ranges
 * and one of excluded ones; here these are bits of the symbols. */
#ifndef PROFD_COMPAT_COMPAT_FILTER_H
#define PROFD_COMPAT_COMPAT_FILTER_H

#include <stdbool.h>
#include <stdint.h>

#include "compat/compat_options.h"
#include "compat/compat_symbols.h"
#include "core/arena.h"
#include "proto/status.h"

/* A parsed symspec and the symbols it matches. */

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

/* Matches arcs from symbols in left to symbols in one of the right ranges. */
struct compat_arc_rule {
    struct compat_range left;
    const struct compat_range *right;
    uint32_t right_count;
};

struct compat_arc_rules {
    struct compat_arc_rule *list;
    uint32_t count;
};

struct compat_filter {
    uint8_t *included, *excluded; /* by symbol, bit 1 << purpose */
    uint8_t including;            /* bit 1 << purpose: the purpose's table of included symbols is not empty */
    struct compat_arc_rules arcs_included, arcs_excluded;
};

/* Reads the user's specs, and excludes the profiler's own functions (mcount and similar) from everything. If several
 * ranges of one table begin at the same symbol, gprof keeps the one given last, whatever its length. O(symbols ×
 * specs). */
enum profd_status compat_filter_init(const struct compat_spec *specs, uint32_t spec_count,
                                     const struct compat_symbols *s, struct arena *a, struct compat_filter *out,
                                     struct profd_error *e);

static inline bool compat_filter_includes(const struct compat_filter *f, enum compat_purpose purpose, uint32_t symbol)
{
    return (f->included[symbol] >> purpose & 1) != 0;
}

static inline bool compat_filter_excludes(const struct compat_filter *f, enum compat_purpose purpose, uint32_t symbol)
{
    return (f->excluded[symbol] >> purpose & 1) != 0;
}

/* True if the symbol is included by name, or if no symbol is included by name and it is not excluded. */
static inline bool compat_filter_on(const struct compat_filter *f, enum compat_purpose purpose, uint32_t symbol)
{
    if (compat_filter_includes(f, purpose, symbol)) {
        return true;
    }
    return (f->including >> purpose & 1) == 0 && !compat_filter_excludes(f, purpose, symbol);
}

/* True if arc records between these symbols are loaded. O(rules). */
bool compat_filter_arc(const struct compat_filter *f, const struct compat_symbols *s, uint32_t from, uint32_t to);

#endif
