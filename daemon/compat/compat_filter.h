/* Which symbols take part in what. gprof keeps a table of address ranges to include and one to exclude for every purpose; as the
 * ranges always are whole symbols, a bit for each symbol says the same. */
#ifndef PROFD_COMPAT_COMPAT_FILTER_H
#define PROFD_COMPAT_COMPAT_FILTER_H

#include <stdbool.h>
#include <stdint.h>

#include "compat/compat_symbols.h"
#include "core/arena.h"
#include "proto/status.h"

enum compat_purpose { COMPAT_FLAT, COMPAT_GRAPH, COMPAT_TIME };

struct compat_filter {
    uint8_t *included, *excluded; /* by symbol, bit 1 << purpose */
    uint8_t including;            /* bit 1 << purpose: the purpose's table of included symbols is not empty */
};

/* The filter without options: the profiler's own functions (mcount and its kin) are excluded from everything. O(symbols). */
enum profd_status compat_filter_init(const struct compat_symbols *s, struct arena *a, struct compat_filter *out,
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
    if (compat_filter_includes(f, purpose, symbol))
        return true;
    return (f->including >> purpose & 1) == 0 && !compat_filter_excludes(f, purpose, symbol);
}

#endif
