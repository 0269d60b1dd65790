/* The profile's stacks become one tree of functions. Return addresses that no call stands before are cut, and
 * functions that frame pointers skip are put in where the machine code names them. */
#ifndef PROFD_CORE_REPORT_STACKS_H
#define PROFD_CORE_REPORT_STACKS_H

#include <stdbool.h>
#include <stdint.h>

#include "core/arena.h"
#include "core/report_arcs.h"
#include "core/report_builds.h"
#include "core/report_imports.h"
#include "core/spread.h"
#include "proto/status.h"

#define REPORT_STACKS_ROOT UINT32_MAX

/* Ticks of one rate. */
struct report_stacks_rate {
    uint32_t rate;
    uint64_t *self;   /* of each node: whole stacks that end in it */
    uint64_t *folded; /* of each node: stacks of which the inner frames are not known */
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
    uint64_t unknown;                 /* stacks of which the outer frames are not known, cut ones among them */
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

#endif
