/* Which symbols and arcs take part in what. gprof keeps a table of address ranges to include and one to exclude for
 * every purpose; for symbols a bit each says the same. */
#ifndef PROFD_COMPAT_COMPAT_FILTER_H
#define PROFD_COMPAT_COMPAT_FILTER_H

#include <stdbool.h>
#include <stdint.h>

#include "compat/compat_options.h"
#include "compat/compat_spec.h"
#include "compat/compat_symbols.h"
#include "core/arena.h"
#include "proto/status.h"

/* Arcs from symbols in left to those in one of the right ranges. */
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

/* The user's specs, and the profiler's own functions (mcount and its kin), which are excluded from everything. Of
 * several ranges in one table that begin at the same symbol gprof keeps one, the one given last, however long the
 * others are. O(symbols × specs). */
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

/* Included by name, or nothing is included by name and it is not excluded. */
static inline bool compat_filter_on(const struct compat_filter *f, enum compat_purpose purpose, uint32_t symbol)
{
    if (compat_filter_includes(f, purpose, symbol)) {
        return true;
    }
    return (f->including >> purpose & 1) == 0 && !compat_filter_excludes(f, purpose, symbol);
}

/* Is an arc record between these symbols loaded? O(rules). */
bool compat_filter_arc(const struct compat_filter *f, const struct compat_symbols *s, uint32_t from, uint32_t to);

#endif
