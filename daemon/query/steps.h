/* Steps of time that a window is divided into. */
#ifndef PROFD_QUERY_STEPS_H
#define PROFD_QUERY_STEPS_H

#include <stdint.h>

#include "proto/status.h"
#include "query/params.h"
#include "query/work.h"

#define STEPS_HOUR INT64_C(3600000000000)

/* step= in ns; usual (0 or one of them) when it is absent. BAD_QUERY naming those there are. An answer of steps below
 * an hour is unsettled: what they have moves into one of them when their hour is rolled up. */
enum profd_status steps_parse(struct job *job, int64_t usual, int64_t *step, struct profd_error *e);

/* Where data of the build can be: its uploads' times, cut by the options' window; nothing when *begin ≥ *end. BAD_QUERY
 * if it has more than LIMIT_STEPS steps. step 0: any. */
enum profd_status steps_find_span(const struct work *w, int64_t step, int64_t *begin, int64_t *end,
                                  struct profd_error *e);

#endif
