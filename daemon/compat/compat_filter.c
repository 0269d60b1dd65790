#include "compat/compat_filter.h"

#include <string.h>

static bool is_profiler(const char *raw)
{
    static const char *const names[] = {"_gprof_mcount", "mcount", "_mcount", "__mcount", "__mcount_internal", "__mcleanup"};
    for (unsigned i = 0; i < sizeof names / sizeof *names; i++)
        if (strcmp(raw, names[i]) == 0)
            return true;
    return false;
}

enum profd_status compat_filter_init(const struct compat_symbols *s, struct arena *a, struct compat_filter *out,
                                     struct profd_error *e)
{
    struct compat_filter f = {ARENA_ARRAY(a, s->count, uint8_t), ARENA_ARRAY(a, s->count, uint8_t), 0};
    if (f.included == NULL || f.excluded == NULL)
        return profd_error_set(e, PROFD_NO_MEMORY, "no memory for a filter of %u symbols", s->count);
    for (uint32_t i = 0; i < s->count; i++)
        /* A last symbol beyond .text owns no address, so no range holds it. */
        if (s->end[i] >= s->address[i] && is_profiler(s->raw[i]))
            f.excluded[i] = 1u << COMPAT_FLAT | 1u << COMPAT_GRAPH | 1u << COMPAT_TIME;
    *out = f;
    return PROFD_OK;
}
