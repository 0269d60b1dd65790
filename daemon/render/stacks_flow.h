/* Which time derived stacks may show below which function. Internal to render.
 *
 * The report divides the time of a cycle among its callers by their numbers of calls. For a cycle with several callers
 * this says nothing about the paths that led into it: a caller that calls once may account for nearly all of the time.
 * Such a cycle is undivided: its whole time belongs below the deepest function that every path to the cycle passes (its
 * immediate dominator), and below none of its callers. All else is divided as the report divides it. */
#ifndef PROFD_RENDER_STACKS_FLOW_H
#define PROFD_RENDER_STACKS_FLOW_H

#include <stdbool.h>
#include <stdint.h>

#include "core/arena.h"
#include "core/report.h"

#define STACKS_ROOT UINT32_MAX /* below no function: the paths have no function in common */

/* Entities are the functions outside cycles, by position, and behind function_count the cycles. */
struct stacks_flow {
    const struct report *report;
    double *total;       /* of each entity: its time with all that is shown below it, in the unit of the report; of a
                          * class of addresses, which has nothing below it in the stack of a caller, its self time */
    double *rooted;      /* of each entity: the part of total that no caller accounts for; of a class of addresses also
                          * all that it calls */
    bool *undivided;     /* of each entity: a cycle with several callers */
    uint32_t *dominator; /* of each entity: immediate dominator, or STACKS_ROOT */
    uint32_t *first, *next; /* undivided cycles below an entity: first[entity], then next[]; STACKS_ROOT ends a list */
};

/* True for a class of addresses (report.h). Stacks begin in it or end in it, and none goes through it. */
bool stacks_flow_is_class(const struct report *report, uint32_t entity);

/* The part of the entity's total that no caller accounts for, 0 … 1. */
double stacks_flow_uncalled(const struct report *report, uint32_t entity);

/* Makes it in the arena. O((functions + arcs) log functions), no recursion.
 * Dominators of an acyclic graph by nearest common ancestors in topological order, these by skew-binary jumps (Myers,
 * An applicative random-access stack, 1983). */
struct stacks_flow *stacks_flow_make(struct arena *a, const struct report *report);

/* The entity of a frame (REPORT_CYCLE | position, or a function's position), and of a function: its cycle if it is in
 * one. */
uint32_t stacks_flow_entity(const struct stacks_flow *f, uint32_t frame);

/* The share of the callee's total that flows along an arc, 0 … 1; 0 for an arc inside a cycle and into an undivided
 * cycle. */
double stacks_flow_share(const struct stacks_flow *f, const struct report_arc *arc);

#endif
