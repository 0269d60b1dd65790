/* Self time of functions by address. */
#ifndef PROFD_CORE_REPORT_PLACES_H
#define PROFD_CORE_REPORT_PLACES_H

#include <stdint.h>

#include "core/arena.h"
#include "core/profile.h"
#include "core/report.h"
#include "proto/status.h"

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
