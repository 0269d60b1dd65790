/* Upkeep (admin/upkeep.h) in slices between batches of uploads. There is one job; it comes back to the loop after each
 * slice, which decides when the next one is put. */
#ifndef PROFD_WRITER_UPKEEP_JOB_H
#define PROFD_WRITER_UPKEEP_JOB_H

#include <stdint.h>

#include "writer/upkeep.h"
#include "proto/status.h"
#include "store/store.h"

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
