/* Upkeep (writer/upkeep.h) in slices between batches of uploads. There is one job; it comes back to the loop after each
 * slice, which decides when the next one is put. */
#ifndef PROFD_WRITER_UPKEEP_JOB_H
#define PROFD_WRITER_UPKEEP_JOB_H

#include "core/figures.h"
#include "writer/upkeep.h"

/* When the daemon ran: the file "runs" in the state directory has a line for each run, with its start and the latest
 * time at which it was seen to run. It tells when no daemon ran, and outlives a kill. */

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

struct loop;
struct space;
struct upkeep_job;
struct writer;

struct upkeep_job_config {
    struct loop *loop;
    struct writer *writer;
    struct space *space; /* and its health */
    struct health *health;
    struct store_policy policy;
    struct store *store; /* for upkeep_job_start only: it knows a time that was trusted */
    /* On the loop: a number that grows with the uploads stored. */
    uint64_t (*get_uploads)(void *context);
    void *context;
};

enum profd_status upkeep_job_start(const struct upkeep_job_config *config, struct upkeep_job **out,
                                   struct profd_error *e);
/* Slices follow this policy from now on; the next one starts soon. */
void upkeep_job_set_policy(struct upkeep_job *u, const struct store_policy *policy);
/* An operator says that the clock, which is ahead of the time that removals use, is right: from the next slice on they
 * use it. Returns by how many seconds it is ahead, 0 if it is not: then nothing has changed. */
double upkeep_job_confirm_clock(struct upkeep_job *u);
/* Nanoseconds since the epoch, by which what was given an end may end: not those of a clock that has jumped ahead,
 * until that has lasted a day or was confirmed. */
int64_t upkeep_job_clock(const struct upkeep_job *u);
/* After a delete: starts the next slice soon, to reclaim the space. */
void upkeep_job_hurry(struct upkeep_job *u);
/* An upload was refused for lack of space that retention could free: starts the next slice soon, whatever waits. */
void upkeep_job_free_space(struct upkeep_job *u);
/* Puts no further slice. */
void upkeep_job_stop(struct upkeep_job *u);
/* After the writer. Accepts NULL. */
void upkeep_job_free(struct upkeep_job *u);

/* What it has done since the start, as of the latest slice. */
struct upkeep_counts {
    double seconds[UPKEEP_TASKS]; /* of the writer's thread */
    uint64_t rolled_up;           /* uploads */
    uint64_t backlog_bytes;       /* single uploads beyond the policy */
    double clock_ahead;           /* seconds, of the time that removals use; 0: it is trusted */
};
void upkeep_job_get_counts(const struct upkeep_job *u, struct upkeep_counts *out);

#endif
