#include "compat/compat_executions.h"

#include <inttypes.h>
#include <string.h>

#include "compat/compat_sort.h"

/* Compares by file and line if both symbols have them, otherwise by address, as gprof does. This is no order: three
 * symbols can be each before the next. */
static int place_compare(const void *context, uint32_t x, uint32_t y)
{
    const struct compat_symbols *s = &((const struct compat_run *)context)->symbols;
    if (s->file[x][0] != '\0' && s->file[y][0] != '\0') {
        int order = strcmp(s->file[x], s->file[y]);
        if (order != 0) {
            return order;
        }
        if (s->line[x] != s->line[y]) {
            return s->line[x] < s->line[y] ? -1 : 1;
        }
    }
    return s->address[x] < s->address[y] ? -1 : s->address[x] > s->address[y];
}

enum profd_status compat_executions_print(const struct compat_run *r, struct arena *a, struct buffer *out,
                                          struct profd_error *e)
{
    const struct compat_symbols *s = &r->symbols;
    uint32_t *list = ARENA_ARRAY(a, s->count, uint32_t), *scratch = ARENA_ARRAY(a, s->count, uint32_t);
    if (list == NULL || scratch == NULL) {
        return profd_error_set(e, PROFD_NO_MEMORY, "no memory for the counts of %u symbols", s->count);
    }
    uint32_t n = 0;
    for (uint32_t v = 0; v < s->count; v++) {
        if (compat_filter_on(&r->filter, COMPAT_EXEC, v)) {
            list[n++] = v;
        }
    }
    compat_sort(list, scratch, n, place_compare, r);
    for (uint32_t i = 0; i < n; i++) {
        uint32_t v = list[i];
        if (r->graph.node[v].calls == 0 && !r->options.all_symbols) {
            continue;
        }
        buffer_add_text(out, s->file[v][0] != '\0' ? s->file[v] : "<unknown>");
        buffer_add_char(out, ':');
        buffer_add_u64(out, s->line[v], 0);
        buffer_add_text(out, ": (");
        buffer_add_text(out, s->raw[v]);
        buffer_add_format(out, ":0x%" PRIx64 ") %" PRIu64 " executions\n", s->address[v], r->graph.node[v].calls);
    }
    return PROFD_OK;
}
