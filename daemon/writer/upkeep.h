/* Upkeep of the store between uploads: rolling up, retention, returning space, removing acknowledged uploads that are
 * kept for a centre, and forgetting ids. Each call does one bounded slice. This file decides which task is next and how
 * soon. It uses no clock and no thread of its own. */
#ifndef PROFD_WRITER_UPKEEP_H
#define PROFD_WRITER_UPKEEP_H

#include <stdbool.h>
#include <stdint.h>

#include "proto/status.h"
#include "store/store.h"

enum upkeep_task { UPKEEP_COMPACT, UPKEEP_RETIRE, UPKEEP_SHRINK, UPKEEP_RELAY, UPKEEP_FORGET, UPKEEP_TASKS };

/* Both clocks at one moment, in nanoseconds: the wall's may jump, the steady one (CLOCK_BOOTTIME) does not. */
struct upkeep_time {
    int64_t wall, steady;
};

struct upkeep {
    struct store_policy policy;
    enum upkeep_task task;            /* the next one */
    bool no_space;                    /* set by the caller: free pages of the database are wanted on the disk */
    unsigned in_row;                  /* slices of it so far, without another between */
    bool more[UPKEEP_TASKS];          /* its latest slice left work */
    struct upkeep_time start, anchor; /* anchor: when the clocks were trusted last */
    bool clock_read;                  /* the anchor was compared with the time that the store knows */
    int64_t ahead;                    /* ns by which the wall is ahead of the time that removals use; 0: it is not */
    int64_t ahead_since;              /* steady time when the wall jumped ahead of the anchor; 0: it did not */
    bool confirmed;                   /* set by the caller: an operator says that a wall which is ahead is right */
    int64_t backlog_since;            /* steady time since when there has always been more to do; 0: none */
    int64_t totals_at, forgot_at;     /* steady time of the latest; 0: never */
    struct store_totals totals;       /* of some moment in the last seconds */
    uint64_t uploads[UPKEEP_TASKS], slices[UPKEEP_TASKS]; /* done since the start */
};

void upkeep_init(struct upkeep *u, const struct store_policy *policy, struct upkeep_time now);

/* Compares a clock that may be wrong at the start with what an earlier daemon has trusted, totals.clock, once. A daemon
 * that was away for more than a day looks the same, and removes nothing for a day either. */
void upkeep_read_clock(struct upkeep *u, struct upkeep_time now);
/* The wall time that may be used now, if the clocks were trusted at anchor: what the steady clock says, if the wall is
 * more than an hour ahead of that. */
int64_t upkeep_judge_time(struct upkeep_time anchor, struct upkeep_time now);

/* The wall time that removals may use. A wall clock that jumps ahead must not delete data or forget ids: backward jumps
 * are accepted immediately, forward jumps after they have lasted a day or were confirmed. */
int64_t upkeep_trust_time(struct upkeep *u, struct upkeep_time now);

/* Does one slice on the writing handle and chooses the next task. A failed task is tried again in the next round. */
enum profd_status upkeep_run(struct upkeep *u, struct store *store, struct upkeep_time now, struct profd_error *e);

/* Milliseconds until the next slice, after one that took took_ms: 0 if there is work and no upload waits; a share of
 * the writer's time, growing with the backlog, while uploads wait; if there is no work, a second if uploads came
 * recently, otherwise more. */
uint64_t upkeep_pause(const struct upkeep *u, bool uploads_wait, bool uploads_came, uint64_t took_ms,
                      struct upkeep_time now);

/* Milliseconds for which slices may follow each other without a batch of uploads between them: 0 means one slice; more
 * if uploads exceed raw_bytes by far. Senders that are faster than rolling up must wait, so that the disk does not fill
 * up. */
uint64_t upkeep_budget(const struct upkeep *u);

/* Bytes of single uploads beyond the policy, at the latest look. */
uint64_t upkeep_backlog(const struct upkeep *u);

#endif
