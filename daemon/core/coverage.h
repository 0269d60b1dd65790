/* Coverage: how much of the processes' CPU time stands in functions, and what their collectors know was lost
 * (proto/words.h). Always of whole processes, also where a profile holds the samples of one build only. */
#ifndef PROFD_CORE_COVERAGE_H
#define PROFD_CORE_COVERAGE_H

#include <stdbool.h>
#include <stdint.h>

#include "core/profile.h"
#include "proto/words.h"

struct coverage {
    bool any;                   /* some upload brought words */
    bool saturated;             /* a sum of them stopped at 2^63−1 and is larger; those of times after 292 years */
    uint64_t words[WORDS_ROOM]; /* sums by number; those that have no name here are of later versions */
};

/* Adds up the words of a profile. O(histograms). */
void coverage_make(const struct profile *p, struct coverage *out);

/* ns of ticks that functions have: (sampled + wall) − inside − blocked − dropped − outside; 0 where the losses are
 * more, which only words of a liar or of processes that were seen in part can say. */
uint64_t coverage_attributed(const struct coverage *c);

/* attributed / CPU time. False, and *share untouched, where no CPU time is known, and where ticks counted waiting too
 * (wall): nobody knows then which of them were CPU time. Ticks are rounded to whole periods, so that the share may
 * exceed 1. */
bool coverage_share(const struct coverage *c, double *share);

#endif
