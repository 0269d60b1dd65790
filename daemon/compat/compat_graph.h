/* The call graph with its times (reference 3.5): gprof's order of every addition, so that every double has gprof's bits. */
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

/* Nodes are the symbols, then one node for each cycle as a whole (cycle n is node symbols + n − 1). Times in ticks. */
struct compat_graph {
    uint32_t symbols, nodes;
    uint64_t *calls;       /* from others; of a cycle: from outside */
    uint64_t *self_calls;  /* direct recursion; of a cycle: from members to other members */
    double *time, *child;  /* own ticks; those of callees */
    double *self_share, *child_share; /* the parts of both that are propagated */
    double *fraction;      /* how much of its time is propagated */
    bool *shown;
    uint32_t *index;       /* 1… in the order of the listing */
    uint32_t *listing;     /* nodes in that order */
    double *arc_self, *arc_child; /* by arc: ticks that flow along it */
    double print_time;     /* Σ self_share */
};

/* Takes the calls of arcs apart into self calls and others, propagates and orders. O(n log n + arcs). */
enum profd_status compat_graph_build(const struct compat_symbols *s, const struct compat_filter *f,
                                     const struct compat_hist *hist, const struct compat_arcs *arcs,
                                     const struct compat_cycles *cycles, struct arena *a, struct compat_graph *out,
                                     struct profd_error *e);

#endif
