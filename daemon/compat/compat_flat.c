#include "compat/compat_flat.h"

#include <inttypes.h>
#include <string.h>

#include "compat/compat_label.h"
#include "compat/compat_order.h"
#include "compat/compat_prose.h"
#include "core/buffer_number.h"

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

static void heading_print(const struct compat_run *r, const struct unit *u, struct buffer *out)
{
    const char *dimension = r->hist.dimension;
    char unit[8] = {u->prefix, r->hist.abbreviation, '/', 'c', 'a', 'l', 'l', '\0'};
    buffer_add_format(out, "%5.5s %10.10s %8.8s %8.8s %8.8s %8.8s  %-8.8s\n", "%  ", "cumulative", "self  ", "",
                      "self  ", "total ", "");
    buffer_add_format(out, "%5.5s %9.9s  %8.8s %8.8s %8.8s %8.8s  %-8.8s\n", "time", dimension, dimension, "calls",
                      unit, unit, "name");
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

enum profd_status compat_flat_print(const struct compat_run *r, struct arena *a, struct buffer *out,
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
    heading_print(r, u, out);
    for (uint32_t i = 0; i < n && !out->failed; i++) {
        sum += g->node[list[i]].time;
        line_print(r, list[i], u, total, sum, out);
    }
    if (!r->options.traditional && !r->options.brief) {
        compat_prose_flat(out);
    }
    return PROFD_OK;
}
