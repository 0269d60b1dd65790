#include "compat/compat_graph.h"

#include <math.h>
#include <string.h>

#include "compat/compat_names.h"
#include "compat/compat_order.h"

/* What all steps see. */
struct building {
    const struct compat_filter *filter;
    const struct compat_arcs *arcs;
    const struct compat_cycles *cycles;
    struct compat_graph *g;
    struct compat_node *node;
};

static void nodes_fill(const struct building *b, const double *time)
{
    uint32_t symbols = b->g->symbols;
    for (uint32_t v = 0; v < symbols; v++) {
        uint32_t cycle = b->cycles->number[v];
        b->node[v].time = time[v];
        b->node[v].calls = b->arcs->total[v];
        b->node[v].place = cycle == 0 ? v : symbols + cycle - 1;
    }
    for (uint32_t v = symbols; v < b->g->nodes; v++) {
        b->node[v].place = v;
    }
}

static void calls_fill(const struct building *b)
{
    const struct compat_arcs *arcs = b->arcs;
    for (uint32_t child = 0; child < b->g->symbols; child++) {
        uint32_t place = b->node[child].place;
        for (uint32_t i = arcs->parent_first[child]; i < arcs->parent_first[child + 1]; i++) {
            uint32_t parent = arcs->parent[i];
            uint64_t calls = arcs->parent_calls[i];
            if (parent == child) {
                b->node[child].calls -= calls;
                b->node[child].self_calls = calls;
            } else if (place != child) {
                uint64_t *sum = b->node[parent].place == place ? &b->node[place].self_calls : &b->node[place].calls;
                *sum += calls;
            }
        }
    }
}

/* Propagates from v's callers to node, which is v or v's cycle; newest arc first. */
static void node_inherit(const struct building *b, uint32_t v, uint32_t node)
{
    struct compat_node *to = &b->node[node];
    for (uint32_t i = b->arcs->parent_first[v + 1]; i-- > b->arcs->parent_first[v];) {
        uint32_t parent = b->arcs->parent[i];
        const struct compat_node *from = &b->node[parent];
        if (parent == v || from->place == node) {
            continue;
        }
        to->shown |= from->shown;
        if (to->calls != 0) {
            to->fraction += from->fraction * ((double)b->arcs->parent_calls[i] / (double)to->calls);
        }
    }
}

static void cycle_inherit(const struct building *b, uint32_t node)
{
    uint32_t cycle = node - b->g->symbols;
    const uint32_t *first = b->cycles->members + b->cycles->member_first[cycle];
    const uint32_t *end = b->cycles->members + b->cycles->member_first[cycle + 1];
    for (const uint32_t *m = first; m < end; m++) {
        node_inherit(b, *m, node);
    }
    for (const uint32_t *m = first; m < end; m++) {
        b->node[*m].shown = b->node[node].shown;
        b->node[*m].fraction = b->node[node].fraction;
    }
}

/* The filters override what was inherited. They are not applied to a cycle as a whole: without callers it stays hidden.
 */
static void symbol_decide(const struct building *b, uint32_t v)
{
    struct compat_node *n = &b->node[v];
    const struct compat_filter *f = b->filter;
    if (!n->shown) {
        n->shown = compat_filter_on(f, COMPAT_GRAPH, v);
    } else if (compat_filter_excludes(f, COMPAT_GRAPH, v) && !compat_filter_includes(f, COMPAT_GRAPH, v)) {
        n->shown = false;
    }
    if (n->fraction == 0.0) {
        if (compat_filter_on(f, COMPAT_TIME, v)) {
            n->fraction = 1.0;
        }
    } else if (compat_filter_excludes(f, COMPAT_TIME, v) && !compat_filter_includes(f, COMPAT_TIME, v)) {
        n->fraction = 0.0;
    }
    b->g->print_time += compat_node_share(n);
}

/* Callers first. */
static void fractions_inherit(const struct building *b)
{
    uint32_t last = COMPAT_NONE;
    for (uint32_t i = b->g->symbols; i-- > 0;) {
        uint32_t v = b->cycles->order[i], node = b->node[v].place;
        if (node != last) {
            last = node;
            if (node == v) {
                node_inherit(b, v, v);
            } else {
                cycle_inherit(b, node);
            }
        }
        symbol_decide(b, v);
    }
}

/* Returns the node that passes time along the arc; NULL if the arc carries no time. */
static const struct compat_node *arc_source(const struct compat_node *node, uint32_t parent, uint32_t child,
                                            uint64_t calls)
{
    if (calls == 0 || child == parent || node[child].fraction == 0.0) {
        return NULL;
    }
    uint32_t place = node[child].place;
    return place == node[parent].place || node[place].calls == 0 ? NULL : &node[place];
}

struct compat_flow compat_graph_flow(const struct compat_graph *g, uint32_t parent, uint32_t child, uint64_t calls)
{
    double fraction = g->node[parent].fraction;
    const struct compat_node *source = fraction == 0.0 ? NULL : arc_source(g->node, parent, child, calls);
    if (source == NULL) {
        return (struct compat_flow){0.0, 0.0};
    }
    double part = (double)calls / (double)source->calls;
    double self = source->time * part, below = source->child * part;
    return (struct compat_flow){self * fraction, below * fraction};
}

static void symbol_propagate(const struct building *b, uint32_t v)
{
    struct compat_node *n = &b->node[v], *whole = &b->node[n->place];
    for (uint32_t i = b->arcs->child_first[v + 1]; i-- > b->arcs->child_first[v];) {
        uint64_t calls = b->arcs->calls[i];
        const struct compat_node *source = arc_source(b->node, v, b->arcs->child[i], calls);
        if (source == NULL) {
            continue;
        }
        double part = (double)calls / (double)source->calls;
        double share = source->time * part + source->child * part;
        n->child += share;
        n->child_share += n->fraction * share;
        if (whole != n) {
            whole->child += share;
            whole->child_share += n->fraction * share;
        }
    }
}

static bool times_finite(const struct compat_graph *g)
{
    for (uint32_t v = 0; v < g->nodes; v++) {
        const struct compat_node *n = &g->node[v];
        if (!isfinite(n->time) || !isfinite(n->child) || !isfinite(n->child_share) || !isfinite(n->fraction)) {
            return false;
        }
    }
    return true;
}

enum profd_status compat_graph_build(const struct compat_symbols *s, const struct compat_filter *f,
                                     const struct compat_hist *hist, const struct compat_arcs *arcs,
                                     const struct compat_cycles *cycles, struct arena *a, struct compat_graph *out,
                                     struct profd_error *e)
{
    struct compat_graph g = {.symbols = s->count, .nodes = s->count + cycles->count};
    g.node = ARENA_ARRAY(a, g.nodes, struct compat_node);
    g.listing = ARENA_ARRAY(a, g.nodes, uint32_t);
    if (g.node == NULL || g.listing == NULL) {
        return profd_error_set(e, PROFD_NO_MEMORY, "no memory for a graph of %u symbols", s->count);
    }
    struct building b = {f, arcs, cycles, &g, g.node};
    nodes_fill(&b, hist->time);
    calls_fill(&b);
    fractions_inherit(&b);
    for (uint32_t c = 0; c < b.cycles->count; c++) {
        for (uint32_t i = b.cycles->member_first[c]; i < b.cycles->member_first[c + 1]; i++) {
            if (b.node[b.cycles->members[i]].fraction != 0.0) {
                b.node[b.g->symbols + c].time += b.node[b.cycles->members[i]].time;
            }
        }
    }
    /* Callees first. */
    for (uint32_t i = 0; i < b.g->symbols; i++) {
        uint32_t v = b.cycles->order[i];
        if (b.node[v].fraction != 0.0) {
            symbol_propagate(&b, v);
        }
    }
    g.orderly = times_finite(&g);
    if (compat_names_order(s->raw, s->count, a, &g.by_name) != PROFD_OK || compat_order_nodes(&g, s, a) != PROFD_OK) {
        return profd_error_set(e, PROFD_NO_MEMORY, "no memory for the order of %u symbols", s->count);
    }
    for (uint32_t i = 0; i < g.nodes; i++) {
        g.node[g.listing[i]].index = i + 1;
    }
    *out = g;
    return PROFD_OK;
}
