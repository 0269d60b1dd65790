/* What samples measure. Ticks of different dimensions (seconds, cycles, instructions) cannot be added up: a report
 * takes one. */
#ifndef PROFD_CORE_REPORT_DIMENSION_H
#define PROFD_CORE_REPORT_DIMENSION_H

#include <stdbool.h>
#include <stdint.h>

#include "core/arena.h"
#include "core/profile.h"
#include "core/report.h"
#include "proto/status.h"

#define REPORT_DIMENSION_USUAL "seconds"

/* Are ticks of it, by their rate, seconds? */
bool report_dimension_is_time(const char *dimension);

/* Place in a list in byte order of the dimension that was asked for, or (NULL) of "seconds", or of the first; n where
 * there is none but nothing was asked for that must be there. BAD_QUERY naming the list, unless it may lack. O(n). */
enum profd_status report_dimension_pick(const struct report_dimension *list, uint32_t n, const char *asked,
                                        bool may_lack, uint32_t *at, struct profd_error *e);

/* Chooses the dimension that was asked for, or (NULL) "seconds" if there is any, else the first in byte order. *others:
 * all that are left out, in byte order, in the arena; the collector's counters are none. BAD_QUERY naming what there
 * is, unless it may lack; where there are no samples at all, whatever was asked for is as good as "seconds".
 * O(histograms log histograms + bins). */
enum profd_status report_dimension_choose(struct arena *a, const struct profile *p, const char *asked, bool may_lack,
                                          const char **chosen, struct report_dimension **others, uint32_t *count,
                                          struct profd_error *e);

#endif
