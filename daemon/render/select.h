/* Which entries of a report are shown, and in which order (DECISIONS 8). Internal to render. */
#ifndef PROFD_RENDER_SELECT_H
#define PROFD_RENDER_SELECT_H

#include <stdbool.h>
#include <stdint.h>

#include "core/arena.h"
#include "proto/status.h"
#include "render/render.h"

struct selection {
    uint32_t entry_count;
    const uint32_t *entries; /* position in functions, or REPORT_CYCLE | position in cycles */
    uint32_t function_count; /* functions among them */
    uint32_t hidden;         /* other functions that are entries of the report: limit, focus or only left them out */
    double hidden_seconds;   /* their self seconds */
};

/* Applies focus, only, sort and limit. A cycle is shown when one of its members is: in its own place when
 * sorted by index, else before its first member. O(n log n). */
void selection_make(const struct render_input *in, struct arena *a, struct selection *out);
/* For a picture: those with most time, unless another order than the index was asked for. shown[i]: function i is among
 * them; of the arena. */
void selection_make_picture(const struct render_input *in, struct arena *a, struct selection *out, bool **shown);

/* Rows of a list that are shown, and what the others have. */
struct row_cut {
    uint32_t first, count;
    uint32_t left;  /* rows that are not shown */
    uint64_t calls; /* theirs; stopped at SUM_MAX */
    double seconds; /* self and children, theirs */
};

/* The heaviest `most` rows of the list, which is in the report's order; 0: all. last_is_heaviest: callers are listed
 * so. O(n). */
struct row_cut row_cut_make(const struct report_arc *rows, uint32_t n, uint32_t most, bool last_is_heaviest);

#endif
