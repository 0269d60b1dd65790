#include "store/sqlite_migrate.h"

#include "store/sqlite_users.h"

/* Data that belongs to no series, all at once: its rows are few, and their sizes are read without their contents. */
static enum profd_status count_others(struct sqlite_store *s, struct profd_error *e)
{
    static const enum sqlite_sql counts[] = {SQL_COUNT_SNAPSHOTS, SQL_COUNT_INSTANCES, SQL_COUNT_BUILD_USERS,
                                             SQL_COUNT_OBJECTS};
    enum profd_status status = PROFD_OK;
    for (size_t i = 0; status == PROFD_OK && i < sizeof counts / sizeof counts[0]; i++) {
        status = sqlite_run(s, counts[i], VALUES(INTEGER(SQLITE_ROW_BYTES)), e);
    }
    return status;
}

/* The cursor is the first series that is not charged; 0: nothing is. */
enum profd_status sqlite_migrate_users(struct sqlite_store *s, struct sqlite_migrating *m, struct profd_error *e)
{
    enum profd_status status = m->cursor == 0 ? count_others(s, e) : PROFD_OK;
    m->cursor = m->cursor == 0 ? 1 : m->cursor;
    m->more = true;
    while (status == PROFD_OK && m->more && (m->rows == 0 || !sqlite_budget_spent(&m->budget))) {
        int64_t series = 0;
        status = sqlite_find(s, SQL_SERIES_FROM, VALUES(INTEGER(m->cursor)), &series, &m->more, e);
        if (status == PROFD_OK && m->more) {
            status = sqlite_run(s, SQL_COUNT_SERIES, VALUES(INTEGER(SQLITE_ROW_BYTES), INTEGER(series)), e);
            m->cursor = series + 1;
            m->rows++;
        }
    }
    return status;
}

/* The steps in their order. A name must not change once a database may contain it. */
static const struct step {
    const char *name;
    int64_t version;   /* true if an older database needs it */
    const char *total; /* SQL: approximate number of rows to process, computed quickly */
    sqlite_migration_slice *slice;
} steps[] = {
    {.name = "slices", .version = 4, .total = "SELECT count(*) FROM instance", .slice = sqlite_slice_migrate},
    {.name = SQLITE_USERS_STEP, .version = 4, .total = "SELECT count(*) FROM series", .slice = sqlite_migrate_users},
    {.name = "stacks", .version = 11, .total = "SELECT count(*) FROM series", .slice = sqlite_migrate_stacks},
    {.name = NULL},
};

enum profd_status sqlite_migration_enter(sqlite3 *db, int64_t version, struct profd_error *e)
{
    enum profd_status status = PROFD_OK;
    for (const struct step *x = steps; status == PROFD_OK && x->name; x++) {
        char *sql = x->version > version
                        ? sqlite3_mprintf("INSERT INTO migration (step, cursor, done, total) VALUES (%Q, 0, 0, (%s))",
                                          x->name, x->total)
                        : NULL;
        if (sql) {
            status = sqlite_direct_run(db, sql, "cannot note what is to be migrated", e);
        } else if (x->version > version) {
            status = profd_error_set(e, PROFD_NO_MEMORY, "no memory to note what is to be migrated");
        }
        sqlite3_free(sql);
    }
    return status;
}

/* The first step that is not finished, in the order of the table. */
static enum profd_status next_step(struct sqlite_store *s, const struct step **step, int64_t *cursor,
                                   struct profd_error *e)
{
    enum profd_status status = PROFD_OK;
    bool found = false;
    for (*step = steps; (*step)->name; ++*step) {
        status = sqlite_find(s, SQL_MIGRATION_GET, VALUES(TEXT((*step)->name)), cursor, &found, e);
        if (status != PROFD_OK || found) {
            return status;
        }
    }
    *step = NULL;
    return status;
}

static enum profd_status work_once(struct sqlite_store *s, struct sqlite_migrating *m, bool *any, struct profd_error *e)
{
    const struct step *step = NULL;
    enum profd_status status = next_step(s, &step, &m->cursor, e);
    *any = status == PROFD_OK && step;
    if (!*any) {
        return status;
    }
    status = step->slice(s, m, e);
    if (status != PROFD_OK) {
        return profd_error_wrap(e, status, "migration step \"%s\"", step->name);
    }
    return m->more ? sqlite_run(s, SQL_MIGRATION_SET, VALUES(TEXT(step->name), INTEGER(m->cursor), INTEGER(m->rows)), e)
                   : sqlite_run(s, SQL_MIGRATION_REMOVE, VALUES(TEXT(step->name)), e);
}

enum profd_status sqlite_migrate(struct store *base, struct store_progress *out, struct profd_error *e)
{
    struct sqlite_store *s = sqlite_self(base);
    struct sqlite_migrating m = {.budget = sqlite_budget_begin()};
    bool any = false;
    if (s->migrated) {
        *out = (struct store_progress){.more = false};
        return PROFD_OK;
    }
    enum profd_status status = sqlite_upkeep_begin(s, e);
    if (status != PROFD_OK) {
        return status;
    }
    status = work_once(s, &m, &any, e);
    status = sqlite_upkeep_end(s, status, e);
    if (status == PROFD_OK) {
        s->migrated = !any;
        *out = (struct store_progress){.more = any, .rows = m.rows};
    }
    return status;
}
