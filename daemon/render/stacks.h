/* A tree of callers and callees: the stacks that were seen, if the report is measured by them; else derived from arcs.
 *
 * Stacks derived from arcs: a tree of callers and callees in which every time is divided as the report divides it.
 * These stacks were never observed, and every format must mark them "synthetic". Exact are the totals of functions, as
 * far as paths were followed, and of depth one and two. Internal to render. */
#ifndef PROFD_RENDER_STACKS_H
#define PROFD_RENDER_STACKS_H

#include <stdbool.h>
#include <stdint.h>

#include "core/arena.h"
#include "core/report.h"
#include "render/name.h"

#define STACKS_NONE UINT32_MAX
#define STACKS_CUT 0x7fffffffu /* frame of time that lies below paths that were not followed */
#define STACKS_NODES 16384u
#define STACKS_DEPTH 512u

struct stack_node {
    uint32_t parent;    /* its place in the list; STACKS_NONE for a root */
    uint32_t frame;     /* position in functions, REPORT_CYCLE | position in cycles, or STACKS_CUT */
    uint32_t depth;     /* 0 for a root */
    double total, self; /* seconds; self: what is not in the node's children */
    bool inferred;      /* report_frame */
};

struct stacks_flow;

/* Depth first: a node precedes its children, which are ordered by descending total. */
struct stacks {
    uint32_t count;
    const struct stack_node *nodes;
    double total;                   /* Σ roots */
    double cut;                     /* seconds below paths that were not followed */
    bool synthetic;                 /* derived, never seen */
    const struct stacks_flow *flow; /* NULL unless synthetic: which cycles are undivided, and where they are placed */
};

/* Follows the paths with most time first, until STACKS_NODES nodes or STACKS_DEPTH frames; what is below goes to nodes
 * of frame STACKS_CUT. A cycle is one frame. Below it stand its members with their own times, and the functions outside
 * that they called; nothing says in which order members called one another. A cycle with several callers stands where
 * stacks_flow.h says. O(nodes · (log nodes + callees) + (functions + arcs) · log functions). */
void stacks_make(const struct report *report, struct arena *a, struct stacks *out);

/* The frame of name "[synthetic stacks]" for formats without comments; NULL where stacks were seen. */
const char *stacks_mark(const struct stacks *s);

/* The text of a frame. */
const char *stacks_frame_name(const struct name_list *names, const struct report *report, uint32_t frame,
                              struct arena *a);

#endif
