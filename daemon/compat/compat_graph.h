/* The call graph with its times (reference 3.5): gprof's order of every addition, so that every double has gprof's
 * bits. */
#ifndef PROFD_COMPAT_COMPAT_GRAPH_H
#define PROFD_COMPAT_COMPAT_GRAPH_H

#include <stdbool.h>
#include <stdint.h>

#include "compat/compat_arcs.h"
#include "compat/compat_cycles.h"
#include "compat/compat_filter.h"
#include "compat/compat_hist.h"
#include "compat/compat_symbols.h"
#include "core/arena.h"
#include "proto/status.h"

/* What is known of a symbol, or of a cycle as a whole, in the one cache line that an arc to it costs. Times in ticks.
 */
struct compat_node {
    double time, child;  /* own ticks; those of callees */
    double child_share;  /* the part of child that is propagated */
    double fraction;     /* how much of its time is propagated */
    uint64_t calls;      /* from others; of a cycle: from outside */
    uint64_t self_calls; /* direct recursion; of a cycle: from members to other members */
    uint32_t place;      /* the node that stands for it: itself, or its cycle's */
    uint32_t index;      /* 1… in the order of the listing */
    bool shown;
};

/* Nodes are the symbols, then one node for each cycle as a whole (cycle n is node symbols + n − 1). */
struct compat_graph {
    uint32_t symbols, nodes;
    struct compat_node *node;
    uint32_t *listing; /* nodes in the order of the listing */
    uint32_t *by_name; /* symbols by name; the same name in table order */
    double print_time; /* Σ shares of own ticks */
    bool orderly;      /* all times are numbers: what is sorted by them has one order */
};

/* The part of a node's own ticks that is propagated. */
static inline double compat_node_share(const struct compat_node *n)
{
    return n->time * n->fraction;
}

/* Ticks that flow along an arc, of the callee's own and of its callees. */
struct compat_flow {
    double self, child;
};
struct compat_flow compat_graph_flow(const struct compat_graph *g, uint32_t parent, uint32_t child, uint64_t calls);

/* Takes the calls of arcs apart into self calls and others, propagates and orders. O(n log n + arcs). */
enum profd_status compat_graph_build(const struct compat_symbols *s, const struct compat_filter *f,
                                     const struct compat_hist *hist, const struct compat_arcs *arcs,
                                     const struct compat_cycles *cycles, struct arena *a, struct compat_graph *out,
                                     struct profd_error *e);

#endif
