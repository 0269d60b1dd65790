#include "writer/upkeep.h"

#define SECOND INT64_C(1000000000)
#define DAY (86400 * SECOND)
#define JUMP (3600 * SECOND)         /* more than any correction of a clock */
#define FIRST_REMOVAL (600 * SECOND) /* after the start, when a wrong clock has been corrected */
#define IN_ROW 16                    /* slices of one task before the next task */
#define SHRINK_SLICE (4u << 20)      /* bytes */
#define FREE_KEPT (16u << 20)        /* free bytes of the file that stay for the next uploads, or an eighth of it */
#define FORGET_EVERY (60 * SECOND)
#define TOTALS_EVERY SECOND
#define IDLE_MS_MIN 250u
#define IDLE_MS_BUSY 1000u
#define IDLE_MS_MAX 10000u

void upkeep_init(struct upkeep *u, const struct store_policy *policy, struct upkeep_time now)
{
    *u = (struct upkeep){.policy = *policy, .start = now, .anchor = now};
}

int64_t upkeep_judge_time(struct upkeep_time anchor, struct upkeep_time now)
{
    const int64_t expected = anchor.wall + (now.steady - anchor.steady);

    return now.wall <= expected + JUMP ? now.wall : expected;
}

int64_t upkeep_trust_time(struct upkeep *u, struct upkeep_time now)
{
    const int64_t trusted = upkeep_judge_time(u->anchor, now);

    u->ahead = 0;
    if (trusted == now.wall) {
        u->anchor = now;
        u->ahead_since = 0;
        u->confirmed = false;
        return now.wall;
    }
    if (!u->ahead_since) {
        u->ahead_since = now.steady;
    }
    if (u->confirmed || now.steady - u->ahead_since > DAY) {
        u->anchor = now;
        u->confirmed = false;
        u->ahead_since = 0;
        return now.wall;
    }
    u->ahead = now.wall - trusted;
    return trusted;
}

void upkeep_read_clock(struct upkeep *u, struct upkeep_time now)
{
    if (!u->clock_read && u->totals.clock && now.wall > u->totals.clock + DAY) {
        u->anchor = (struct upkeep_time){.wall = u->totals.clock, .steady = now.steady};
    }
    u->clock_read = true;
}

static enum profd_status upkeep_do(struct upkeep *u, struct store *store, struct upkeep_time now,
                                   struct store_progress *done, struct profd_error *e)
{
    const uint64_t free_kept = u->totals.file_bytes / 8 > FREE_KEPT ? u->totals.file_bytes / 8 : FREE_KEPT;
    struct store_policy policy = u->policy;
    int64_t wait = FIRST_REMOVAL;
    enum profd_status status;

    switch (u->task) {
    case UPKEEP_COMPACT:
        return store_compact(store, &policy, now.wall, done, e);
    case UPKEEP_RETIRE:
        /* Days are removed by the trusted wall time. For a while after the start nothing is removed because of its age;
         * deleted data still is. */
        if (policy.keep_age && policy.keep_age / 100 < wait) {
            wait = policy.keep_age / 100;
        }
        if (now.steady - u->start.steady < wait) {
            policy.keep_age = 0;
        }
        return store_retire(store, &policy, upkeep_trust_time(u, now), done, e);
    case UPKEEP_SHRINK:
        return u->no_space || u->totals.free_bytes > free_kept ? store_shrink(store, SHRINK_SLICE, done, e) : PROFD_OK;
    case UPKEEP_RELAY:
        return policy.relay_bytes ? store_keep_segments(store, &policy, upkeep_trust_time(u, now), done, e) : PROFD_OK;
    default: /* UPKEEP_FORGET */
        if (u->forgot_at && now.steady - u->forgot_at < FORGET_EVERY) {
            return PROFD_OK;
        }
        status = store_remove_ids(store, upkeep_trust_time(u, now) - LIMIT_ID_DAYS * DAY, e);
        u->forgot_at = status ? u->forgot_at : now.steady;
        return status;
    }
}

/* Continues with the same task while it has more work, up to IN_ROW slices, then with the next one. After a failure it
 * continues with the next one immediately, because a removal may free the space that was missing. */
static void upkeep_choose(struct upkeep *u, bool failed)
{
    if (!failed && u->more[u->task] && ++u->in_row < IN_ROW) {
        return;
    }
    u->in_row = 0;
    u->task = (enum upkeep_task)((u->task + 1u) % UPKEEP_TASKS);
}

enum profd_status upkeep_run(struct upkeep *u, struct store *store, struct upkeep_time now, struct profd_error *e)
{
    struct store_progress done = {.more = false};
    enum profd_status status = PROFD_OK;
    const enum upkeep_task task = u->task;

    if (!u->totals_at || now.steady - u->totals_at >= TOTALS_EVERY || task == UPKEEP_SHRINK) {
        status = store_get_totals(store, &u->totals, e);
        u->totals_at = now.steady;
    }
    if (status && !u->clock_read) { /* nothing is known of the clock, and nothing may be removed */
        return status;
    }
    upkeep_read_clock(u, now);
    /* Also if the totals cannot be read: a task may mend what is wrong. */
    struct profd_error untold;
    const enum profd_status did = upkeep_do(u, store, now, &done, status ? &untold : e);
    if (status || did) {
        status = status ? status : did;
        upkeep_choose(u, true);
        return status;
    }
    u->more[task] = done.more;
    u->uploads[task] += done.uploads;
    u->slices[task]++;
    upkeep_choose(u, false);
    if (!u->more[UPKEEP_COMPACT] && !u->more[UPKEEP_RETIRE]) {
        u->backlog_since = 0;
    } else if (!u->backlog_since) {
        u->backlog_since = now.steady;
    }
    return PROFD_OK;
}

uint64_t upkeep_backlog(const struct upkeep *u)
{
    return u->totals.raw_bytes > u->policy.raw_bytes ? u->totals.raw_bytes - u->policy.raw_bytes : 0;
}

/* A burst may exceed raw_bytes by this much before uploads are slowed down: compaction catches up afterwards. */
static uint64_t upkeep_slack(const struct upkeep *u)
{
    return u->policy.raw_bytes > UINT64_MAX / 8 ? UINT64_MAX / 2 : 4 * u->policy.raw_bytes;
}

uint64_t upkeep_budget(const struct upkeep *u)
{
    const uint64_t slack = upkeep_slack(u), backlog = upkeep_backlog(u);

    if (!u->more[UPKEEP_COMPACT] || backlog <= slack) {
        return 0;
    }
    return backlog > 2 * slack ? 400 : 100;
}

uint64_t upkeep_pause(const struct upkeep *u, bool uploads_wait, bool uploads_came, uint64_t took_ms,
                      struct upkeep_time now)
{
    const uint64_t slack = upkeep_slack(u), took = took_ms ? took_ms : 1;
    uint64_t idle = (uint64_t)(u->policy.raw_age / 1000000 / 8);

    /* A round that has begun is finished: only its end shows that there is no work. */
    bool more = u->task != UPKEEP_COMPACT;

    for (int i = 0; i < UPKEEP_TASKS; i++) {
        more |= u->more[i];
    }
    if (!more) {
        const uint64_t most = uploads_came ? IDLE_MS_BUSY : IDLE_MS_MAX;

        if (idle > most) {
            idle = most;
        }
        return idle < IDLE_MS_MIN ? IDLE_MS_MIN : idle;
    }
    if (!uploads_wait || upkeep_backlog(u) > slack) {
        return 0;
    }
    /* Of the writer's time: a half, a quarter or a twentieth. */
    if (upkeep_backlog(u) > slack / 2) {
        return took;
    }
    if (upkeep_backlog(u) > slack / 4 || (u->backlog_since && now.steady - u->backlog_since > 60 * SECOND)) {
        return 3 * took;
    }
    return 19 * took;
}
