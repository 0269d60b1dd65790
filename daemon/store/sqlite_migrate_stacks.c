/* The ledger of a database before schema version 11 does not know the ticks of stacks. They are counted hour by hour.
 */
#include "store/sqlite_migrate.h"
#include "store/sqlite_verify.h"

/* Counts one hour. Of rows that cannot be read nothing is known; verification reports them. */
static enum profd_status count_hour(struct sqlite_store *s, struct arena *a, const struct sqlite_identity *series,
                                    int64_t hour, bool *counted, struct profd_error *e)
{
    struct sqlite_sums ledger;
    bool found, readable = false;
    *counted = false;
    enum profd_status status = sqlite_ledger_load(s, series->id, hour, series->build_count, &ledger, &found, e);
    if (status != PROFD_OK || !found || !ledger.stack_ticks_unknown) {
        return status;
    }
    status = sqlite_hour_stack_ticks(s, a, series, hour, &ledger.stack_ticks, &readable, e);
    ledger.stack_ticks_unknown = false;
    *counted = status == PROFD_OK && readable;
    return *counted ? sqlite_ledger_set(s, series->id, hour, &ledger, e) : status;
}

/* The series' own sum, when its hours are known. */
static enum profd_status enter_series(struct sqlite_store *s, const struct sqlite_identity *series,
                                      struct profd_error *e)
{
    struct sqlite_sums sum, own = {.stack_ticks_unknown = false};
    bool found;
    enum profd_status status = sqlite_ledger_sum(s, series->id, INT64_MIN, INT64_MAX, series->build_count, &sum, e);
    if (status == PROFD_OK) {
        status = sqlite_series_load(s, series->id, series->build_count, &own, &found, e);
    }
    if (status != PROFD_OK || !found || !own.stack_ticks_unknown || sum.stack_ticks_unknown) {
        return status;
    }
    own.stack_ticks = sum.stack_ticks;
    own.stack_ticks_unknown = false;
    return sqlite_series_save(s, series->id, &own, e);
}

/* *done: all its hours were looked at. */
static enum profd_status count_series(struct sqlite_store *s, struct sqlite_migrating *m, struct arena *a, int64_t id,
                                      bool *done, struct profd_error *e)
{
    struct sqlite_identity series;
    bool found = false, more = true, counted = false;
    int64_t hour = 0;
    struct arena *rows = arena_new(0);
    enum profd_status status = rows ? sqlite_series_identify(s, a, id, &series, &found, e) : profd_no_memory(e);
    for (more = found; status == PROFD_OK && more && !(m->rows > 0 && sqlite_budget_spent(&m->budget)); hour++) {
        status = sqlite_find(s, SQL_LEDGER_NEXT, VALUES(INTEGER(id), INTEGER(hour)), &hour, &more, e);
        if (status == PROFD_OK && more) {
            arena_reset(rows);
            status = count_hour(s, rows, &series, hour, &counted, e);
            m->rows += counted;
            m->budget.uploads -= counted && m->budget.uploads > 0;
        }
    }
    *done = !more;
    arena_free(rows);
    return status == PROFD_OK && *done && found ? enter_series(s, &series, e) : status;
}

/* The cursor is the first series that is not finished. */
enum profd_status sqlite_migrate_stacks(struct sqlite_store *s, struct sqlite_migrating *m, struct profd_error *e)
{
    struct arena *a = arena_new(0);
    enum profd_status status = a ? PROFD_OK : profd_no_memory(e);
    bool done = true;
    m->more = true;
    while (status == PROFD_OK && m->more && done) {
        int64_t series = 0;
        status = sqlite_find(s, SQL_SERIES_FROM, VALUES(INTEGER(m->cursor)), &series, &m->more, e);
        if (status == PROFD_OK && m->more) {
            arena_reset(a);
            status = count_series(s, m, a, series, &done, e);
            m->cursor = done ? series + 1 : series;
        }
    }
    arena_free(a);
    return status;
}
