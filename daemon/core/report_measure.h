/* Measured times: what stacks say of functions, cycles and arcs, with intervals. */
#ifndef PROFD_CORE_REPORT_MEASURE_H
#define PROFD_CORE_REPORT_MEASURE_H

#include <stdint.h>

#include "core/arena.h"
#include "core/callgraph.h"
#include "core/report.h"
#include "core/report_stacks.h"
#include "core/scc.h"
#include "proto/sort.h"

/* Of nodes, components and arcs of the graph. */
struct report_measures {
    struct report_measured *nodes, *components, *arcs;
    bool by_groups;  /* intervals come from random groups where there are samples enough */
    unsigned groups; /* with processes */
    double overdispersion, per_tick;
    bool saturated;
    double seconds, ticks, group_seconds[COUNTS_GROUPS]; /* of all stacks */
    const double *node_groups, *arc_groups;              /* seconds of each node and arc, by group; NULL: not known */
};

/* Ticks of a function are those of stacks that it is in, each once; of a component likewise with its members. Ticks of
 * an arc are those of stacks in which it is the outermost way into the callee's component, so that callers' ticks add
 * up to the component's, but for stacks that begin in it. node_of_owner: the graph's nodes. groups: how many random
 * groups have processes; 0: unknown, then those that have a tick. per_tick: of struct report_ticks. No recursion;
 * O(tree · log callees), 16-fold with groups. */
struct report_measures *report_measure(struct arena *a, const struct report_stacks *s, const uint32_t *node_of_owner,
                                       const struct callgraph *g, const struct scc *c, unsigned groups,
                                       double per_tick);

/* Several arcs into one component, or out of one into another, as one: their ticks are of different stacks. */
void report_measure_join(const struct report_measures *m, const struct sort_item *arcs, uint32_t n,
                         struct report_measured *out);

/* Sets differs: are seconds by calls, of which stacks cover a part, outside the interval? */
void report_measure_compare(struct report_measured *m, double seconds, double coverage);

/* Variance of a number of ticks over that of independent ones: above the kernel's HZ timers deliver bundles. Measured
 * at 99, 250 and 1,000 Hz (1.12, 1.35, 6.3), between them interpolated, above in proportion to the rate. At least
 * that of bundles as large as they were on average: per_tick as in struct report_ticks. */
double report_measure_overdispersion(uint32_t rate, double per_tick);

/* The 95 % interval of a share x/n of independent samples (Wilson's score interval), n > 0. */
void report_measure_wilson(double x, double n, double *low, double *high);

#endif
