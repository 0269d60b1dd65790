/* Samples on addresses become ticks of owners. */
#ifndef PROFD_CORE_REPORT_TICKS_H
#define PROFD_CORE_REPORT_TICKS_H

#include <stdint.h>

#include "core/arena.h"
#include "core/profile.h"
#include "core/report_builds.h"
#include "core/report_dimension.h"
#include "proto/status.h"

/* Ticks of one owner at one rate: a whole number and what came from shared bins. */
struct report_tick {
    uint64_t whole;
    double part;
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
    const char *dimension;    /* that was taken */
    uint32_t other_count;
    struct report_dimension *others; /* that were left out, in byte order */
};

/* A bin over several functions is shared by overlap in bytes; [gap] gets only bins that touch nothing else, because
 * padding is not executed. Samples of one dimension, as report_build says; never the collector's words.
 * O(bins + functions under shared bins). BAD_QUERY: there are samples, and none of that dimension, which may not lack.
 */
enum profd_status report_ticks_collect(struct arena *a, const struct profile *p, const struct report_builds *b,
                                       const char *dimension, bool may_lack, struct report_ticks *out,
                                       struct profd_error *e);

/* Seconds: Σ (whole + part) / rate must be added by ascending rate. */
static inline double report_tick_seconds(const struct report_ticks *t, uint64_t whole, double part, uint32_t rate)
{
    return ((double)whole + part) / (double)t->rates[rate];
}

#endif
