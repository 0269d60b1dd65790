/* Removal: what lists say afterwards; deleting a program in one commit, after which its rows are removed in slices; and
 * retention, which removes whole days, oldest first, and symbols of builds that are no longer used. */
#include <stdio.h>

#include "proto/sum.h"
#include "store/store_internal.h"

/* A build as one user sees it. */
struct part_key {
    int64_t build, uid;
};

enum profd_status sqlite_withdraw(struct hashmap *gone, const struct sqlite_identity *series, int64_t last,
                                  struct profd_error *e)
{
    for (size_t i = 0; i < series->build_count; i++) {
        const struct part_key key = {.build = series->builds[i], .uid = series->uid};
        int64_t *latest = hashmap_find(gone, &key, sizeof key);
        if (latest) {
            *latest = last > *latest ? last : *latest;
        } else if (!hashmap_put(gone, &key, sizeof key, &last, sizeof last)) {
            return profd_no_memory(e);
        }
    }
    return PROFD_OK;
}

enum profd_status sqlite_withdrawal_apply(struct store *s, const struct hashmap *gone, struct profd_error *e)
{
    size_t position = 0;
    const void *key;
    if (gone->count == 0) {
        return PROFD_OK;
    }
    const struct sqlite_value number = INTEGER(s->state.list_epoch = ++s->state.number);
    for (const int64_t *last; (last = hashmap_next(gone, &position, &key));) {
        struct part_key k; /* keys are unaligned */
        memcpy(&k, key, sizeof k);
        const struct sqlite_value build = INTEGER(k.build), uid = INTEGER(k.uid);
        TRY(sqlite_run(s, SQL_BUILD_USER_LEAVE, VALUES(build, uid), e));
        TRY(sqlite_run(s, SQL_BUILD_USER_TOUCH, VALUES(build, uid, number), e));
        TRY(sqlite_run(s, SQL_BUILD_LEAVE, VALUES(build, uid, number, INTEGER(*last)), e));
        TRY(sqlite_run(s, SQL_USER_EPOCH_SET, VALUES(uid, number), e));
        TRY(sqlite_run(s, SQL_BUILD_FORGET, VALUES(build), e));
    }
    sqlite_discard_rows(s);
    return PROFD_OK;
}

void sqlite_retired_add(struct sqlite_state *t, const struct sqlite_sums *gone)
{
    const struct store_amount amount = sqlite_sums_amount(gone);
    outgoing_amount_add(&t->retired, &amount);
    t->raw_uploads -= gone->raw_uploads < t->raw_uploads ? gone->raw_uploads : t->raw_uploads;
    t->raw_bytes -= gone->raw_bytes < t->raw_bytes ? gone->raw_bytes : t->raw_bytes;
    t->live_bytes -= gone->live_bytes < t->live_bytes ? gone->live_bytes : t->live_bytes;
}

enum profd_status sqlite_series_remove(struct store *s, const struct sqlite_identity *series, struct profd_error *e)
{
    TRY(sqlite_run(s, SQL_SERIES_REMOVE, VALUES(INTEGER(series->id)), e));
    TRY(sqlite_run(s, SQL_SET_USER_REMOVE, VALUES(INTEGER(series->set), INTEGER(series->uid)), e));
    TRY(sqlite_run(s, SQL_SET_REMOVE, VALUES(INTEGER(series->set)), e));
    if (sqlite3_changes(s->db) > 0) {
        TRY(sqlite_run(s, SQL_SET_MEMBERS_REMOVE, VALUES(INTEGER(series->set)), e));
    }
    return PROFD_OK;
}

/* Removes the symbols of a build, and its row if nothing names it. */
static enum profd_status sqlite_symbols_remove(struct store *s, int64_t build, struct profd_error *e)
{
    static const enum sqlite_sql steps[] = {SQL_OBJECT_SENDERS_REMOVE, SQL_OBJECT_REMOVE, SQL_HOST_BUILDS_REMOVE,
                                            SQL_BUILD_UNNAMED, SQL_BUILD_FORGET};
    enum profd_status status = sqlite_count_objects_of(s, build, -1, e);
    for (size_t i = 0; status == PROFD_OK && i < sizeof steps / sizeof steps[0]; i++) {
        status = sqlite_run(s, steps[i], VALUES(INTEGER(build)), e);
    }
    sqlite_discard_rows(s);
    return status;
}

static enum profd_status doom_series(struct store *s, struct arena *a, int64_t id, struct hashmap *w, uint64_t *uploads,
                                     struct profd_error *e)
{
    struct sqlite_identity series;
    struct sqlite_sums gone;
    bool found, saturated = false;
    TRY(sqlite_series_identify(s, a, id, &series, &found, e));
    TRY(sqlite_series_load(s, id, series.build_count, &gone, &found, e));
    sum_add(uploads, gone.uploads, &saturated);
    TRY(sqlite_run(s, SQL_DOOMED_ADD, VALUES(INTEGER(id)), e));
    TRY(sqlite_series_remove(s, &series, e));
    TRY(sqlite_withdraw(w, &series, gone.last, e));
    if (series.mirror) { /* a block that arrives may contain some of it */
        return sqlite_run(s, SQL_MIRROR_ARRIVING, NULL, 0, e);
    }
    sqlite_retired_add(&s->state, &gone);
    TRY(sqlite_segment_withdraw(s, id, e));
    /* An open block may contain some of it. */
    TRY(sqlite_run(s, SQL_BLOCK_ATTEMPT, VALUES(INTEGER(0), INTEGER(INT64_MAX)), e));
    return sqlite_centre_removed(s, &series, &gone, e);
}

/* All series whose program is the build. */
static enum profd_status doom_program(struct store *s, const struct store_scope *scope, int64_t build,
                                      struct hashmap *w, uint64_t *uploads, bool *any, struct profd_error *e)
{
    struct arena *a = arena_new(0);
    enum profd_status status = a ? PROFD_OK : profd_no_memory(e);
    for (bool found = true; status == PROFD_OK && found;) {
        int64_t series = 0;
        status = sqlite_find(s, SQL_SERIES_OF_PROGRAM, VALUES(INTEGER(build), INTEGER(scope->all), SCOPE(scope)),
                             &series, &found, e);
        if (status != PROFD_OK || !found) {
            break;
        }
        *any = true;
        arena_reset(a);
        status = doom_series(s, a, series, w, uploads, e);
    }
    arena_free(a);
    return status;
}

enum profd_status sqlite_program_delete(struct store *s, const struct store_scope *scope, const char *build_id,
                                        int64_t before, uint64_t *uploads, bool *any, struct profd_error *e)
{
    int64_t build = 0, one;
    bool named = true;
    struct hashmap w;
    *any = false;
    TRY(sqlite_find(s, SQL_BUILD_FIND, VALUES(TEXT(build_id)), &build, &named, e));
    hashmap_init(&w, 0);
    enum profd_status status = named ? doom_program(s, scope, build, &w, uploads, any, e) : PROFD_OK;
    if (!status && *any) {
        status = sqlite_withdrawal_apply(s, &w, e);
    }
    hashmap_clear(&w);
    TRY(status);
    if (*any) {
        TRY(sqlite_find(s, SQL_BUILD_IS_MEMBER, VALUES(INTEGER(build)), &one, &named, e));
        TRY(named ? PROFD_OK : sqlite_symbols_remove(s, build, e));
    }
    return (*any || before) && store_scope_has_tenants(scope) /* hosts may send some of it later */
               ? sqlite_run(s, SQL_DELETION_ADD, VALUES(TEXT(build_id), SCOPE(scope), INTEGER(before)), e)
               : PROFD_OK;
}

/* Says why there is nothing to delete. */
static enum profd_status refuse_deletion(struct store *s, const struct store_scope *scope, const char *build_id,
                                         struct profd_error *e)
{
    int64_t build = 0;
    bool row = false;
    sqlite3_stmt *q;
    TRY(sqlite_find(s, SQL_BUILD_FIND, VALUES(TEXT(build_id)), &build, &row, e));
    if (row) {
        TRY(sqlite_first(s, SQL_PROGRAM_OF_LIBRARY, VALUES(INTEGER(build), INTEGER(scope->all), SCOPE(scope)), &q, &row,
                         e));
    }
    FAIL_IF(!row, e, PROFD_NOT_FOUND, "no build %s has been uploaded", build_id);
    enum profd_status status = profd_error_set(
        e, PROFD_REFUSED, "build %s is not a program but a library; delete the programs that use it, such as %s (%s)",
        build_id, sqlite_text(q, 0), sqlite_text(q, 1));
    sqlite_finish(q);
    return status;
}

enum profd_status store_delete_build(struct store *s, const struct store_scope *scope, const char *build_id,
                                     uint64_t *uploads, struct profd_error *e)
{
    uint64_t removed = 0;
    bool any = false;
    TRY(sqlite_upkeep_begin(s, e));
    enum profd_status status = sqlite_program_delete(s, scope, build_id, 0, &removed, &any, e);
    if (!status && !any) {
        status = refuse_deletion(s, scope, build_id, e);
    }
    s->spacious = true; /* it frees more than it writes */
    TRY(sqlite_upkeep_end(s, status, e));
    *uploads = removed;
    return PROFD_OK;
}

/* Retention: removes whole days, oldest first; rows of deleted series; symbols of builds that are no longer used. */

#define RAW_AT_ONCE 1000 /* above this number, single uploads of a day are rolled up before they are removed */
#define SHARE_SPARE 16   /* a sixteenth of a user's share is kept free for new uploads */
#define OBJECT_PATIENCE (24 * SQLITE_HOUR) /* symbols may arrive before uploads */

/* What one call does. */
struct retiring {
    struct store *s;
    struct sqlite_budget budget;
    struct hashmap gone; /* of sqlite_withdraw */
    struct store_progress progress;
};

static enum profd_status remove_rows(struct store *s, enum sqlite_sql which, const struct sqlite_value *values,
                                     size_t count, uint64_t *removed, struct profd_error *e)
{
    TRY(sqlite_run(s, which, values, count, e));
    *removed = (uint64_t)sqlite3_changes(s->db);
    return PROFD_OK;
}

/* Removes the slices of hosts in these hours, and what was put aside. */
static enum profd_status remove_intervals(struct store *s, int64_t series, int64_t from, int64_t to, uint64_t *removed,
                                          struct profd_error *e)
{
    TRY(remove_rows(s, SQL_ROLLUP_ASIDE_REMOVE,
                    VALUES(INTEGER(series), INTEGER(SQLITE_LEVEL_ASIDE), INTEGER(from), INTEGER(to)), removed, e));
    s->state.rollups -= *removed < s->state.rollups ? *removed : s->state.rollups;
    for (int level = SQLITE_LEVEL_SLICE; level < SQLITE_LEVEL_SLICES; level++) {
        const int64_t each = SQLITE_SLICE_WIDE / sqlite_level_minutes(level);
        uint64_t rows = 0;
        TRY(sqlite_rollup_remove(s, series, level, from * each, to * each + each - 1, &rows, e));
        *removed += rows;
    }
    return PROFD_OK;
}

/* Removes what stays of released sums in these hours. An open block of one of the days begins its next attempt. */
static enum profd_status remove_sealed(struct store *s, int64_t series, int64_t from, int64_t to, struct profd_error *e)
{
    const int64_t first = from / 24, last = to / 24;
    TRY(sqlite_run(s, SQL_SEALED_REMOVE,
                   VALUES(INTEGER(series), INTEGER(SQLITE_LEVEL_HOUR), INTEGER(from), INTEGER(to)), e));
    TRY(sqlite_run(s, SQL_SEALED_REMOVE,
                   VALUES(INTEGER(series), INTEGER(SQLITE_LEVEL_DAY), INTEGER(first), INTEGER(last)), e));
    return sqlite_run(s, SQL_BLOCK_ATTEMPT, VALUES(INTEGER(first), INTEGER(last)), e);
}

/* Removes everything of a series in these hours, both included, which are whole days. */
static enum profd_status remove_hours(struct retiring *r, int64_t series, int64_t from, int64_t to,
                                      struct profd_error *e)
{
    struct store *s = r->s;
    uint64_t slices = 0, hours = 0, days = 0, all = 0, ignored;
    TRY(remove_rows(s, SQL_RAW_REMOVE, VALUES(INTEGER(series), INTEGER(from), INTEGER(to), INTEGER(INT64_MAX)),
                    &ignored, e));
    TRY(sqlite_slice_remove_hours(s, series, from, to, e));
    TRY(remove_intervals(s, series, from, to, &slices, e));
    TRY(remove_sealed(s, series, from, to, e));
    TRY(sqlite_rollup_remove(s, series, SQLITE_LEVEL_HOUR, from, to, &hours, e));
    TRY(sqlite_rollup_remove(s, series, SQLITE_LEVEL_DAY, from / 24, to / 24, &days, e));
    if (days > 0) {
        TRY(sqlite_rollup_remove_all(s, series, &all, e));
    }
    TRY(sqlite_run(s, SQL_HOST_TOTAL_REMOVE, VALUES(INTEGER(series), INTEGER(from), INTEGER(to), INTEGER(INT64_MAX)),
                   e));
    TRY(remove_rows(s, SQL_LEDGER_REMOVE, VALUES(INTEGER(series), INTEGER(from), INTEGER(to)), &ignored, e));
    r->progress.rows += slices + hours + days + all;
    return PROFD_OK;
}

/* Removes days of a series that have that much in the ledger. */
static enum profd_status retire_sums(struct retiring *r, const struct sqlite_identity *series, int64_t from, int64_t to,
                                     const struct sqlite_sums *gone, struct profd_error *e)
{
    struct sqlite_sums rest;
    bool found;
    enum profd_status status = remove_hours(r, series->id, from, to, e);
    if (status == PROFD_OK) {
        status = sqlite_series_load(r->s, series->id, series->build_count, &rest, &found, e);
    }
    if (status == PROFD_OK && !sqlite_sums_subtract(&rest, gone)) {
        status = sqlite_ledger_sum(r->s, series->id, 0, INT64_MAX, series->build_count, &rest, e);
    }
    if (status == PROFD_OK) {
        status =
            rest.uploads > 0 ? sqlite_series_save(r->s, series->id, &rest, e) : sqlite_series_remove(r->s, series, e);
    }
    if (status == PROFD_OK) {
        status = sqlite_withdraw(&r->gone, series, gone->last, e);
    }
    if (status == PROFD_OK) {
        status = sqlite_centre_removed(r->s, series, gone, e);
    }
    sqlite_retired_add(&r->s->state, gone);
    r->progress.uploads += gone->uploads;
    return status;
}

/* Removes the days up to last of a series, or rolls some of their uploads up first when they are many. */
static enum profd_status retire_series(struct retiring *r, struct arena *a, int64_t id, int64_t hour, int64_t last,
                                       struct profd_error *e)
{
    struct sqlite_identity series;
    struct sqlite_sums gone;
    struct store_progress ignored = {.more = false};
    bool found;
    int64_t from = hour / 24 * 24, to = last * 24 + 23, frozen, block;
    TRY(sqlite_series_need(r->s, a, id, "the ledger", &series, e));
    TRY(sqlite_ledger_sum(r->s, id, from, to, series.build_count, &gone, e));
    int64_t many = hour;
    TRY(sqlite_frozen_day(r->s, &frozen, &block, e));
    found = gone.raw_uploads > RAW_AT_ONCE && (24 * frozen < from || 24 * frozen > to);
    if (found) {
        TRY(sqlite_find(r->s, SQL_LEDGER_RAW_IN, VALUES(INTEGER(id), INTEGER(from), INTEGER(to)), &many, &found, e));
    }
    bool readable = false;
    if (found) {
        TRY(sqlite_roll_hour(r->s, id, many, &r->budget, &readable, &ignored, e));
    }
    /* Uploads that cannot be read can still be removed, all at once. */
    return !readable ? retire_sums(r, &series, from, to, &gone, e) : PROFD_OK;
}

enum profd_status sqlite_retire_day(struct store *s, int64_t day, struct profd_error *e)
{
    struct retiring r = {.s = s};
    struct arena *a = arena_new(0);
    enum profd_status status = a ? PROFD_OK : profd_no_memory(e);
    hashmap_init(&r.gone, 0);
    for (bool found = true; !status;) {
        struct sqlite_identity series;
        struct sqlite_sums gone;
        int64_t id = 0;
        status = sqlite_find(s, SQL_ADOPT_SERIES, VALUES(INTEGER(day)), &id, &found, e);
        if (status || !found) {
            break;
        }
        arena_reset(a);
        status = sqlite_series_identify(s, a, id, &series, &found, e);
        status = status ? status : sqlite_ledger_sum(s, id, 24 * day, 24 * day + 23, series.build_count, &gone, e);
        status = status ? status : retire_sums(&r, &series, 24 * day, 24 * day + 23, &gone, e);
    }
    status = status ? status : sqlite_withdrawal_apply(s, &r.gone, e);
    status = status ? status : sqlite_run(s, SQL_ADOPT_BLOCKS, VALUES(INTEGER(day)), e);
    s->spacious = true; /* it frees more than it writes */
    hashmap_clear(&r.gone);
    arena_free(a);
    return status;
}

/* Bytes of the database's content, and of what was released to the tier. */
static enum profd_status content_bytes(struct store *s, uint64_t *bytes, struct profd_error *e)
{
    sqlite3_stmt *q;
    bool row = false;
    enum profd_status status = sqlite_first(s, SQL_PAGES, NULL, 0, &q, &row, e);
    int64_t released = 0;
    if (row) {
        *bytes = (uint64_t)((sqlite3_column_int64(q, 0) - sqlite3_column_int64(q, 2)) * sqlite3_column_int64(q, 1));
        sqlite_finish(q);
    }
    TRY(status);
    TRY(sqlite_find(s, SQL_RELEASED, NULL, 0, &released, &row, e));
    *bytes += (uint64_t)released;
    return PROFD_OK;
}

/* Removes the symbols of one build that was not seen since then. */
static enum profd_status remove_symbols(struct retiring *r, int64_t since, bool *found, struct profd_error *e)
{
    int64_t build = 0;
    TRY(sqlite_find(r->s, SQL_OBJECT_UNSEEN, VALUES(INTEGER(since)), &build, found, e));
    if (!*found) {
        return PROFD_OK;
    }
    return sqlite_symbols_remove(r->s, build, e);
}

/* The hour and series in the first row of a statement. */
static enum profd_status find_first(struct store *s, enum sqlite_sql which, const struct sqlite_value *values,
                                    size_t count, int64_t *hour, int64_t *series, bool *found, struct profd_error *e)
{
    sqlite3_stmt *q;
    bool row = false;
    enum profd_status status = sqlite_first(s, which, values, count, &q, &row, e);
    *found = row;
    if (row) {
        *hour = sqlite3_column_int64(q, 0);
        *series = sqlite3_column_int64(q, 1);
        sqlite_finish(q);
    }
    return status;
}

/* Decides that the oldest upload's day must be removed for its size. Today's data stays: it shrinks when it is rolled
 * up. */
static enum profd_status judge_size(struct retiring *r, const struct store_policy *policy, int64_t now, int64_t hour,
                                    bool *found, struct profd_error *e)
{
    uint64_t bytes = 0;
    *found = false;
    if (policy->keep_bytes == 0) {
        return PROFD_OK;
    }
    TRY(content_bytes(r->s, &bytes, e));
    if (bytes <= policy->keep_bytes) {
        return PROFD_OK;
    }
    TRY(remove_symbols(r, now - OBJECT_PATIENCE, found, e));
    if (!*found && hour / 24 < now / SQLITE_DAY) {
        r->s->state.retiring = hour / 24 + 1;
        *found = true;
    }
    return PROFD_OK;
}

/* If removing days frees space, a user close to its share loses its own oldest days and can continue to store. The user
 * with the most data is checked. *found: a day of a series was removed. */
static enum profd_status retire_of_user(struct retiring *r, int64_t now, bool *found, struct profd_error *e)
{
    const struct store_share *share = &r->s->share;
    int64_t uid = 0, hour = 0, series = 0;
    uint64_t own, total;
    TRY(sqlite_find(r->s, SQL_USER_LARGEST, NULL, 0, &uid, found, e));
    if (*found) {
        TRY(sqlite_users_flush(r->s, e));
    }
    if (*found) {
        TRY(sqlite_get_use(r->s, (uint32_t)uid, &own, &total, e));
    }
    if (!*found) {
        return PROFD_OK;
    }
    const uint64_t most = sqlite_share_most(share, own, total);
    *found = most != UINT64_MAX && own > most - most / SHARE_SPARE;
    if (*found) {
        TRY(find_first(r->s, SQL_USER_OLDEST, VALUES(INTEGER(uid)), &hour, &series, found, e));
    }
    *found = *found && hour / 24 < now / SQLITE_DAY;
    if (!*found) {
        return PROFD_OK;
    }
    struct arena *a = arena_new(0);
    enum profd_status status = a ? retire_series(r, a, series, hour, hour / 24, e) : profd_no_memory(e);
    arena_free(a);
    return status;
}

/* One piece of work. *found: there was one. */
static enum profd_status work_once(struct retiring *r, const struct store_policy *policy, int64_t now, bool *found,
                                   struct profd_error *e)
{
    int64_t hour = INT64_MAX, series = 0;
    bool any;
    int64_t aged = policy->keep_age > 0 && now > policy->keep_age ? (now - policy->keep_age) / SQLITE_DAY : 0;
    int64_t limit = aged > r->s->state.retiring ? aged : r->s->state.retiring; /* days before it go */
    TRY(sqlite_find(r->s, SQL_ADOPTED_OLDEST, VALUES(INTEGER(limit)), &series, found, e));
    if (*found) {
        return sqlite_run(r->s, SQL_ADOPTED_RETIRE, VALUES(INTEGER(series)), e); /* store_mirror_clean hides it */
    }
    TRY(find_first(r->s, SQL_LEDGER_OLDEST, NULL, 0, &hour, &series, &any, e));
    *found = any && hour / 24 < limit;
    enum profd_status status = PROFD_OK;
    if (*found) {
        struct arena *a = arena_new(0);
        /* Removes all days of a series that are too old at once, so that its sum of all time is computed once. */
        status = a ? retire_series(r, a, series, hour, hour / 24 < aged ? aged - 1 : hour / 24, e) : profd_no_memory(e);
        arena_free(a);
        return status;
    }
    if (r->s->state.retiring != 0) { /* the day is gone */
        r->s->state.retiring = 0;
        *found = true;
        return sqlite_run(r->s, SQL_BLOCKS_GONE, NULL, 0, e);
    }
    TRY(judge_size(r, policy, now, hour, found, e));
    if (!*found && policy->keep_bytes > 0) {
        TRY(retire_of_user(r, now, found, e));
    }
    if (!*found && policy->keep_age > 0) {
        TRY(remove_symbols(r, now - policy->keep_age, found, e));
    }
    return PROFD_OK;
}

enum profd_status store_retire(struct store *s, const struct store_policy *policy, int64_t now,
                               struct store_progress *out, struct profd_error *e)
{
    struct retiring r = {.s = s, .budget = sqlite_budget_begin()};
    bool found = true, doomed = false;
    TRY(sqlite_upkeep_begin(r.s, e));
    hashmap_init(&r.gone, 0);
    enum profd_status status = sqlite_reclaim(r.s, &r.budget, &doomed, &r.progress, e);
    while (status == PROFD_OK && found && !doomed && !sqlite_budget_spent(&r.budget)) {
        status = work_once(&r, policy, now, &found, e);
    }
    if (status == PROFD_OK) {
        status = sqlite_withdrawal_apply(r.s, &r.gone, e);
    }
    if (status == PROFD_OK) {
        status = sqlite_run(r.s, SQL_BLOCKS_GONE, NULL, 0, e);
    }
    status = sqlite_upkeep_end(r.s, status, e);
    r.progress.more = found || doomed || r.gone.count > 0; /* builds may be unused only now */
    hashmap_clear(&r.gone);
    if (status == PROFD_OK) {
        *out = r.progress;
    }
    return status;
}
