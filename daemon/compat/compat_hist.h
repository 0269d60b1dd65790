/* Assigns ticks to symbols as gprof does (reference 3.4): in units of two bytes, each bin divided by overlap. */
#ifndef PROFD_COMPAT_COMPAT_HIST_H
#define PROFD_COMPAT_COMPAT_HIST_H

#include <stdint.h>

#include "compat/compat_filter.h"
#include "compat/compat_symbols.h"
#include "core/arena.h"
#include "proto/counts.h"
#include "proto/status.h"

/* All records of one range, added up. Bins ascend; bins without ticks may be missing. */
struct compat_hist_range {
    uint64_t low, high;
    uint32_t bins; /* of the first record */
    uint64_t used;
    const uint32_t *index;
    const uint64_t *ticks;
};

/* Times are in ticks; divide by rate when printing. */
struct compat_hist {
    uint32_t range_count;
    struct compat_hist_range *ranges; /* groups in the order of their first records */
    double scale;                     /* units of two bytes in a bin of the first record; 0 if there is no record */
    uint32_t rate;                    /* rate of the first record, 0 if there is none: later rates are ignored */
    char dimension[16];               /* "seconds" */
    char abbreviation;
    double *time; /* by symbol */
    double total; /* ticks of all bins, including bins outside every symbol, without those of filtered symbols */
};

/* Adds up records of the same range, keeps disjoint ranges apart, and divides the bins. CONFLICT, with gprof's message:
 * records differ in dimension, abbreviation or scale, or overlap. A range that is empty or reversed overlaps no other.
 * O(records² + bins + symbols), records ≤ LIMIT_HISTOGRAMS. */
enum profd_status compat_hist_assign(const struct counts *c, const struct compat_symbols *s,
                                     const struct compat_filter *f, struct arena *a, struct compat_hist *out,
                                     struct profd_error *e);

#endif
