#include "compat/compat_graph.h"

#include <string.h>

#include "compat/compat_sort.h"

/* What all steps see. */
struct building {
    const struct compat_symbols *symbols;
    const struct compat_filter *filter;
    const struct compat_arcs *arcs;
    const struct compat_cycles *cycles;
    struct compat_graph *g;
};

/* The node that stands for v: its cycle, or itself. */
static uint32_t node_of(const struct building *b, uint32_t v)
{
    uint32_t cycle = b->cycles->number[v];
    return cycle == 0 ? v : b->g->symbols + cycle - 1;
}

static void calls_fill(const struct building *b)
{
    struct compat_graph *g = b->g;
    memcpy(g->calls, b->arcs->total, g->symbols * sizeof *g->calls);
    for (uint32_t i = 0; i < b->arcs->count; i++) {
        uint32_t parent = b->arcs->parent[i], child = b->arcs->child[i];
        uint64_t calls = b->arcs->calls[i];
        if (parent == child) {
            g->calls[child] -= calls;
            g->self_calls[child] = calls;
        } else if (b->cycles->number[child] != 0) {
            uint32_t cycle = node_of(b, child);
            if (node_of(b, parent) == cycle)
                g->self_calls[cycle] += calls;
            else
                g->calls[cycle] += calls;
        }
    }
}

/* What v's callers hand down to node, which is v or v's cycle. */
static void node_inherit(const struct building *b, uint32_t v, uint32_t node)
{
    struct compat_graph *g = b->g;
    for (uint32_t i = b->arcs->parent_first[v]; i < b->arcs->parent_first[v + 1]; i++) {
        uint32_t arc = b->arcs->parent_list[i], parent = b->arcs->parent[arc];
        if (parent == v || node_of(b, parent) == node)
            continue;
        g->shown[node] |= g->shown[parent];
        if (g->calls[node] != 0)
            g->fraction[node] += g->fraction[parent] * ((double)b->arcs->calls[arc] / (double)g->calls[node]);
    }
}

static void cycle_inherit(const struct building *b, uint32_t cycle)
{
    struct compat_graph *g = b->g;
    uint32_t node = g->symbols + cycle - 1;
    const uint32_t *first = b->cycles->members + b->cycles->member_first[cycle - 1];
    const uint32_t *end = b->cycles->members + b->cycles->member_first[cycle];
    for (const uint32_t *m = first; m < end; m++)
        node_inherit(b, *m, node);
    for (const uint32_t *m = first; m < end; m++) {
        g->shown[*m] = g->shown[node];
        g->fraction[*m] = g->fraction[node];
    }
}

/* The filters overrule what was inherited. A cycle as a whole is not asked: without callers it stays hidden. */
static void symbol_decide(const struct building *b, uint32_t v)
{
    struct compat_graph *g = b->g;
    const struct compat_filter *f = b->filter;
    if (!g->shown[v])
        g->shown[v] = compat_filter_on(f, COMPAT_GRAPH, v);
    else if (compat_filter_excludes(f, COMPAT_GRAPH, v) && !compat_filter_includes(f, COMPAT_GRAPH, v))
        g->shown[v] = false;
    if (g->fraction[v] == 0.0) {
        if (compat_filter_on(f, COMPAT_TIME, v))
            g->fraction[v] = 1.0;
    } else if (compat_filter_excludes(f, COMPAT_TIME, v) && !compat_filter_includes(f, COMPAT_TIME, v)) {
        g->fraction[v] = 0.0;
    }
    g->self_share[v] = g->time[v] * g->fraction[v];
    g->print_time += g->self_share[v];
}

/* Callers first. */
static void fractions_inherit(const struct building *b)
{
    uint32_t last = COMPAT_NONE;
    for (uint32_t i = b->g->symbols; i-- > 0;) {
        uint32_t v = b->cycles->order[i], node = node_of(b, v);
        if (node != last) {
            last = node;
            if (node == v)
                node_inherit(b, v, v);
            else
                cycle_inherit(b, b->cycles->number[v]);
        }
        symbol_decide(b, v);
    }
}

static void cycles_time(const struct building *b)
{
    struct compat_graph *g = b->g;
    for (uint32_t c = 0; c < b->cycles->count; c++) {
        uint32_t node = g->symbols + c;
        for (uint32_t i = b->cycles->member_first[c]; i < b->cycles->member_first[c + 1]; i++)
            if (g->fraction[b->cycles->members[i]] != 0.0)
                g->time[node] += g->time[b->cycles->members[i]];
        g->self_share[node] = g->fraction[node] * g->time[node];
    }
}

static void symbol_propagate(const struct building *b, uint32_t v)
{
    struct compat_graph *g = b->g;
    uint32_t own = node_of(b, v);
    for (uint32_t i = b->arcs->child_first[v]; i < b->arcs->child_first[v + 1]; i++) {
        uint32_t arc = b->arcs->child_list[i], child = b->arcs->child[arc];
        uint64_t calls = b->arcs->calls[arc];
        if (calls == 0 || child == v || g->fraction[child] == 0.0)
            continue;
        child = node_of(b, child);
        if (child == own || g->calls[child] == 0)
            continue;
        double part = (double)calls / (double)g->calls[child];
        double self = g->time[child] * part, below = g->child[child] * part;
        double share = self + below;
        g->child[v] += share;
        g->child_share[v] += g->fraction[v] * share;
        g->arc_self[arc] = self * g->fraction[v];
        g->arc_child[arc] = below * g->fraction[v];
        if (own != v) {
            g->child[own] += share;
            g->child_share[own] += g->fraction[v] * share;
        }
    }
}

/* Callees first. */
static void times_propagate(const struct building *b)
{
    for (uint32_t i = 0; i < b->g->symbols; i++) {
        uint32_t v = b->cycles->order[i];
        if (b->g->fraction[v] != 0.0)
            symbol_propagate(b, v);
    }
}

static int node_compare(const void *context, uint32_t x, uint32_t y)
{
    const struct building *b = context;
    const struct compat_graph *g = b->g;
    double difference = (g->self_share[x] + g->child_share[x]) - (g->self_share[y] + g->child_share[y]);
    if (difference < 0.0 || difference > 0.0)
        return difference < 0.0 ? 1 : -1;
    bool x_cycle = x >= g->symbols, y_cycle = y >= g->symbols;
    if (x_cycle || y_cycle)
        return x_cycle && y_cycle ? 0 : x_cycle ? -1 : 1;
    const char *x_name = b->symbols->raw[x], *y_name = b->symbols->raw[y];
    if ((x_name[0] == '_') != (y_name[0] == '_'))
        return x_name[0] == '_' ? 1 : -1;
    if (g->calls[x] != g->calls[y])
        return g->calls[x] > g->calls[y] ? -1 : 1;
    return strcmp(x_name, y_name);
}

static bool graph_take(struct compat_graph *g, uint32_t arcs, struct arena *a)
{
    g->calls = ARENA_ARRAY(a, g->nodes, uint64_t);
    g->self_calls = ARENA_ARRAY(a, g->nodes, uint64_t);
    g->time = ARENA_ARRAY(a, g->nodes, double);
    g->child = ARENA_ARRAY(a, g->nodes, double);
    g->self_share = ARENA_ARRAY(a, g->nodes, double);
    g->child_share = ARENA_ARRAY(a, g->nodes, double);
    g->fraction = ARENA_ARRAY(a, g->nodes, double);
    g->shown = ARENA_ARRAY(a, g->nodes, bool);
    g->index = ARENA_ARRAY(a, g->nodes, uint32_t);
    g->listing = ARENA_ARRAY(a, g->nodes, uint32_t);
    g->arc_self = ARENA_ARRAY(a, (size_t)arcs + 1, double);
    g->arc_child = ARENA_ARRAY(a, (size_t)arcs + 1, double);
    return g->calls != NULL && g->self_calls != NULL && g->time != NULL && g->child != NULL && g->self_share != NULL &&
           g->child_share != NULL && g->fraction != NULL && g->shown != NULL && g->index != NULL && g->listing != NULL &&
           g->arc_self != NULL && g->arc_child != NULL;
}

enum profd_status compat_graph_build(const struct compat_symbols *s, const struct compat_filter *f,
                                     const struct compat_hist *hist, const struct compat_arcs *arcs,
                                     const struct compat_cycles *cycles, struct arena *a, struct compat_graph *out,
                                     struct profd_error *e)
{
    struct compat_graph g = {.symbols = s->count, .nodes = s->count + cycles->count};
    uint32_t *scratch = ARENA_ARRAY(a, g.nodes, uint32_t);
    if (scratch == NULL || !graph_take(&g, arcs->count, a))
        return profd_error_set(e, PROFD_NO_MEMORY, "no memory for a graph of %u symbols", s->count);
    struct building b = {s, f, arcs, cycles, &g};
    memcpy(g.time, hist->time, s->count * sizeof *g.time);
    calls_fill(&b);
    fractions_inherit(&b);
    cycles_time(&b);
    times_propagate(&b);
    for (uint32_t i = 0; i < g.nodes; i++)
        g.listing[i] = i;
    compat_sort(g.listing, scratch, g.nodes, node_compare, &b);
    for (uint32_t i = 0; i < g.nodes; i++)
        g.index[g.listing[i]] = i + 1;
    *out = g;
    return PROFD_OK;
}
