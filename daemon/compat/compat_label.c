#include "compat/compat_label.h"

#include <string.h>

/* " <cycle 4294967295> [4294967295]" */
#define LABEL_EXTRA 32u

static char *number_put(char *p, uint32_t value)
{
    char digits[10];
    unsigned n = 0;
    do {
        digits[n++] = (char)('0' + value % 10);
    } while ((value /= 10) != 0);
    while (n > 0) {
        *p++ = digits[--n];
    }
    return p;
}

static char *index_put(char *p, uint32_t index, bool shown)
{
    *p++ = shown ? '[' : '(';
    p = number_put(p, index);
    *p++ = shown ? ']' : ')';
    return p;
}

size_t compat_label_index(char text[COMPAT_LABEL_INDEX], uint32_t index, bool shown)
{
    char *end = index_put(text, index, shown);
    *end = '\0';
    return (size_t)(end - text);
}

static char *label_put(char *p, const struct compat_run *r, uint32_t v)
{
    size_t n = strlen(r->symbols.name[v]);
    memcpy(p, r->symbols.name[v], n);
    p += n;
    if (r->cycles.number[v] != 0) {
        memcpy(p, " <cycle ", 8);
        p = number_put(p + 8, r->cycles.number[v]);
        *p++ = '>';
    }
    *p++ = ' ';
    return index_put(p, r->graph.node[v].index, r->graph.node[v].shown);
}

void compat_label_add(const struct compat_run *r, uint32_t symbol, struct buffer *out)
{
    char text[COMPAT_LABEL_INDEX];
    buffer_add_text(out, r->symbols.name[symbol]);
    if (!r->has_arcs) {
        return;
    }
    if (r->cycles.number[symbol] != 0) {
        buffer_add_text(out, " <cycle ");
        buffer_add_u64(out, r->cycles.number[symbol], 0);
        buffer_add_char(out, '>');
    }
    buffer_add_char(out, ' ');
    buffer_add(out, text, compat_label_index(text, r->graph.node[symbol].index, r->graph.node[symbol].shown));
}

enum profd_status compat_labels_build(const struct compat_run *r, struct arena *a, struct compat_labels *out,
                                      struct profd_error *e)
{
    uint32_t n = r->graph.symbols;
    size_t bytes = 1;
    for (uint32_t v = 0; v < n; v++) {
        bytes += strlen(r->symbols.name[v]) + LABEL_EXTRA;
    }
    char *text = arena_take(a, bytes);
    size_t *first = ARENA_ARRAY(a, (size_t)n + 1, size_t);
    if (text == NULL || first == NULL) {
        return profd_error_set(e, PROFD_NO_MEMORY, "no memory for %zu bytes of names", bytes);
    }
    char *p = text;
    for (uint32_t v = 0; v < n; v++) {
        p = label_put(p, r, v);
        first[v + 1] = (size_t)(p - text);
    }
    *out = (struct compat_labels){text, first};
    return PROFD_OK;
}
