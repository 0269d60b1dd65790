/* Samples on addresses become ticks of owners. */
#ifndef PROFD_CORE_REPORT_TICKS_H
#define PROFD_CORE_REPORT_TICKS_H

#include <stdbool.h>
#include <stdint.h>

#include "core/arena.h"
#include "core/profile.h"
#include "core/report_builds.h"
#include "core/report_dimension.h"
#include "proto/status.h"

#define REPORT_TICKS_NS 1000000000u

/* Ticks of one owner at one rate: a whole number and parts of shared bins. A row without ticks is of an owner with
 * bytes in shared bins only that got none of their ticks. */
struct report_tick {
    uint64_t whole;
    double part;
    double given;   /* how many of them are of shared bins */
    double sharing; /* all ticks of the shared bins in which it takes part */
    uint32_t rate;  /* index into rates */
    uint32_t owner; /* as report_builds numbers them */
};

struct report_ticks {
    uint32_t rate_count;
    uint32_t *rates;  /* ascending */
    uint64_t *totals; /* ticks at each rate */
    uint32_t count;
    struct report_tick *rows; /* ascending by (rate, owner) */
    uint64_t ticks;           /* Σ totals, stopping at 2^63−1 */
    double per_tick;          /* samples that a tick stands for (coverage_per_tick) */
    const char *dimension;    /* that was taken */
    uint32_t other_count;
    struct report_dimension *others; /* that were left out, in byte order */
};

/* Adds up the samples of one dimension, as report_build chooses it; the collector's counters are no samples.
 * proto/bins.h says which bytes a bin counts.
 *
 * A bin over several owners is shared. [gap] gets only bins without a function, because padding is not executed. A
 * symbol of size 0 gets only bins without another function. Among the others the weight is bytes in the bin × density:
 * the ticks by byte of the bins that lie wholly in the same contiguous piece of the function. If all densities are
 * zero, the weight is bytes × calls; if none was called, bytes. A function without a whole bin there has no density:
 * such functions get the ticks that the known densities do not account for, by bytes × calls, or by bytes if no
 * function in the bin was called.
 *
 * A function that takes part in a shared bin may have had none or all of its ticks: given and sharing bound that.
 *
 * Collectors count the ticks outside all builds as time (COLLECTOR_OUTSIDE_NS). If the request wants them, they become
 * ticks of "[outside]" at the lowest rate. Where all ticks are outside, no rate is known: the time is in totals at
 * REPORT_TICKS_NS, and ticks has none of them. In a sum with ticks of both clocks their clock is not known, and they
 * are left out.
 *
 * calls: into each owner (report_arcs). Sums do not depend on the order of arrival. O((bins + functions under shared
 * bins) log bins). BAD_QUERY: there are samples, and none of the dimension asked for, which may not lack. */
enum profd_status report_ticks_collect(struct arena *a, const struct report_request *request,
                                       const struct report_builds *b, const uint64_t *calls, struct report_ticks *out,
                                       struct profd_error *e);

static inline bool report_tick_has_any(const struct report_tick *t)
{
    return t->whole > 0 || t->part > 0;
}

/* Seconds: Σ (whole + part) / rate must be added by ascending rate. */
static inline double report_tick_seconds(const struct report_ticks *t, uint64_t whole, double part, uint32_t rate)
{
    return ((double)whole + part) / (double)t->rates[rate];
}

#endif
