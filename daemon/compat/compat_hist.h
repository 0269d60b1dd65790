/* Samples to symbols as gprof does it (reference 3.4): in units of two bytes, each bin's ticks shared by overlap. */
#ifndef PROFD_COMPAT_COMPAT_HIST_H
#define PROFD_COMPAT_COMPAT_HIST_H

#include <stdint.h>

#include "compat/compat_filter.h"
#include "compat/compat_symbols.h"
#include "core/arena.h"
#include "proto/counts.h"
#include "proto/status.h"

/* All records of one range, added up. Bins ascend; those of no tick may be missing. */
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
    struct compat_hist_range *ranges; /* in the order of their first records */
    double scale;                     /* units of two bytes in a bin, by the first record; 0 without records */
    uint32_t rate;                    /* of the first record, 0 without: later records' rates are not looked at */
    char dimension[16];               /* "seconds" */
    char abbreviation;
    double *time; /* by symbol */
    double total; /* ticks of all bins, those outside every symbol too, those of filtered symbols not */
};

/* Adds records of the same range, keeps disjoint ones apart, and apportions. CONFLICT in gprof's words if records
 * disagree in dimension, abbreviation or scale, or overlap. O(records² + bins + symbols), records ≤ LIMIT_HISTOGRAMS. A
 * range that is empty or upside down meets no other. */
enum profd_status compat_hist_assign(const struct counts *c, const struct compat_symbols *s,
                                     const struct compat_filter *f, struct arena *a, struct compat_hist *out,
                                     struct profd_error *e);

#endif
