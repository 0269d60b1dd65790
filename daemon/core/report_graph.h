/* How a report is made, step by step. Private to core/report*: what it yields is core/report.h. */
#ifndef PROFD_CORE_REPORT_GRAPH_H
#define PROFD_CORE_REPORT_GRAPH_H

#include <stdbool.h>
#include <stdint.h>

#include "core/arena.h"
#include "core/graph.h"
#include "core/object.h"
#include "core/profile.h"
#include "core/report.h"
#include "core/spread.h"
#include "core/symtab.h"
#include "core/row_table.h"
#include "proto/sort.h"
#include "proto/status.h"

/* The builds of a report in an order that does not depend on how uploads arrived, with their tables of owners. Owners
 * of all builds are numbered through: those of build b are first[b] … first[b + 1] − 1. */

#define REPORT_BUILDS_ABSENT UINT32_MAX

struct report_builds {
    uint32_t count;      /* builds; tables[count] is what lies outside all of them */
    uint32_t *origin;    /* of each build: its index in the profile */
    uint32_t *rank;      /* of each index of the profile: the build here; rank[profile builds] = count */
    uint32_t *ever_rank; /* likewise for the profile `ever`; REPORT_BUILDS_ABSENT for builds only in it */
    uint32_t ever_count;
    struct symtab **tables; /* count + 1 */
    uint32_t *first;        /* count + 2 */
};

/* Order: load order (profile.build_orders), then build-id; without load order, the profile's. Builds without names get
 * an owner wherever an arc of the window or of `ever` goes. O((symbols + arcs) log n). */
enum profd_status report_builds_make(struct arena *a, const struct report_request *request, struct report_builds *out,
                                     struct profd_error *e);

/* The build here of a profile's build index, COUNTS_NOWHERE and nonsense included. */
static inline uint32_t report_builds_rank(const struct report_builds *b, uint32_t build)
{
    return build < b->count ? b->rank[build] : b->count;
}

static inline uint32_t report_builds_ever_rank(const struct report_builds *b, uint32_t build)
{
    return build < b->ever_count ? b->ever_rank[build] : b->count;
}

/* The build that owns a numbered owner. O(log builds). */
uint32_t report_builds_of(const struct report_builds *b, uint32_t owner);
/* An owner and its build. O(log builds). */
const struct symtab_owner *report_builds_owner(const struct report_builds *b, uint32_t owner, uint32_t *build);
/* False for classes of addresses, and for the owner behind all others, "[incomplete]". O(log builds). */
bool report_builds_is_function(const struct report_builds *b, uint32_t owner);

/* Ids and names of the builds, in the arena; names that are not known, and one more entry behind them, are "". */
void report_builds_list(struct arena *a, const struct report_request *request, const struct report_builds *b,
                        const char *const **ids, const char *const **names);

/* Which function an imported name means: the first build in load order that exports it. */

/* The names are collected when the first one is sought. Begin with arena and builds set and all else zero. */
struct report_imports {
    struct arena *arena;
    const struct report_builds *builds;
    bool made;
    struct table table;
    const char **names;
    uint32_t *owners; /* as report_builds numbers them */
};

/* Owner that a call of the machine code goes to: inside the build exactly, else by the import's name; SYMTAB_NONE if it
 * is not known. span: as symtab_find_next. */
uint32_t report_imports_callee(struct report_imports *imports, uint32_t build, const struct object_arc *arc,
                               uint32_t *span, bool *by_name);

/* Arcs between addresses become arcs between owners: of the window, of all time, of the machine code. */

#define REPORT_SEEN 1u  /* an end of some arc */
#define REPORT_ENTRY 2u /* has samples, or calls in or out, in the window */

struct report_arcs {
    struct callgraph_arc *rows; /* ends are owners as report_builds numbers them; pairs may repeat */
    uint32_t count, capacity;
    uint8_t *seen;   /* of each owner; zero before */
    uint64_t *calls; /* likewise: calls into it in the window, its own included; at most 2^63-1 */
};

/* A call into a PLT slot goes to the function of that name where the report knows it. A call of a function that was
 * entered by a jump goes out from the function that jumped, where the call instruction names that. The arcs of the
 * machine code are added only if the request asks for them, without those of run-time support (core/names.h).
 * O(arcs) expected, with a search where addresses jump. */
void report_arcs_collect(struct arena *a, const struct report_request *request, const struct report_builds *b,
                         struct report_imports *imports, struct report_arcs *out);

/* Ensures capacity for n more rows. Amortized O(n). */
void report_arcs_reserve(struct arena *a, struct report_arcs *out, uint32_t n);

/* Samples on addresses become ticks of owners. */

#define REPORT_TICKS_NS 1000000000u

/* Ticks of one owner at one rate: a whole number and parts of shared bins. A row without ticks is of an owner with
 * bytes in shared bins only that got none of their ticks. */
struct report_tick {
    uint64_t whole;
    double part;
    double given;   /* how many of them are of shared bins */
    double sharing; /* all ticks of the shared bins in which it takes part */
    uint32_t rate;  /* index into rates */
    uint32_t owner; /* as report_builds numbers them */
};

struct report_ticks {
    uint32_t rate_count;
    uint32_t *rates;  /* ascending */
    uint64_t *totals; /* ticks at each rate */
    uint32_t count;
    struct report_tick *rows; /* ascending by (rate, owner) */
    uint64_t ticks;           /* Σ totals, stopping at 2^63−1 */
    double per_tick;          /* samples that a tick stands for (coverage_per_tick) */
    const char *dimension;    /* that was taken */
    uint32_t other_count;
    struct report_dimension *others; /* that were left out, in byte order */
};

/* Adds up the samples of one dimension, as report_build chooses it; the collector's counters are no samples.
 * proto/bins.h says which bytes a bin counts.
 *
 * A bin over several owners is shared. [gap] gets only bins without a function, because padding is not executed. A
 * symbol of size 0 gets only bins without another function. Among the others the weight is bytes in the bin × density:
 * the ticks by byte of the bins that lie wholly in the same contiguous piece of the function. If all densities are
 * zero, the weight is bytes × calls; if none was called, bytes. A function without a whole bin there has no density:
 * such functions get the ticks that the known densities do not account for, by bytes × calls, or by bytes if no
 * function in the bin was called.
 *
 * A function that takes part in a shared bin may have had none or all of its ticks: given and sharing bound that.
 *
 * Collectors count the ticks outside all builds as time (COLLECTOR_OUTSIDE_NS). If the request wants them, they become
 * ticks of "[outside]" at the lowest rate. Where all ticks are outside, no rate is known: the time is in totals at
 * REPORT_TICKS_NS, and ticks has none of them. In a sum with ticks of both clocks their clock is not known, and they
 * are left out.
 *
 * calls: into each owner (report_arcs). Sums do not depend on the order of arrival. O((bins + functions under shared
 * bins) log bins). BAD_QUERY: there are samples, and none of the dimension asked for, which may not lack. */
enum profd_status report_ticks_collect(struct arena *a, const struct report_request *request,
                                       const struct report_builds *b, const uint64_t *calls, struct report_ticks *out,
                                       struct profd_error *e);

static inline bool report_tick_has_any(const struct report_tick *t)
{
    return t->whole > 0 || t->part > 0;
}

/* Seconds: Σ (whole + part) / rate must be added by ascending rate. */
static inline double report_tick_seconds(const struct report_ticks *t, uint64_t whole, double part, uint32_t rate)
{
    return ((double)whole + part) / (double)t->rates[rate];
}

/* The profile's stacks become one tree of functions. Return addresses that no call stands before are cut, and
 * functions that frame pointers skip are put in where the machine code names them. */

#define REPORT_STACKS_ROOT UINT32_MAX

/* Ticks of one rate. */
struct report_stacks_rate {
    uint32_t rate;
    uint64_t *self;   /* of each node: whole stacks that end in it */
    uint64_t *folded; /* of each node: stacks without known inner frames */
    uint64_t *shares; /* [node · COUNTS_GROUPS + group] of self and folded together; NULL if they are not known */
};

struct report_stacks {
    uint32_t count;      /* nodes; 0: the profile has no stacks of the dimension. A parent stands before its children */
    uint32_t *parent;    /* REPORT_STACKS_ROOT: the outermost frame */
    uint32_t *owner;     /* as report_builds numbers them; incomplete for what stands above an unknown caller */
    uint8_t *inferred;   /* the function was not seen: a call named it */
    uint32_t incomplete; /* the owner behind all others: "[incomplete]" */
    uint32_t rate_count;
    struct report_stacks_rate *rates; /* ascending */
    uint64_t ticks;                   /* of all nodes and rates, as the following: whole stacks and folded ones */
    uint64_t cut;                     /* stacks that lost outer frames because no call stands before a return address */
    uint64_t folded;                  /* stacks that lost inner frames because there was no space */
    uint64_t unknown;                 /* stacks without known outer frames, cut ones among them */
    uint64_t inferred_ticks;          /* stacks with an inferred frame */
    bool saturated;
};

/* Adds an arc for each pair of a function and its caller to arcs, with CALLGRAPH_STACK, and marks both as entries;
 * arcs->seen and arcs->calls have an element for the owner `incomplete`, too. These arcs shape cycles if the window and
 * all stored time have no calls, so that nothing else could. out->count is 0 where there is nothing.
 * O((nodes + symbols of imports) · log calls) expected. */
void report_stacks_make(struct arena *a, const struct report_request *request, const char *dimension,
                        const struct report_builds *b, struct report_imports *imports, struct report_arcs *arcs,
                        struct report_stacks *out);

/* Measured times: what stacks say of functions, cycles and arcs, with intervals. */

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

/* Sets differs if the seconds by calls, as far as stacks cover them, lie outside the interval. */
void report_measure_compare(struct report_measured *m, double seconds, double coverage);

/* Variance of a number of ticks over that of independent ones: above the kernel's HZ timers deliver bundles. Measured
 * at 99, 250 and 1,000 Hz (1.12, 1.35, 6.3), between them interpolated, above in proportion to the rate. At least
 * that of bundles as large as they were on average: per_tick as in struct report_ticks. */
double report_measure_overdispersion(uint32_t rate, double per_tick);

/* The 95 % interval of a share x/n of independent samples (Wilson's score interval), n > 0. */
void report_measure_wilson(double x, double n, double *low, double *high);

/* Functions that count their calls and were not called. */

struct report_uncalled {
    uint32_t counted;     /* functions with machine code that calls a counter (runtime_is_counter) */
    uint32_t *counted_of; /* those of each build, as report_builds numbers them */
    uint32_t count;       /* those of them without samples, and without calls in or out */
    uint32_t *owners;     /* count owners as report_builds numbers them, ascending; in the arena */
};

#define REPORT_NOWHERE UINT32_MAX

/* Everything that a report is made from, computed but not yet in rows. Nodes are the owners that occur, ascending: that
 * is the order (build, address) in which all sums run and ties fall. */
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

/* Rows above and below entries, in gprof's order: callers least first, callees most first; ties by (build, address). */

/* Fills in the callers, callees and static rows of functions (g->function_count of them) and what is counted in them.
 * Returns what struct report has as uncalled. O(arcs). */
const double *report_rows_functions(struct arena *a, const struct report_graph *g, bool stacks_only,
                                    struct report_function *functions);

/* Fills in members, callers and callees of cycles. The functions must be complete. O(arcs). */
void report_rows_cycles(struct arena *a, const struct report_graph *g, const struct report_function *functions,
                        struct report_cycle *cycles);

/* What the owners of a report are called. */

/* Fills in kind, name, raw, aliases, build, address, size and file of the owner. Names are the object's or in the
 * arena. O(log builds + aliases log aliases). */
void report_names_describe(struct arena *a, const struct report_builds *b, uint32_t owner, struct report_function *f);

/* The tree of stacks as the report has it. */

/* Sets stacks and time_measured of the report; its functions are there.
 * O(nodes log nodes), no recursion. */
void report_frames_make(struct arena *a, const struct report_graph *g, struct report *r);

#endif
