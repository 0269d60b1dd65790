/* Sums of uploads as rows: the pyramid of hours, days and all time. Only sqlite*.c include this. */
#ifndef PROFD_STORE_SQLITE_ROLLUP_H
#define PROFD_STORE_SQLITE_ROLLUP_H

#include "store/folded.h"
#include "store/sqlite_sums.h"

enum { SQLITE_LEVEL_HOUR, SQLITE_LEVEL_DAY, SQLITE_LEVEL_ALL };

/* Columns that both statements which read rows begin with. */
enum {
    ROLLUP_ID,
    ROLLUP_FOLDED,
    ROLLUP_NUMBER,
    ROLLUP_UPLOADS,
    ROLLUP_PROCESSES,
    ROLLUP_FIRST,
    ROLLUP_LAST,
    ROLLUP_INEXACT,
    ROLLUP_HOSTS,
    ROLLUP_COUNTS,
    ROLLUP_AFTER
};

/* The groups of the processes of a sum, from column groups of a row of rollup with that many; those of an older version
 * are in no group. */
enum profd_status sqlite_processes_decode(const struct store *s, sqlite3_stmt *q, int column, uint64_t processes,
                                          struct random_groups *out, struct profd_error *e);
/* Reads a row with everything in it. */
enum profd_status sqlite_rollup_load(struct store *s, struct arena *a, int64_t series, int level, int64_t at,
                                     size_t builds, struct folded *out, bool *found, struct profd_error *e);

/* Removes rows of a level. *removed: how many. */
enum profd_status sqlite_rollup_remove(struct store *s, int64_t series, int level, int64_t from, int64_t to,
                                       uint64_t *removed, struct profd_error *e);
/* Removes the sum of all time; sqlite_compact adds it up anew from the days. *removed increases. */
enum profd_status sqlite_rollup_remove_all(struct store *s, int64_t series, uint64_t *removed, struct profd_error *e);

/* The day of the block that is open or written, and its number: the day's sums do not change. -1 and 0: none. */
enum profd_status sqlite_frozen_day(struct store *s, int64_t *day, int64_t *block, struct profd_error *e);

/* A write transaction of upkeep: begins as any; end commits the state too, if anything was changed. */
enum profd_status sqlite_upkeep_begin(struct store *s, struct profd_error *e);
enum profd_status sqlite_upkeep_end(struct store *s, enum profd_status status, struct profd_error *e);

/* How much one transaction of upkeep does. */
struct sqlite_budget {
    int64_t deadline; /* of the thread's own time, ns: a busy machine does not make slices useless */
    uint64_t uploads; /* left */
};
struct sqlite_budget sqlite_budget_begin(void);
bool sqlite_budget_spent(const struct sqlite_budget *b);

/* Rolls up uploads of a series and hour, as many as the budget allows but at least one, and adds them to the rows above
 * that contain the hour. *readable is false, and nothing has changed, if one cannot be decoded: it is excluded from
 * rolling up, and verification reports it. */
enum profd_status sqlite_roll_hour(struct store *s, int64_t series, int64_t hour, struct sqlite_budget *budget,
                                   bool *readable, struct store_progress *progress, struct profd_error *e);

/* Removes rows of deleted series. *left: some remain. */
enum profd_status sqlite_reclaim(struct store *s, const struct sqlite_budget *budget, bool *left,
                                 struct store_progress *progress, struct profd_error *e);

/* --- sqlite_retire.c */

/* Adds removed counts to the totals. */
void sqlite_retired_add(struct sqlite_state *t, const struct sqlite_sums *gone);
/* Notes that something that ended at last was removed from a series. gone: build, user → the latest of these times. */
enum profd_status sqlite_withdraw(struct hashmap *gone, const struct sqlite_identity *series, int64_t last,
                                  struct profd_error *e);
/* Brings the lists and the epochs up to date, after the tables of series are. */
enum profd_status sqlite_withdrawal_apply(struct store *s, const struct hashmap *gone, struct profd_error *e);
/* Removes all of a day but what was mirrored, with its blocks. Inside a transaction of upkeep. O(the day). */
enum profd_status sqlite_retire_day(struct store *s, int64_t day, struct profd_error *e);
/* Removes a series' row, and its set if no other series has it. */
enum profd_status sqlite_series_remove(struct store *s, const struct sqlite_identity *series, struct profd_error *e);

#endif
