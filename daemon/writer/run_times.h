/* When the daemon ran: the file "runs" in the state directory has a line for each run, with its start and the latest
 * time at which it was seen to run. It tells when no daemon ran, and outlives a kill. */
#ifndef PROFD_WRITER_RUN_TIMES_H
#define PROFD_WRITER_RUN_TIMES_H

#include <stdint.h>

#include "core/downtime.h"

struct run_times;

/* Reads the earlier runs; this one starts at now. directory: the state directory, which is locked and outlives it.
 * A failure is logged, and nothing is known of the runs that could not be read. NULL when out of memory. */
struct run_times *run_times_open(int directory, int64_t now);
/* The start has succeeded: only now the run is one. Once. */
void run_times_begin(struct run_times *r);
/* This run goes on, or ends: to be called every few seconds. Nothing before run_times_begin. Accepts
 * NULL. */
void run_times_beat(struct run_times *r, int64_t now);
/* The gaps between the runs, the latest DOWNTIME_MAX of them. They do not change while this one goes on. */
const struct downtime *run_times_get_downtime(const struct run_times *r);
/* Accepts NULL. */
void run_times_close(struct run_times *r);

#endif
