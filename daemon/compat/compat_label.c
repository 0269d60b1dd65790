#include "compat/compat_label.h"

#include <string.h>

void compat_prose_flat(struct buffer *out)
{
    buffer_add_text(out, "\n"
                         "How to read the flat profile. A line stands for one function; the ones that took\n"
                         "most time come first, then those called most often, then by name.\n"
                         "\n"
                         " % time              share of all ticks that fell into the function itself\n"
                         " cumulative seconds  self seconds of this line and of all lines above\n"
                         " self seconds        time in the function itself, without what it called\n"
                         " calls               calls from other functions; blank where none was counted\n"
                         " self .../call       self time divided by calls, in the unit of the heading\n"
                         " total .../call      the same with the time of what it called\n"
                         " name                the function\n"
                         "\n"
                         "Calls were counted; times were sampled. A call's time is an average over all\n"
                         "callers, and a time of few ticks may be off by as much again.\n"
                         "(End of the flat profile's explanation.)\n");
}

void compat_prose_graph(struct buffer *out)
{
    buffer_add_text(out, "\n"
                         "How to read the call graph. Each entry, between two dashed lines, is about the\n"
                         "function of the line that begins with an index; entries with more time, their\n"
                         "own and that of what they called, come first.\n"
                         "\n"
                         " the entry's line    index; share of all time; own time; time of what it called;\n"
                         "                     calls from others, + calls by itself; name and index\n"
                         " lines above it      its callers: how much of its own time, and of that of what\n"
                         "                     it called, is charged to them; their calls / all calls\n"
                         " lines below it      what it called: the time that this charged to the entry;\n"
                         "                     calls from here / all calls\n"
                         " <spontaneous>       no caller was seen\n"
                         " <cycle N>           functions that call each other in a circle. They share one\n"
                         "                     entry \"as a whole\"; calls among them carry no time\n"
                         " [N], (N)            where the entry stands; round brackets: it is not printed\n"
                         "\n"
                         "Time is charged to callers in proportion to their calls, as if every call had\n"
                         "taken equally long.\n"
                         "(End of the call graph's explanation.)\n");
}

void compat_prose_graph_old(struct buffer *out)
{
    buffer_add_text(out, "\n\n\ncall graph profile:\n");
    compat_prose_graph(out);
}

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
