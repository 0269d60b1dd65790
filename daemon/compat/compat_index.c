#include "compat/compat_index.h"

#include <string.h>

#include "compat/compat_label.h"
#include "core/buffer_number.h"

/* Writes "<cycle 1>" and a NUL; returns its length. */
static size_t cycle_name(char text[24], uint32_t number)
{
    memcpy(text, "<cycle ", 7);
    char *end = buffer_put_u64(text + 7, number, 0);
    memcpy(end, ">", 2);
    return (size_t)(end + 1 - text);
}

/* Two fields of fixed width; longer names are cut. */
static size_t item_print_old(const struct compat_run *r, uint32_t node, struct buffer *out)
{
    char index[COMPAT_LABEL_INDEX];
    (void)compat_label_index(index, r->graph.node[node].index, r->graph.node[node].shown);
    if (node >= r->graph.symbols) {
        char cycle[24];
        (void)cycle_name(cycle, node - r->graph.symbols + 1);
        buffer_add_format(out, "%6.6s %-19.19s", index, cycle);
    } else {
        buffer_add_format(out, "%6.6s %-19.19s", index, r->symbols.raw[node]);
    }
    return 0;
}

/* As in gprof, the width of a column does not include the blanks around the index. */
static size_t item_print(const struct compat_run *r, uint32_t node, size_t column, size_t start, struct buffer *out)
{
    char text[COMPAT_LABEL_INDEX];
    if (r->options.traditional) {
        return item_print_old(r, node, out);
    }
    column += compat_label_index(text, r->graph.node[node].index, r->graph.node[node].shown);
    for (; column < start + 5; column++) {
        buffer_add_char(out, ' ');
    }
    buffer_add_char(out, ' ');
    buffer_add_text(out, text);
    buffer_add_char(out, ' ');
    if (node >= r->graph.symbols) {
        char cycle[24];
        size_t n = cycle_name(cycle, node - r->graph.symbols + 1);
        buffer_add(out, cycle, n);
        return column + n;
    }
    buffer_add_text(out, r->symbols.name[node]);
    column += strlen(r->symbols.name[node]);
    const char *file = r->symbols.file[node];
    if ((r->symbols.flags[node] & COMPAT_SYMBOL_STATIC) == 0 || file[0] == '\0' || r->options.lines) {
        return column;
    }
    if (!r->options.full_paths) {
        file = compat_symbols_file(file);
    }
    buffer_add_text(out, " (");
    buffer_add_text(out, file);
    buffer_add_char(out, ')');
    return column + strlen(file) + 3;
}

enum profd_status compat_index_print(const struct compat_run *r, struct arena *a, struct buffer *out,
                                     struct profd_error *e)
{
    const struct compat_graph *g = &r->graph;
    uint32_t *list = ARENA_ARRAY(a, g->nodes, uint32_t);
    if (list == NULL) {
        return profd_error_set(e, PROFD_NO_MEMORY, "no memory for an index of %u symbols", g->symbols);
    }
    uint32_t n = 0;
    for (uint32_t i = 0; i < g->symbols; i++) {
        uint32_t v = g->by_name[i];
        if (r->options.all_symbols || g->node[v].calls != 0 || g->node[v].time != 0.0) {
            list[n++] = v;
        }
    }
    for (uint32_t node = g->symbols; node < g->nodes; node++) {
        list[n++] = node;
    }

    buffer_add_text(out, "Index by function name\n\n");
    size_t width = ((r->options.width == 0 ? 80u : (size_t)r->options.width) - 1) / 3;
    uint32_t rows = n / 3 + (n % 3 != 0);
    for (uint32_t row = 0; row < rows; row++) {
        size_t column = 0, start = 0;
        for (uint64_t i = row; i < n; i += rows, start += width) {
            column = item_print(r, list[i], column, start, out);
        }
        buffer_add_char(out, '\n');
    }
    return PROFD_OK;
}
