/* What is done to the store between uploads: rolling up, retention, giving space back, forgetting ids. One bounded
 * slice a call; which one is next, and how soon, is decided here, without a clock or a thread of its own. */
#ifndef PROFD_ADMIN_UPKEEP_H
#define PROFD_ADMIN_UPKEEP_H

#include <stdbool.h>
#include <stdint.h>

#include "proto/status.h"
#include "store/store.h"

enum upkeep_task { UPKEEP_COMPACT, UPKEEP_RETIRE, UPKEEP_SHRINK, UPKEEP_FORGET, UPKEEP_TASKS };

/* Both clocks at one moment, in nanoseconds: the wall's may jump, the steady one (CLOCK_BOOTTIME) does not. */
struct upkeep_time {
    int64_t wall, steady;
};

struct upkeep {
    struct store_policy policy;
    enum upkeep_task task;   /* the next one */
    unsigned in_row;         /* slices of it so far, without another between */
    bool more[UPKEEP_TASKS]; /* its latest slice left work */
    struct upkeep_time start, anchor;
    int64_t ahead_since;          /* steady time when the wall jumped ahead of the anchor; 0: it did not */
    int64_t backlog_since;        /* steady time since when there has always been more to do; 0: none */
    int64_t totals_at, forgot_at; /* steady time of the latest; 0: never */
    struct store_totals totals;   /* of some moment in the last seconds */
    uint64_t uploads[UPKEEP_TASKS], rows[UPKEEP_TASKS], slices[UPKEEP_TASKS]; /* done since the start */
};

void upkeep_init(struct upkeep *u, const struct store_policy *policy, struct upkeep_time now);

/* The latest wall time that removal may believe: a wall clock that jumps ahead while we run must not delete what is
 * kept, nor forget ids. Backward is believed at once, forward after a day in which it stays so. */
int64_t upkeep_believe(struct upkeep *u, struct upkeep_time now);

/* Does one slice on the writing handle and chooses the next. After a failure the next one, too: the failed one has its
 * turn again in the next round. */
enum profd_status upkeep_run(struct upkeep *u, struct store *store, struct upkeep_time now, struct profd_error *e);

/* Milliseconds until the next slice, after one that took so many: none while there is work and no upload waits; a part
 * of the writer's time, larger the longer the backlog, while uploads wait; when there is nothing to do a second if
 * uploads came since the latest look, else more. */
uint64_t upkeep_pause(const struct upkeep *u, bool uploads_wait, bool uploads_came, uint64_t took_ms,
                      struct upkeep_time now);

/* Milliseconds for which slices may follow each other without a batch of uploads between: 0 for one slice, but much
 * when single uploads outgrow the policy by far. Who sends faster than sums are made has to wait; the disk must not
 * fill up instead. */
uint64_t upkeep_budget(const struct upkeep *u);

/* Bytes of single uploads beyond the policy, at the latest look. */
uint64_t upkeep_backlog(const struct upkeep *u);

#endif
