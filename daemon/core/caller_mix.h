/* What equations about the callers of one function are made of: which of the stored calls are of which caller, and how
 * many seconds of the function a tick of a bin is. */
#ifndef PROFD_CORE_CALLER_MIX_H
#define PROFD_CORE_CALLER_MIX_H

#include <stdbool.h>
#include <stdint.h>

#include "core/arena.h"
#include "core/report.h"
#include "proto/counts.h"
#include "proto/status.h"

#define CALLER_MIX_NONE UINT32_MAX
/* Of struct caller_mix's shared. With SQLite and 150 processes, the costs of functions with 0.34 and less agreed with
 * stacks; of those with 0.49 and more, most of the time was on the wrong caller, outside all intervals. */
#define CALLER_MIX_SHARED_MOST 0.4

struct caller_mix_arc {
    uint32_t from_build, to_build; /* the profile's */
    uint64_t from, to;
    uint32_t caller;
};

struct caller_mix_histogram {
    COUNTS_WITH_GEOMETRY
    uint32_t used;
    const uint32_t *index; /* ascending */
    double *seconds;       /* of the function, by tick: 0 where the bin is of others */
};

struct caller_mix {
    uint32_t caller_count;
    uint32_t *callers; /* positions in the report's functions, ascending: other functions with calls of this one */
    uint32_t arc_count;
    struct caller_mix_arc *arcs; /* calls of the function by others; ascending as the profile's */
    uint32_t histogram_count;
    struct caller_mix_histogram *histograms; /* of the dimension */
    bool in_cycle;     /* nothing else is then set: its time is not told from that of the other members */
    bool shared_below; /* what it calls has other callers too, and its time comes by numbers of calls */
    double shared;     /* the part of its time that may be wrong by that: of each of those, the time that its own calls
                          have or the time that others' have, whichever is less */
};

/* For the function at this position of the report of the same request. Time is self time, and that of what it calls as
 * the report propagates it; bins of several functions are shared by bytes. Everything lives in the arena. Costs as
 * report_build. */
enum profd_status caller_mix_make(struct arena *a, const struct report_request *request, uint32_t function,
                                  struct caller_mix *out, struct profd_error *e);

/* The number of the caller of which this arc counts calls; CALLER_MIX_NONE: it is none into the function. O(log
 * arcs). */
uint32_t caller_mix_find(const struct caller_mix *m, uint32_t from_build, uint64_t from, uint32_t to_build,
                         uint64_t to);
/* NULL: no histogram of this kind. O(histograms). */
const struct caller_mix_histogram *caller_mix_find_histogram(const struct caller_mix *m,
                                                             const struct counts_geometry *g);
/* Seconds of a tick of that bin. *place: where the last search ended, 0 at first; bins ascend. */
double caller_mix_seconds(const struct caller_mix_histogram *h, uint32_t bin, uint32_t *place);

#endif
