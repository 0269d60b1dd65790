#include "compat/compat_flat.h"

#include <inttypes.h>
#include <string.h>

#include "compat/compat_label.h"
#include "compat/compat_prose.h"
#include "compat/compat_sort.h"

struct unit {
    char prefix;
    double scale;
};

static const struct unit units[] = {{'T', 1e-12}, {'G', 1e-9}, {'M', 1e-6}, {'K', 1e-3}, {' ', 1},
                                    {'m', 1e3},   {'u', 1e6},  {'n', 1e9},  {'p', 1e12}, {'f', 1e15}, {'a', 1e18}};

/* The unit in which the dearest call has one to three digits; the first one where there is none. */
static const struct unit *unit_choose(const struct compat_run *r)
{
    const struct compat_graph *g = &r->graph;
    if (r->options.traditional)
        return &units[5];
    double top = 0.0;
    for (uint32_t v = 0; v < g->symbols; v++) {
        if (g->calls[v] == 0)
            continue;
        double time = (g->time[v] + g->child[v]) / (double)g->calls[v];
        top = time > top ? time : top;
    }
    if (top <= 0.0)
        return &units[0];
    top /= compat_run_rate(r);
    for (unsigned i = 0; i < sizeof units / sizeof *units; i++)
        if (units[i].scale * top >= 1.0 && units[i].scale * top < 1000.0)
            return &units[i];
    return &units[0];
}

static void heading_print(const struct compat_run *r, const struct unit *u, struct buffer *out)
{
    const char *dimension = r->hist.dimension;
    char unit[8] = {u->prefix, r->hist.abbreviation, '/', 'c', 'a', 'l', 'l', '\0'};
    buffer_add_format(out, "%5.5s %10.10s %8.8s %8.8s %8.8s %8.8s  %-8.8s\n", "%  ", "cumulative", "self  ", "", "self  ",
                      "total ", "");
    buffer_add_format(out, "%5.5s %9.9s  %8.8s %8.8s %8.8s %8.8s  %-8.8s\n", "time", dimension, dimension, "calls", unit,
                      unit, "name");
}

static int flat_compare(const void *context, uint32_t x, uint32_t y)
{
    const struct compat_run *r = context;
    const struct compat_graph *g = &r->graph;
    if (g->time[x] < g->time[y] || g->time[x] > g->time[y])
        return g->time[x] > g->time[y] ? -1 : 1;
    if (g->calls[x] != g->calls[y])
        return g->calls[x] > g->calls[y] ? -1 : 1;
    return strcmp(r->symbols.raw[x], r->symbols.raw[y]);
}

static void line_print(const struct compat_run *r, uint32_t v, const struct unit *u, double total, double sum,
                       struct buffer *out)
{
    const struct compat_graph *g = &r->graph;
    double rate = compat_run_rate(r), time = g->time[v];
    bool old = r->options.traditional;
    buffer_add_fixed(out, total > 0.0 ? 100 * time / total : 0.0, old ? 5 : 6, old ? 1 : 2);
    buffer_add_char(out, ' ');
    buffer_add_fixed(out, sum / rate, old ? 10 : 9, 2);
    buffer_add_char(out, ' ');
    buffer_add_fixed(out, time / rate, 8, 2);
    buffer_add_char(out, ' ');
    if (g->calls[v] != 0) {
        double calls = (double)g->calls[v];
        buffer_add_u64(out, g->calls[v], 8);
        buffer_add_char(out, ' ');
        buffer_add_fixed(out, u->scale * time / rate / calls, 8, 2);
        buffer_add_char(out, ' ');
        buffer_add_fixed(out, u->scale * (time + g->child[v]) / rate / calls, 8, 2);
    } else {
        buffer_add_repeat(out, ' ', 8 + 1 + 8 + 1 + 8);
    }
    buffer_add_text(out, "  ");
    if (old)
        compat_label_add(r, v, out);
    else
        buffer_add_text(out, r->symbols.name[v]);
    buffer_add_char(out, '\n');
}

/* What stands above the headings. Returns the time that is 100 %. */
static double title_print(const struct compat_run *r, struct buffer *out)
{
    double total = r->hist.total, rate = compat_run_rate(r);
    bool old = r->options.traditional;
    if (old && !r->options.brief) {
        buffer_add_text(out, "\n\n\nflat profile:\n");
        compat_prose_flat(out);
    }
    if (old)
        buffer_add_format(out, "\ngranularity: each sample hit covers %" PRId64 " byte(s)", compat_run_granularity(r));
    else
        buffer_add_format(out, "Flat profile:\n\nEach sample counts as %g %s.\n", 1.0 / rate, r->hist.dimension);
    if (total <= 0.0) {
        buffer_add_text(out, " no time accumulated\n\n");
        return 1.0;
    }
    if (old)
        buffer_add_format(out, " for %.2f%% of %.2f %s\n\n", 100.0 / total, total / rate, r->hist.dimension);
    return total;
}

enum profd_status compat_flat_print(const struct compat_run *r, struct arena *a, struct buffer *out, struct profd_error *e)
{
    const struct compat_graph *g = &r->graph;
    uint32_t *list = ARENA_ARRAY(a, g->symbols, uint32_t), *scratch = ARENA_ARRAY(a, g->symbols, uint32_t);
    if (list == NULL || scratch == NULL)
        return profd_error_set(e, PROFD_NO_MEMORY, "no memory for a flat profile of %u symbols", g->symbols);
    uint32_t n = 0;
    for (uint32_t v = 0; v < g->symbols; v++)
        if ((r->options.all_symbols || g->calls[v] != 0 || g->time[v] != 0.0) && compat_filter_on(&r->filter, COMPAT_FLAT, v))
            list[n++] = v;
    compat_sort(list, scratch, n, flat_compare, r);

    double total = title_print(r, out), sum = 0.0;
    const struct unit *u = unit_choose(r);
    heading_print(r, u, out);
    for (uint32_t i = 0; i < n; i++) {
        sum += g->time[list[i]];
        line_print(r, list[i], u, total, sum, out);
    }
    if (!r->options.traditional && !r->options.brief)
        compat_prose_flat(out);
    return PROFD_OK;
}
