/* Coverage: the share of the processes' CPU time that is attributed to known objects, and the losses that their
 * collectors recorded (proto/collector.h). Always for whole processes, even if a profile has the samples of one build
 * only. */
#ifndef PROFD_CORE_COVERAGE_H
#define PROFD_CORE_COVERAGE_H

#include <stdbool.h>
#include <stdint.h>

#include "core/buffer.h"
#include "core/profile.h"
#include "core/report.h"
#include "proto/collector.h"

#define COVERAGE_SAMPLES_LEAST 30 /* shares of fewer samples are rough */

struct coverage {
    bool any;       /* an upload had counters */
    bool saturated; /* a sum of them stopped at 2^63−1 and is larger; those of times after 292 years */
    uint64_t counters[COLLECTOR_COUNTERS_MAX]; /* sums by number; those that have no name here are of later versions */
};

/* Adds up the collector's counters of a profile. Undelivered ticks are at most the CPU time without ticks.
 * O(histograms). */
void coverage_make(const struct profile *p, struct coverage *out);

/* ns of ticks in known objects: sampled − inside − blocked − dropped − outside; 0 if the losses are larger,
 * which only false counters or incomplete processes can cause. */
uint64_t coverage_attributed(const struct coverage *c);

/* True if every process was sampled from outside. */
bool coverage_is_recorded(const struct coverage *c);

/* ns of ticks in known objects of the processes that the CPU time is of. */
uint64_t coverage_clocked(const struct coverage *c);

/* clocked / (CPU time − inside): of what the program itself took. False, and *share untouched, where no such CPU
 * time is known. Ticks are rounded to whole periods, so that the share may exceed 1. */
bool coverage_share(const struct coverage *c, double *share);

/* inside / sampled: the share of the ticks that found the collector. From 0 to 1. False, and *share untouched, without
 * ticks or a collector, and where less than half of the CPU time was sampled (the rest may be spent otherwise). */
bool coverage_overhead(const struct coverage *c, double *share);

/* The samples that a tick of this rate stands for: fewer than 1 above the rate of the kernel's timer, where a sample
 * brings several ticks at once, else 1; 1 where collectors counted no samples. What chance does depends on samples. */
double coverage_per_tick(const struct coverage *c, double rate);

/* What that share is below with a probability of 95 %, if no tick was inside: 3/n of n samples (the rule of three).
 * False, and *most untouched, where ticks were inside, where coverage_overhead is false, and of fewer than 30 samples,
 * which show nothing. r: the report of the same sum, for its samples; of several rates the lowest is taken. */
bool coverage_overhead_below(const struct coverage *c, const struct report *r, double *most);
/* The number of samples of that share. */
double coverage_samples(const struct coverage *c, const struct report *r);

/* CPU time without ticks, in ns, if it is more than a tenth of all and there was time for some (50 ms): calls of that
 * time have none, so that seconds divided by calls would be too small. Otherwise 0. */
uint64_t coverage_without_ticks(const struct coverage *c);
/* Appends why, as far as the collectors know: "the clock was off, counting was paused". */
void coverage_add_why(struct buffer *out, const struct coverage *c);

#endif
