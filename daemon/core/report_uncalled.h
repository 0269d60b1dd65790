/* Functions that count their calls and were not called. */
#ifndef PROFD_CORE_REPORT_UNCALLED_H
#define PROFD_CORE_REPORT_UNCALLED_H

#include <stdbool.h>
#include <stdint.h>

#include "core/arena.h"
#include "core/report_builds.h"

struct report_uncalled {
    uint32_t counted; /* functions with machine code that calls a counter (runtime_is_counter) */
    uint32_t count;   /* those of them without samples, and without calls in or out */
    uint32_t *owners; /* count owners as report_builds numbers them, ascending; in the arena */
};

/* Finds them. seen has the flags of each owner (report_arcs.h): REPORT_ENTRY means samples or calls.
 * False when memory is exhausted. O(symbols + static arcs). */
bool report_uncalled_find(struct arena *a, const struct report_builds *b, const uint8_t *seen,
                          struct report_uncalled *out);

#endif
