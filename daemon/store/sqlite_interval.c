#include "store/sqlite_interval.h"

#include "proto/message.h"
#include "store/sqlite_centre.h"

#define CHECK_AFTER INT64_C(60000000000) /* ns: sizes are added up so often */

int sqlite_level_of(int64_t minutes)
{
    int level = SQLITE_LEVEL_SLICE;
    while (level < SQLITE_LEVEL_SLICES && sqlite_level_minutes(level) < minutes) {
        level++;
    }
    return level < SQLITE_LEVEL_SLICES ? level : SQLITE_LEVEL_HOUR;
}

static enum profd_status remove_row(struct store *s, int64_t series, int level, int64_t at, struct profd_error *e)
{
    const struct sqlite_value which[] = {INTEGER(series), INTEGER(level), INTEGER(at), INTEGER(at)};
    enum profd_status status = sqlite_run(s, SQL_ROLLUP_PROCESSES_REMOVE, which, sizeof which / sizeof which[0], e);
    if (status == PROFD_OK) {
        status = sqlite_run(s, SQL_ROLLUP_REMOVE, which, sizeof which / sizeof which[0], e);
    }
    s->state.rollups -= status == PROFD_OK && sqlite3_changes(s->db) > 0;
    return status;
}

/* A sum of other rows: these are added up anew. */
static enum profd_status drop_sum(struct store *s, int64_t series, int level, int64_t at, struct profd_error *e)
{
    TRY(remove_row(s, series, SQLITE_LEVEL_ALL, 0, e));
    TRY(sqlite_run(s, SQL_ROLLUP_UNFOLD, VALUES(INTEGER(series)), e));
    if (level == SQLITE_LEVEL_DAY) {
        TRY(remove_row(s, series, level, at, e));
    }
    return level == SQLITE_LEVEL_DAY ? sqlite_run(s, SQL_ROLLUP_UNFOLD_HOURS,
                                                  VALUES(INTEGER(series), INTEGER(24 * at), INTEGER(24 * at + 23)), e)
                                     : PROFD_OK;
}

/* A row of an hour or slice that cannot be read is kept where no query sees it, and its hour is marked. */
static enum profd_status put_aside(struct store *s, int64_t series, int level, int64_t at, struct profd_error *e)
{
    const int64_t hour = at * sqlite_level_minutes(level) / SQLITE_SLICE_WIDE;
    bool changed = false;
    TRY(sqlite_run(s, SQL_ROLLUP_PROCESSES_REMOVE, VALUES(INTEGER(series), INTEGER(level), INTEGER(at), INTEGER(at)),
                   e));
    TRY(sqlite_run(s, SQL_ROLLUP_ASIDE,
                   VALUES(INTEGER(series), INTEGER(level), INTEGER(at), INTEGER(SQLITE_LEVEL_ASIDE), INTEGER(hour)),
                   e));
    TRY(sqlite_hour_mark(s, hour, 0, (uint32_t)INEXACT_SEGMENT_MISSING, &changed, e));
    return sqlite_centre_touch(s, ++s->state.number, STORE_TENANT_LAST, STORE_TENANT, e);
}

/* Could nothing be read? Then nothing was written either. */
static bool is_unreadable(const struct store *s, enum profd_status status)
{
    return status == PROFD_DAMAGED && s->broken == PROFD_OK;
}

enum profd_status sqlite_interval_add(struct store *s, struct arena *a, const struct sqlite_identity *series, int level,
                                      int64_t at, const struct folded *more, struct profd_error *e)
{
    bool folded = false;
    enum profd_status status = sqlite_rollup_add(s, a, series, level, at, more, &folded, e);
    if (is_unreadable(s, status)) {
        status = put_aside(s, series->id, level, at, e);
        if (status == PROFD_OK) {
            TRY(sqlite_rollup_add(s, a, series, level, at, more, &folded, e));
        }
    }
    if (status != PROFD_OK || !folded) {
        return status;
    }
    status = sqlite_rollup_add(s, a, series, SQLITE_LEVEL_DAY, at / 24, more, &folded, e);
    if (is_unreadable(s, status)) {
        return drop_sum(s, series->id, SQLITE_LEVEL_DAY, at / 24, e);
    }
    if (status == PROFD_OK && folded) {
        status = sqlite_rollup_add(s, a, series, SQLITE_LEVEL_ALL, 0, more, &folded, e);
    }
    return is_unreadable(s, status) ? drop_sum(s, series->id, SQLITE_LEVEL_ALL, 0, e) : status;
}

/* Slices on their way into a wider row. */
struct gathering {
    struct store *s;
    struct arena *arena, *scratch;
    struct sqlite_identity series;
    struct folding folding;
};

/* Takes the rows of one level, from at to last. */
static enum profd_status gather(struct gathering *g, int level, int64_t at, int64_t last, struct profd_error *e)
{
    enum profd_status status = PROFD_OK;
    for (bool found = true; status == PROFD_OK && found; at++) {
        struct folded row;
        TRY(sqlite_find(g->s, SQL_ROLLUP_OPEN_AT,
                        VALUES(INTEGER(g->series.id), INTEGER(level), INTEGER(at), INTEGER(last)), &at, &found, e));
        if (!found) {
            break;
        }
        arena_reset(g->scratch);
        status = sqlite_rollup_load(g->s, g->scratch, g->series.id, level, at, g->series.build_count, &row, &found, e);
        if (is_unreadable(g->s, status)) {
            status = put_aside(g->s, g->series.id, level, at, e);
            continue;
        }
        if (status == PROFD_OK) {
            TRY(folding_add(&g->folding, &row, e));
        }
        if (status == PROFD_OK) {
            TRY(remove_row(g->s, g->series.id, level, at, e));
        }
    }
    return status;
}

/* Makes the slices of the levels from narrow to before wide part of the row of level wide that contains this one. */
static enum profd_status merge(struct gathering *g, int narrow, int before, int wide, int64_t to, struct profd_error *e)
{
    TRY(folding_begin(&g->folding, g->arena, true, e));
    for (int level = narrow; level < before; level++) {
        const int64_t each = sqlite_level_minutes(wide) / sqlite_level_minutes(level);
        TRY(gather(g, level, to * each, to * each + each - 1, e));
    }
    TRY(folding_finish(&g->folding, e));
    return g->folding.out.uploads > 0 ? sqlite_interval_add(g->s, g->arena, &g->series, wide, to, &g->folding.out, e)
                                      : PROFD_OK;
}

/* The oldest slice of a level that is before that time (minutes), if there is one, with others into a row of level
 * wide. all: those of every level. */
static enum profd_status merge_oldest(struct store *s, int level, int64_t before, int wide, bool all, bool *found,
                                      struct profd_error *e)
{
    sqlite3_stmt *q;
    const int64_t minutes = sqlite_level_minutes(level);
    TRY(sqlite_first(s, SQL_ROLLUP_TO_FOLD, VALUES(INTEGER(level), INTEGER(before / minutes)), &q, found, e));
    if (!*found) {
        return PROFD_OK;
    }
    const int64_t series = sqlite3_column_int64(q, 0), at = sqlite3_column_int64(q, 1);
    bool known = false;
    sqlite_finish(q);
    struct gathering g = {.s = s, .arena = arena_new(0), .scratch = arena_new(0)};
    enum profd_status status = g.arena && g.scratch
                                   ? sqlite_series_identify(s, g.arena, series, &g.series, &known, e)
                                   : profd_error_set(e, PROFD_NO_MEMORY, "no memory to add up what hosts have sent");
    if (status == PROFD_OK && !known) {
        status = profd_error_set(e, PROFD_DAMAGED, "database %s: series %lld has sums but no row", s->path,
                                 (long long)series);
    }
    if (status == PROFD_OK) {
        status = merge(&g, all ? SQLITE_LEVEL_SLICE : level, all ? SQLITE_LEVEL_SLICES : level + 1, wide,
                       at * minutes / sqlite_level_minutes(wide), e);
    }
    arena_free(g.arena);
    arena_free(g.scratch);
    return status;
}

/* Do slices take more than their share? Looked at once a minute, and after each widening. */
static enum profd_status judge_size(struct store *s, const struct store_policy *policy, int64_t now,
                                    struct profd_error *e)
{
    sqlite3_stmt *q;
    bool row = true;
    uint64_t bytes = 0;
    const uint64_t most = policy->raw_bytes / STORE_LIVE_PART;
    if (!s->intervals_large && now >= s->intervals_checked && now - s->intervals_checked < CHECK_AFTER) {
        return PROFD_OK;
    }
    enum profd_status status =
        sqlite_start(s, SQL_ROLLUP_SIZES, VALUES(INTEGER(SQLITE_LEVEL_SLICE), INTEGER(SQLITE_LEVEL_SLICES - 1)), &q, e);
    while (status == PROFD_OK && bytes <= most && (status = sqlite_next(s, q, &row, e)) == PROFD_OK && row) {
        bytes += (uint64_t)sqlite3_column_int64(q, 0);
    }
    if (status == PROFD_OK && row) {
        sqlite_finish(q);
    }
    s->intervals_checked = now;
    s->intervals_large = bytes > most;
    return status;
}

enum profd_status sqlite_interval_compact(struct store *s, const struct store_policy *policy, int64_t now, bool *found,
                                          struct store_progress *progress, struct profd_error *e)
{
    const int64_t before = (now / SQLITE_HOUR - 1) * SQLITE_SLICE_WIDE;
    enum profd_status status = PROFD_OK;
    *found = false;
    for (int level = SQLITE_LEVEL_SLICE; status == PROFD_OK && !*found && level < SQLITE_LEVEL_SLICES; level++) {
        status = merge_oldest(s, level, before, SQLITE_LEVEL_HOUR, true, found, e);
    }
    if (status == PROFD_OK && !*found) {
        status = judge_size(s, policy, now, e);
    }
    for (int level = SQLITE_LEVEL_SLICE;
         status == PROFD_OK && !*found && s->intervals_large && level < SQLITE_LEVEL_SLICES; level++) {
        const int wide = level + 1 < SQLITE_LEVEL_SLICES ? level + 1 : SQLITE_LEVEL_HOUR;
        status = merge_oldest(s, level, INT64_MAX, wide, false, found, e);
    }
    progress->rows += *found;
    return status;
}
