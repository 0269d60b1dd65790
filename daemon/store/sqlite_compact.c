/* Decides which uploads and sums are rolled up next: hours from uploads, days from hours, all time from days. */
#include "store/sqlite_interval.h"

#define SECOND INT64_C(1000000000)

/* Finds the next uploads to roll up. */
static enum profd_status find_raw(struct store *s, const struct store_policy *policy, int64_t now, int64_t *series,
                                  int64_t *hour, bool *found, struct profd_error *e)
{
    sqlite3_stmt *q;
    bool row = false;
    *found = false;
    enum profd_status status = sqlite_first(s, SQL_LEDGER_RAW, NULL, 0, &q, &row, e);
    if (!row) {
        return status;
    }
    *found = sqlite3_column_int64(q, 0) < (now - policy->raw_age) / SECOND || s->state.raw_bytes > policy->raw_bytes;
    *series = sqlite3_column_int64(q, 1);
    *hour = sqlite3_column_int64(q, 2);
    sqlite_finish(q);
    return status;
}

static enum profd_status find_open(struct store *s, int level, int64_t before, int64_t *series, int64_t *at,
                                   bool *found, struct profd_error *e)
{
    sqlite3_stmt *q;
    bool row = false;
    enum profd_status status =
        sqlite_first(s, SQL_ROLLUP_TO_FOLD, VALUES(INTEGER(level), INTEGER(before)), &q, &row, e);
    *found = row;
    if (row) {
        *series = sqlite3_column_int64(q, 0);
        *at = sqlite3_column_int64(q, 1);
        sqlite_finish(q);
    }
    return status;
}

/* Adds rows that are not folded yet, from at to last, as many as the budget allows; each is then in the sum. scratch is
 * reset. */
static enum profd_status gather(struct store *s, struct arena *scratch, const struct sqlite_identity *series, int level,
                                int64_t at, int64_t last, const struct sqlite_budget *budget, struct folding *f,
                                struct profd_error *e)
{
    enum profd_status status = PROFD_OK;
    for (bool found = true, first = true; status == PROFD_OK && found && (first || !sqlite_budget_spent(budget));
         first = false) {
        struct folded row;
        TRY(sqlite_find(s, SQL_ROLLUP_OPEN_AT, VALUES(INTEGER(series->id), INTEGER(level), INTEGER(at), INTEGER(last)),
                        &at, &found, e));
        if (!found) {
            break;
        }
        arena_reset(scratch);
        status = sqlite_rollup_load(s, scratch, series->id, level, at, series->build_count, &row, &found, e);
        if (status == PROFD_OK) {
            status = folding_add(f, &row, e);
        }
        if (status == PROFD_OK) {
            status = sqlite_run(s, SQL_ROLLUP_FOLD, VALUES(INTEGER(series->id), INTEGER(level), INTEGER(at)), e);
        }
        at++;
    }
    return status;
}

/* Folds hours into their day (and into all time, if the day is in there), or days into all time. */
static enum profd_status fold(struct store *s, struct arena *a, struct arena *scratch, int64_t series, int level,
                              int64_t at, const struct sqlite_budget *budget, struct profd_error *e)
{
    struct sqlite_identity identity;
    struct folding f;
    bool found, folded = false;
    int64_t last = level == SQLITE_LEVEL_HOUR ? at / 24 * 24 + 23 : INT64_MAX;
    TRY(sqlite_series_identify(s, a, series, &identity, &found, e));
    if (!found) {
        return profd_error_set(e, PROFD_DAMAGED, "database %s: series %lld has sums but no row", s->path,
                               (long long)series);
    }
    TRY(folding_begin(&f, a, true, e));
    TRY(gather(s, scratch, &identity, level, at, last, budget, &f, e));
    TRY(folding_finish(&f, e));
    TRY(level == SQLITE_LEVEL_HOUR ? sqlite_rollup_add(s, a, &identity, SQLITE_LEVEL_DAY, at / 24, &f.out, &folded, e)
                                   : sqlite_rollup_add(s, a, &identity, SQLITE_LEVEL_ALL, 0, &f.out, &folded, e));
    if (folded) {
        TRY(sqlite_rollup_add(s, a, &identity, SQLITE_LEVEL_ALL, 0, &f.out, &folded, e));
    }
    return PROFD_OK;
}

static enum profd_status fold_once(struct store *s, int64_t series, int level, int64_t at,
                                   const struct sqlite_budget *budget, struct profd_error *e)
{
    struct arena *a = arena_new(0), *scratch = arena_new(0);
    enum profd_status status = a && scratch ? fold(s, a, scratch, series, level, at, budget, e) : profd_no_memory(e);
    arena_free(a);
    arena_free(scratch);
    return status;
}

/* Does one piece of work. *found is false if there is none. */
static enum profd_status work_once(struct store *s, const struct store_policy *policy, int64_t now,
                                   struct sqlite_budget *budget, bool *found, struct store_progress *progress,
                                   struct profd_error *e)
{
    int64_t series = 0, at = 0;
    int level = SQLITE_LEVEL_HOUR;
    bool readable;
    enum profd_status status = find_raw(s, policy, now, &series, &at, found, e);
    if (status != PROFD_OK) {
        return status;
    }
    if (*found) {
        return sqlite_roll_hour(s, series, at, budget, &readable, progress, e);
    }
    if (s->state.live_bytes > policy->raw_bytes / STORE_LIVE_PART && !s->no_widening) {
        status = sqlite_slice_widen(s, found, progress, e);
        s->no_widening = status == PROFD_DAMAGED && s->broken == PROFD_OK;
    }
    if (status != PROFD_OK || *found || s->no_folding) {
        return status;
    }
    status = sqlite_interval_compact(s, policy, now, found, progress, e);
    if (status != PROFD_OK || *found) {
        s->no_folding = status == PROFD_DAMAGED && s->broken == PROFD_OK;
        return status;
    }
    /* If all uploads of a day are old enough to be rolled up, the day has all of its hours. Later uploads are added. */
    status = find_open(s, level, (now - policy->raw_age) / SQLITE_DAY * 24, &series, &at, found, e);
    if (status == PROFD_OK && !*found) {
        status = find_open(s, level = SQLITE_LEVEL_DAY, INT64_MAX, &series, &at, found, e);
    }
    if (status != PROFD_OK || !*found) {
        return status;
    }
    progress->rows++;
    status = fold_once(s, series, level, at, budget, e);
    s->no_folding = status == PROFD_DAMAGED && s->broken == PROFD_OK;
    return status;
}

enum profd_status store_compact(struct store *s, const struct store_policy *policy, int64_t now,
                                struct store_progress *out, struct profd_error *e)
{
    struct sqlite_budget budget = sqlite_budget_begin();
    struct store_progress progress = {.more = false};
    bool found = true, doomed = false;
    TRY(sqlite_upkeep_begin(s, e));
    enum profd_status status = sqlite_reclaim(s, &budget, &doomed, &progress, e);
    while (status == PROFD_OK && found && !doomed && !sqlite_budget_spent(&budget)) {
        status = work_once(s, policy, now, &budget, &found, &progress, e);
    }
    if (status == PROFD_DAMAGED && s->broken == PROFD_OK && (s->no_folding || s->no_widening)) {
        sqlite_write_undo(s); /* the rest of the work can continue */
        progress = (struct store_progress){.more = false};
        status = PROFD_OK;
    } else {
        status = sqlite_upkeep_end(s, status, e);
    }
    progress.more = found || doomed;
    if (status == PROFD_OK) {
        *out = progress;
    }
    return status;
}
