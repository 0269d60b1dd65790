/* The step "user-bytes": charges users with data that an older version stored. */
#include "store/sqlite_migrate.h"

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
