#include "compat/compat.h"

#include <inttypes.h>
#include <string.h>

#include "compat/compat_callgraph.h"
#include "compat/compat_label.h"
#include "compat/compat_order.h"
#include "compat/compat_run.h"
#include "compat/compat_sort.h"
#include "core/buffer_number.h"

/* -C: how often each function was called, by source file and line. */

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

/* Appends a line for each function that was called; with -z, for every function. NO_MEMORY. O(symbols log symbols). */
static enum profd_status compat_executions_print(const struct compat_run *r, struct arena *a, struct buffer *out,
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

/* The index by function name (reference 3.6). */

/* Writes "<cycle 1>" and a NUL; returns its length. */
static size_t cycle_name(char text[24], uint32_t number)
{
    memcpy(text, "<cycle ", 7);
    char *end = buffer_put_u64(text + 7, number, 0);
    memcpy(end, ">", 2);
    return (size_t)(end + 1 - text);
}

/* As in gprof, the width of a column does not include the blanks around the index. */
static size_t item_print(const struct compat_run *r, uint32_t node, size_t column, size_t start, struct buffer *out)
{
    char text[COMPAT_LABEL_INDEX];
    if (r->options.traditional) {
        /* Two fields of fixed width; longer names are cut. */
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

/* Appends the index in three columns, without the form feed before it. NO_MEMORY; reaching the limit of the buffer is
 * recorded in the buffer. O(symbols log symbols). */
static enum profd_status compat_index_print(const struct compat_run *r, struct arena *a, struct buffer *out,
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

/* The flat profile (reference 3.6). */

/* Bytes of a line without its name. */
#define LINE_MOST (5 * BUFFER_FIXED_MOST + 64)

struct unit {
    char prefix;
    double scale;
};

static const struct unit units[] = {{'T', 1e-12}, {'G', 1e-9}, {'M', 1e-6}, {'K', 1e-3}, {' ', 1},   {'m', 1e3},
                                    {'u', 1e6},   {'n', 1e9},  {'p', 1e12}, {'f', 1e15}, {'a', 1e18}};

/* The unit in which the most expensive call has one to three digits before the point; the first unit if there is none.
 */
static const struct unit *unit_choose(const struct compat_run *r)
{
    const struct compat_graph *g = &r->graph;
    if (r->options.traditional) {
        return &units[5];
    }
    double top = 0.0;
    for (uint32_t v = 0; v < g->symbols; v++) {
        const struct compat_node *node = &g->node[v];
        if (node->calls == 0) {
            continue;
        }
        double time = (node->time + node->child) / (double)node->calls;
        top = time > top ? time : top;
    }
    if (top <= 0.0) {
        return &units[0];
    }
    top /= compat_run_rate(r);
    for (unsigned i = 0; i < sizeof units / sizeof *units; i++) {
        if (units[i].scale * top >= 1.0 && units[i].scale * top < 1000.0) {
            return &units[i];
        }
    }
    return &units[0];
}

static void line_print(const struct compat_run *r, uint32_t v, const struct unit *u, double total, double sum,
                       struct buffer *out)
{
    const struct compat_node *node = &r->graph.node[v];
    double rate = compat_run_rate(r), time = node->time;
    bool old = r->options.traditional;
    char *p = buffer_open(out, LINE_MOST);
    if (p == NULL) {
        return;
    }
    p = buffer_put_fixed(p, total > 0.0 ? 100 * time / total : 0.0, old ? 5 : 6, old ? 1 : 2);
    *p++ = ' ';
    p = buffer_put_fixed(p, sum / rate, old ? 10 : 9, 2);
    *p++ = ' ';
    p = buffer_put_fixed(p, time / rate, 8, 2);
    *p++ = ' ';
    if (node->calls != 0) {
        double calls = (double)node->calls;
        p = buffer_put_u64(p, node->calls, 8);
        *p++ = ' ';
        p = buffer_put_fixed(p, u->scale * time / rate / calls, 8, 2);
        *p++ = ' ';
        p = buffer_put_fixed(p, u->scale * (time + node->child) / rate / calls, 8, 2);
    } else {
        memset(p, ' ', 8 + 1 + 8 + 1 + 8);
        p += 8 + 1 + 8 + 1 + 8;
    }
    *p++ = ' ';
    *p++ = ' ';
    buffer_close(out, p);
    if (old) {
        compat_label_add(r, v, out);
    } else {
        buffer_add_text(out, r->symbols.name[v]);
    }
    buffer_add_char(out, '\n');
}

/* Prints the lines above the headings. Returns the time that is 100 %. */
static double title_print(const struct compat_run *r, struct buffer *out)
{
    double total = r->hist.total, rate = compat_run_rate(r);
    bool old = r->options.traditional;
    if (old && !r->options.brief) {
        buffer_add_text(out, "\n\n\nflat profile:\n");
        compat_prose_flat(out);
    }
    if (old) {
        buffer_add_format(out, "\ngranularity: each sample hit covers %" PRId64 " byte(s)", compat_run_granularity(r));
    } else {
        buffer_add_format(out, "Flat profile:\n\nEach sample counts as %g %s.\n", 1.0 / rate, r->hist.dimension);
    }
    if (total <= 0.0) {
        buffer_add_text(out, " no time accumulated\n\n");
        return 1.0;
    }
    if (old) {
        buffer_add_format(out, " for %.2f%% of %.2f %s\n\n", 100.0 / total, total / rate, r->hist.dimension);
    }
    return total;
}

/* Appends the listing. NO_MEMORY; reaching the limit of the buffer is recorded in the buffer. O(symbols log symbols).
 */
static enum profd_status compat_flat_print(const struct compat_run *r, struct arena *a, struct buffer *out,
                                           struct profd_error *e)
{
    const struct compat_graph *g = &r->graph;
    uint32_t *list = ARENA_ARRAY(a, g->symbols, uint32_t), n = 0;
    for (uint32_t v = 0; v < g->symbols && list != NULL; v++) {
        if ((r->options.all_symbols || g->node[v].calls != 0 || g->node[v].time != 0.0) &&
            compat_filter_on(&r->filter, COMPAT_FLAT, v)) {
            list[n++] = v;
        }
    }
    if (list == NULL || compat_order_flat(g, &r->symbols, list, n, a) != PROFD_OK) {
        return profd_error_set(e, PROFD_NO_MEMORY, "no memory for a flat profile of %u symbols", g->symbols);
    }

    double total = title_print(r, out), sum = 0.0;
    const struct unit *u = unit_choose(r);
    const char *dimension = r->hist.dimension;
    char unit[8] = {u->prefix, r->hist.abbreviation, '/', 'c', 'a', 'l', 'l', '\0'};
    buffer_add_format(out, "%5.5s %10.10s %8.8s %8.8s %8.8s %8.8s  %-8.8s\n", "%  ", "cumulative", "self  ", "",
                      "self  ", "total ", "");
    buffer_add_format(out, "%5.5s %9.9s  %8.8s %8.8s %8.8s %8.8s  %-8.8s\n", "time", dimension, dimension, "calls",
                      unit, unit, "name");
    for (uint32_t i = 0; i < n && !out->failed; i++) {
        sum += g->node[list[i]].time;
        line_print(r, list[i], u, total, sum, out);
    }
    if (!r->options.traditional && !r->options.brief) {
        compat_prose_flat(out);
    }
    return PROFD_OK;
}

enum profd_status compat_run_open(struct compat_run *r, const struct compat_options *options,
                                  const struct object *object, struct arena *a, struct profd_error *e)
{
    struct compat_run run = {.options = *options, .object = object};
    TRY(compat_symbols_choose(object, options, a, &run.symbols, e));
    TRY(compat_filter_init(options->specs, options->spec_count, &run.symbols, a, &run.filter, e));
    TRY(compat_symbols_name(&run.symbols, options, a, e));
    *r = run;
    return PROFD_OK;
}

enum profd_status compat_run_count(struct compat_run *r, const struct counts *counts, struct arena *a,
                                   struct profd_error *e)
{
    struct compat_calls calls = {0};
    r->has_histogram = r->has_histogram || counts->histogram_count > 0;
    r->has_arcs = r->has_arcs || counts->arc_count > 0;
    TRY(compat_hist_assign(counts, &r->symbols, &r->filter, a, &r->hist, e));
    if (r->options.static_calls && r->has_arcs) {
        TRY(compat_calls_find(r->object, &r->symbols, &r->hist, a, &calls, e));
    }
    TRY(compat_arcs_tally(counts, &r->symbols, &r->filter, &calls, a, &r->arcs, e));
    TRY(compat_cycles_find(&r->arcs, r->symbols.count, a, &r->cycles, e));
    return compat_graph_build(&r->symbols, &r->filter, &r->hist, &r->arcs, &r->cycles, a, &r->graph, e);
}

/* The styles to print. If none was requested, the counts decide. */
static unsigned styles_choose(const struct compat_run *r)
{
    const struct compat_options *o = &r->options;
    if (o->styles != 0) {
        return o->styles;
    }
    unsigned styles = r->has_histogram || r->has_arcs ? 0 : COMPAT_STYLE_COUNTS;
    styles |= r->has_histogram ? COMPAT_STYLE_FLAT : 0;
    styles |= r->has_arcs ? COMPAT_STYLE_GRAPH : 0;
    styles &= ~((o->no_flat ? COMPAT_STYLE_FLAT : 0) | (o->no_graph ? COMPAT_STYLE_GRAPH : 0) |
                (o->no_counts ? COMPAT_STYLE_COUNTS : 0));
    return styles;
}

typedef enum profd_status print_part(const struct compat_run *r, struct arena *a, struct buffer *out,
                                     struct profd_error *e);

enum profd_status compat_run_print(const struct compat_run *r, struct arena *a, struct buffer *out,
                                   struct profd_error *e)
{
    unsigned styles = styles_choose(r);
    if ((styles & COMPAT_STYLE_FLAT) != 0 && !r->has_histogram) {
        return profd_error_set(e, PROFD_REFUSED, "gmon.out file is missing histogram");
    }
    if ((styles & COMPAT_STYLE_GRAPH) != 0 && !r->has_arcs) {
        return profd_error_set(e, PROFD_REFUSED, "gmon.out file is missing call-graph data");
    }
    bool old = r->options.traditional;
    const struct {
        unsigned style;
        print_part *print;
    } parts[] = {{old ? COMPAT_STYLE_GRAPH : 0, compat_callgraph_print},
                 {COMPAT_STYLE_FLAT, compat_flat_print},
                 {old ? 0 : COMPAT_STYLE_GRAPH, compat_callgraph_print},
                 {COMPAT_STYLE_GRAPH, compat_index_print},
                 {COMPAT_STYLE_COUNTS, compat_executions_print}};
    size_t before = out->size;
    uint64_t drained = out->drained;
    bool follows = r->options.follows;
    enum profd_status status = PROFD_OK;
    for (unsigned i = 0; i < sizeof parts / sizeof *parts && status == PROFD_OK; i++) {
        if ((styles & parts[i].style) == 0) {
            continue;
        }
        if (old && !r->options.brief && parts[i].print == compat_callgraph_print) {
            compat_prose_graph_old(out);
        }
        if (follows) {
            buffer_add_text(out, "\f\n");
        }
        follows = true;
        status = parts[i].print(r, a, out, e);
    }
    if (status == PROFD_OK && out->failed && out->drain == NULL) {
        status = profd_error_set(e, PROFD_TOO_LARGE, "the listing does not fit into %zu bytes", out->limit);
    }
    if (status != PROFD_OK && out->drained == drained) {
        out->size = before;
    }
    return status;
}

enum profd_status compat_print(const struct compat_options *options, const struct object *object,
                               const struct counts *counts, struct arena *a, struct buffer *out, struct profd_error *e)
{
    struct compat_run r;
    TRY(compat_run_open(&r, options, object, a, e));
    TRY(compat_run_count(&r, counts, a, e));
    return compat_run_print(&r, a, out, e);
}
