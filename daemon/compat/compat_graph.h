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

/* A symbol, or a cycle as a whole. One cache line, because each arc reads it. Times are in ticks. */
struct compat_node {
    double time, child;  /* own ticks; ticks of callees */
    double child_share;  /* propagated part of child */
    double fraction;     /* share of its time that is propagated */
    uint64_t calls;      /* calls from others; of a cycle: from outside */
    uint64_t self_calls; /* calls from itself; of a cycle: from members to other members */
    uint32_t place;      /* node that represents it: itself, or its cycle's node */
    uint32_t index;      /* from 1, in the order of the listing */
    bool shown;
};

/* Nodes are the symbols, then one node for each cycle as a whole (cycle n is node symbols + n − 1). */
struct compat_graph {
    uint32_t symbols, nodes;
    struct compat_node *node;
    uint32_t *listing; /* nodes in the order of the listing */
    uint32_t *by_name; /* symbols by name; those of the same name in table order */
    double print_time; /* Σ shares of own ticks */
    bool orderly;      /* no time is NaN, so sorting has only one result */
};

/* Returns the propagated part of a node's own ticks. */
static inline double compat_node_share(const struct compat_node *n)
{
    return n->time * n->fraction;
}

/* Ticks that are propagated along an arc: the callee's own and those of its callees. */
struct compat_flow {
    double self, child;
};
struct compat_flow compat_graph_flow(const struct compat_graph *g, uint32_t parent, uint32_t child, uint64_t calls);

/* Divides the calls of symbols into self calls and others, propagates times and sorts the nodes. O(n log n + arcs). */
enum profd_status compat_graph_build(const struct compat_symbols *s, const struct compat_filter *f,
                                     const struct compat_hist *hist, const struct compat_arcs *arcs,
                                     const struct compat_cycles *cycles, struct arena *a, struct compat_graph *out,
                                     struct profd_error *e);

#endif
