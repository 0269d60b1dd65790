/* Everything a report is made from, computed but not yet in rows. Nodes are the owners that occur, ascending: that is
 * the order (build, address) in which all sums run and ties fall. */
#ifndef PROFD_CORE_REPORT_GRAPH_H
#define PROFD_CORE_REPORT_GRAPH_H

#include <stdbool.h>
#include <stdint.h>

#include "core/arena.h"
#include "core/callgraph.h"
#include "core/propagate.h"
#include "core/report.h"
#include "core/report_builds.h"
#include "core/report_measure.h"
#include "core/report_stacks.h"
#include "core/report_ticks.h"
#include "core/scc.h"
#include "proto/status.h"

/* Functions that count their calls and were not called. */

struct report_uncalled {
    uint32_t counted;     /* functions with machine code that calls a counter (runtime_is_counter) */
    uint32_t *counted_of; /* those of each build, as report_builds numbers them */
    uint32_t count;       /* those of them without samples, and without calls in or out */
    uint32_t *owners;     /* count owners as report_builds numbers them, ascending; in the arena */
};

#define REPORT_NOWHERE UINT32_MAX

struct report_graph {
    struct report_builds builds;
    struct report_ticks ticks;
    uint32_t node_count;
    uint32_t *owner; /* of each node, as builds numbers them */
    bool *entry;     /* of each node: has samples or calls in the window */
    struct callgraph *graph;
    struct scc *scc;
    struct propagate *flow;
    struct report_stacks stacks;      /* count 0: none */
    struct report_measures *measures; /* NULL: likewise */
    const uint32_t *node_of_owner;
    bool time_measured; /* report.h */
    double coverage;
    double *node_seconds; /* self */
    double *node_given;   /* of them, from bins that others share */
    double *node_sharing; /* of all bins that it shares with others */
    double *component_seconds;
    uint64_t *node_ticks; /* rounded, where there is one rate */
    double total;
    uint32_t *cycle; /* of each component: its cycle's number, 0 if it is none or has no entry */
    uint32_t cycle_count;
    uint32_t *cycle_component; /* of cycle number − 1 */
    bool *cycle_closed;        /* likewise: by arcs of the report */
    uint32_t function_count;
    uint32_t *position; /* of each node in the report's functions; REPORT_NOWHERE if it is not shown */
    uint32_t *node_of;  /* node of each position */
    struct report_uncalled uncalled;
};

enum profd_status report_graph_make(struct arena *a, const struct report_request *request, struct report_graph *g,
                                    struct profd_error *e);

#endif
