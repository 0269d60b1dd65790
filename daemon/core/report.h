/* The report: gprof's call graph in rows, in order, with ties decided. What a renderer prints and nothing else.
 *
 * Arithmetic (Graham, Kessler, McKusick, 1982): T_r = S_r + Σ T_e · C_e^r / C_e over callees e outside r's component;
 * components collapse to one node; self arcs and arcs between members carry no time; arcs of count 0 carry none.
 *
 * A class of addresses ("[gap]", "[plt]", "[unknown …]", "[outside]") is no function: that it was called and that it
 * called does not mean that one led to the other. It is in no cycle. As a callee it hands over its self time only; the
 * time of what it calls is its own children, which no caller of it receives.
 *
 * Where the profile has stacks, measured times stand beside that: each stack is counted once for every function in it.
 * There a class of addresses is a frame as others are. "[incomplete]" stands for callers that are not known. */
#ifndef PROFD_CORE_REPORT_H
#define PROFD_CORE_REPORT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/arena.h"
#include "core/object.h"
#include "core/profile.h"
#include "proto/status.h"

enum report_kind {
    REPORT_FUNCTION, /* a symbol that owns addresses */
    REPORT_PLT,      /* "[plt]": arcs through it were passed on; what remains is its own time */
    REPORT_GAP,      /* "[gap]": executable bytes that no symbol owns */
    REPORT_ADDRESS,  /* "0x401230": the build has no names */
    REPORT_UNKNOWN,  /* "[unknown BUILD]": the executable was not sent; or "[outside]" for COUNTS_NOWHERE, or
                        "[incomplete]" */
};

/* A class of addresses, not a function. */
static inline bool report_kind_is_class(enum report_kind kind)
{
    return kind != REPORT_FUNCTION && kind != REPORT_ADDRESS;
}

/* Where times come from: stacks, or numbers of calls. */
enum report_time {
    REPORT_TIME_BEST, /* stacks, where they cover REPORT_TIME_COVERAGE of the ticks */
    REPORT_TIME_MEASURED,
    REPORT_TIME_CALLS,
};
#define REPORT_TIME_COVERAGE 0.95

/* What to compute. */
struct report_request {
    const struct profile *profile;       /* counts of the window */
    const struct profile *ever;          /* arcs of all stored time; they shape the cycles. NULL: same as profile */
    const struct object *const *objects; /* one per build of profile, in its order; NULL where unknown. ever's builds
                                          * are found by id; builds only in ever are left out */
    const char *const *names;            /* name of each build of profile (may be NULL entries) */
    bool outside; /* the ticks in no build count, too, as "[outside]": the profile has all builds of its processes */
    bool static_arcs;        /* the 1982 mode: static arcs close cycles and are rows of count 0; else there are none */
    bool fold_clones;        /* .part .isra .constprop into their function (.cold always is) */
    const char *dimension;   /* of the samples to take; NULL: "seconds" if there is any, else the first in byte order */
    bool dimension_may_lack; /* with one given: where only other samples are, there are none */
    enum report_time time;   /* what sorts; where there are no stacks of the dimension, it is calls */
    unsigned groups;         /* random groups with processes; 0: not known */
    bool stacks_only;        /* only stacks are read: those that were seen, or what they are derived from. Then no
                              * function has callers, those in cycles have no callees, and measured is NULL */
};

/* What stacks say of a function, a cycle or an arc: 95 % interval of total. */
struct report_measured {
    double self, total; /* seconds; of an arc, in the callee's component and with all below it */
    double low, high;
    uint64_t samples; /* stacks behind total */
    bool by_groups;   /* the interval comes from random groups of processes (schema/spread.md), else from samples */
    bool differs;     /* the time by calls, as far as there are stacks, is outside the interval */
};
#define REPORT_MEASURED_FEW 16u /* with fewer samples groups say nothing */

/* The stacks as a tree of functions. A parent stands before its children; children by descending total. */
struct report_frame {
    uint32_t parent;    /* REPORT_FRAME_ROOT: an outermost frame */
    uint32_t function;  /* position */
    uint32_t depth;     /* 0: outermost */
    bool inferred;      /* named by the call before the next frame, not seen */
    double self, total; /* seconds that end in it; with those below */
    uint64_t ticks;     /* that end in it */
};
#define REPORT_FRAME_ROOT UINT32_MAX

struct report_stack_facts {
    uint64_t ticks;        /* whole stacks and folded ones */
    double coverage;       /* of them in the ticks of the dimension, 0 … 1 */
    uint64_t inferred;     /* with a frame that a call named */
    uint64_t cut;          /* that lost outer frames, because no call stands before a return address */
    uint64_t folded;       /* that lost inner frames, because there was no space */
    uint64_t incomplete;   /* without known outer frames, cut ones among them */
    bool by_groups;        /* intervals come from random groups where there are REPORT_MEASURED_FEW samples */
    unsigned groups;       /* that have processes */
    double overdispersion; /* where they do not: variance of a number of ticks over that of independent ones */
    uint32_t frame_count;
    const struct report_frame *frames; /* depth first */
};

/* A kind of samples, and how many there are. */
struct report_dimension {
    const char *name;
    uint64_t ticks;
};

/* A row under or above an entry. Callers ascend and callees descend as gprof lists them: the self arc is least, then
 * arcs inside the cycle by calls, then the others by time and calls; ties ascend by position of the other end. */
struct report_arc {
    uint32_t other;    /* position in functions of the other end; always a function, also where it is in a cycle */
    bool inside;       /* both ends in one cycle, or a self arc: carries no time */
    bool by_name;      /* a static arc through the PLT, resolved by import name */
    bool jumped;       /* some of the calls may be another function's: the callee is also entered by jumps at the end
                        * of functions, and then is counted for the caller of the one that jumped */
    uint64_t calls;    /* along this arc; 0 for a static arc */
    uint64_t of_calls; /* calls of the callee (of its cycle, from outside) that share the time; 0 when no time flows */
    double self, children;                  /* seconds that flow along it */
    const struct report_measured *measured; /* NULL: there are no stacks, or the arc is inside a cycle */
};

/* The part of an entry's seconds that no caller accounts for, 0 … 1; less than 1e-9 is a rounding error. */
static inline double report_uncalled(double seconds, const struct report_arc *callers, uint32_t count)
{
    double left = seconds;
    for (uint32_t i = 0; i < count; i++) {
        left -= callers[i].inside ? 0 : callers[i].self + callers[i].children;
    }
    return left > 1e-9 * seconds ? left / seconds : 0;
}

#define REPORT_SPONTANEOUS UINT32_MAX /* for renderers; report_build makes no such row, see `spontaneous` */

/* One function with its entry. Seconds are Σ ticks/rate by ascending rate. A function is an entry if it has samples, or
 * calls in or out, in the window, or is in a stack. Others are here only because a static row or a cycle refers to
 * them. */
struct report_function {
    uint32_t index; /* 1… in gprof's order, cycles counted in between; 0: not an entry, not in order */
    enum report_kind kind;
    const char *name;           /* demangled */
    const char *raw;            /* as in the symbol table */
    const char *const *aliases; /* other raw names at its address, strcmp order */
    uint32_t alias_count;
    uint32_t build;                         /* index into the report's builds; build_count for "[outside]" */
    uint64_t address, size;                 /* link-time; "[gap]", "[unknown …]" and "[outside]" have address 0,
                                             * "[incomplete]" has COUNTS_FRAME_INCOMPLETE */
    const char *file;                       /* "" if unknown */
    uint32_t line;                          /* of its beginning; 0 if unknown */
    uint64_t code;                          /* as of its symbol (core/object.h); 0 if unknown */
    uint64_t ticks_total;                   /* whole ticks of its bins where one rate is used, rounded; else 0 */
    double self, children, percent;         /* percent of the report's total; children of a class of addresses: what its
                                             * callees hand over, without the time of the class itself among it */
    double self_least, self_most;           /* without and with all ticks of the bins that it shares with others */
    bool self_estimated;                    /* self may be wrong by more than a tenth, or is 0 and may be more */
    const struct report_measured *measured; /* NULL: there are no stacks */
    uint64_t calls;                         /* from others, inside and outside its cycle */
    uint64_t calls_outside, calls_inside;   /* from outside its cycle, and from its members, itself included; in no
                                             * cycle from others, and from itself */
    uint64_t self_calls;                    /* direct recursion */
    uint32_t cycle;                         /* number, 0 if none */
    bool spontaneous;                       /* no call from another function in the window, and none in stacks */
    uint32_t caller_count, callee_count;
    const struct report_arc *callers; /* least first, as gprof lists them above the entry */
    const struct report_arc *callees; /* most first */
    /* With static_arcs: in the machine code (or imported with count 0), without a call in the window; not in callees.
     * By position. */
    const struct report_arc *static_callees;
    uint32_t static_callee_count;
    const struct report_arc *static_callers;
    uint32_t static_caller_count;
};

/* Calls of a function, those by itself included: what its callees' calls are divided by to have the calls in each. */
static inline double report_all_calls(const struct report_function *f)
{
    return (double)f->calls + (double)f->self_calls;
}

/* A cycle as a whole, shown if at least one member is an entry. Rows of callers have the cycle as callee: other =
 * function outside. members holds all of them, largest time first, those without counts in the window (index 0)
 * included. */
struct report_cycle {
    uint32_t index, number;
    double self, children, percent;
    const struct report_measured *measured; /* NULL: there are no stacks */
    uint64_t calls_outside, calls_inside;   /* into members: from outside; from members, also to themselves */
    uint32_t member_count, caller_count, callee_count;
    bool closed; /* the arcs of the report make one cycle of its members; false: only those of all stored time do */
    const struct report_arc
        *members; /* other = member, calls = its calls from members; of_calls 0; self, children its own */
    const struct report_arc *callers; /* functions outside, summed over members */
    const struct report_arc *callees; /* functions outside that members called */
};

struct report {
    uint32_t function_count, cycle_count;
    uint32_t counted_functions; /* functions with code that calls a counter (runtime_is_counter), in all builds of the
                                   report */
    const uint32_t *counted_of; /* those of each of builds */
    uint32_t not_called_count;  /* those of them that are no entries: without samples, and without calls in or out */
    const struct report_function
        *functions;         /* by (build, address): stable positions; "[outside]" and "[incomplete]" last */
    const double *uncalled; /* of each function that is in no cycle, with stacks_only; NULL: its callers say it */
    const struct report_cycle *cycles;        /* by number: ascending by first member */
    const struct report_function *not_called; /* by (build, address): what they are called; all figures are 0 */
    const uint32_t *order; /* entries in index order: position in functions, or REPORT_CYCLE | (number − 1) */
    uint32_t order_count;  /* entries and cycles; at most function_count + cycle_count */
    double
        total; /* seconds of all samples, as everything called seconds here: ticks/rate in the unit of the dimension */
    uint64_t ticks, calls;
    double per_tick;       /* samples that a tick stands for (coverage_per_tick); 0: not known, one */
    uint32_t rate_count;   /* distinct rates among the histograms */
    const uint32_t *rates; /* ascending */
    const char *const
        *builds; /* ids of the profile's builds, in load order (not in the profile's order of introduction,
                  * which depends on arrival); one more entry, "", at build_count for what is outside */
    const char *const *build_names; /* likewise; "" where none is known */
    uint32_t build_count;
    uint32_t unnamed_builds;   /* builds with entries, but without symbols */
    uint32_t jumped_functions; /* with a row of callers that has jumped set */
    uint32_t open_cycles;      /* that are not closed by the arcs of the report */
    bool static_arcs;
    bool saturated;
    bool estimated;        /* the self time of an entry is */
    const char *dimension; /* of the samples: "seconds" */
    bool in_seconds;       /* it is time: "seconds" of a CPU, or "wall", waiting included */
    uint32_t other_dimension_count;
    const struct report_dimension *other_dimensions; /* in the profile and left out here, in byte order */
    const struct report_stack_facts *stacks;         /* NULL: none of the dimension */
    bool time_measured;                              /* measured times sort: entries, and the rows of each */
    const struct report *shown; /* the same report with self, children and percent as time_measured chooses */
};

/* The samples that brought that many ticks: thresholds and digits count samples. */
static inline double report_samples(const struct report *r, double ticks)
{
    return r->per_tick > 0 ? ticks * r->per_tick : ticks;
}

#define REPORT_CYCLE 0x80000000u

/* Computes the report in the arena: symbolize O((bins + arcs) log n) or better, the rest O(n + m) and sorts;
 * no recursion. Same input, same bytes, whatever the order in which uploads arrived. Profile and objects must outlive
 * the report. BAD_QUERY naming the dimensions of the samples if there are some and none of the request's; LIMIT beyond
 * 2^31 functions; NO_MEMORY. */
enum profd_status report_build(struct arena *a, const struct report_request *request, struct report **out,
                               struct profd_error *e);

/* What samples measure. Ticks of different dimensions (seconds, cycles, instructions) cannot be added up: a report
 * takes one. */

#define REPORT_DIMENSION_USUAL "seconds"

/* Returns whether ticks of the dimension, divided by their rate, are seconds. */
bool report_dimension_is_time(const char *dimension);

/* Place in a list in byte order of the dimension that was asked for, or (NULL) of "seconds", or of the first; n where
 * there is none but nothing was asked for that must be there. BAD_QUERY naming the list, unless it may lack. O(n). */
enum profd_status report_dimension_pick(const struct report_dimension *list, uint32_t n, const char *asked,
                                        bool may_lack, uint32_t *at, struct profd_error *e);

/* Self time of functions by address. */

/* Seconds of the bins that begin at address. */
struct report_place {
    uint64_t address;
    double seconds;
};

struct report_places {
    const uint32_t *first; /* of function i: list[first[i]] … list[first[i + 1] − 1] */
    const struct report_place *list;
    uint64_t bin_bytes; /* of the widest bin in the list; 0: the list is empty */
};

/* Places of the bins that lie wholly in one function, ascending by address. report: the profile's own. The places of a
 * function have at most its self time: what is missing there is of bins that it shares, or of parts that lie apart from
 * it (.cold). Where times are measured from stacks, places have the same proportions and all of the self time.
 * profile NULL: no places. O(bins log bins + builds²). */
void report_places_make(struct arena *a, const struct report *report, const struct profile *profile,
                        struct report_places *out);

#endif
