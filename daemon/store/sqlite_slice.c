#include "store/sqlite_slice.h"

#include "store/sqlite_migrate.h"

const int sqlite_slice_widths[SQLITE_SLICE_WIDTHS] = {SQLITE_SLICE_NARROW, 5, 15, SQLITE_SLICE_WIDE};

enum profd_status sqlite_slice_add(struct sqlite_store *s, const struct sqlite_slice *x, struct profd_error *e)
{
    return sqlite_run(s, SQL_SLICE_ADD,
                      VALUES(INTEGER(x->series), INTEGER(x->width), INTEGER(sqlite_slice_at(x->width, x->end)),
                             INTEGER(x->instance), INTEGER(x->upload)),
                      e);
}

enum profd_status sqlite_slice_find(struct sqlite_store *s, const struct sqlite_slice *x, bool *found,
                                    struct profd_error *e)
{
    int64_t one;
    return sqlite_find(s, SQL_SLICE_FIND,
                       VALUES(INTEGER(x->series), INTEGER(x->width), INTEGER(sqlite_slice_at(x->width, x->end)),
                              INTEGER(x->instance), INTEGER(x->upload)),
                       &one, found, e);
}

enum profd_status sqlite_slice_remove(struct sqlite_store *s, const struct sqlite_slice *x, struct profd_error *e)
{
    return sqlite_run(s, SQL_SLICE_REMOVE,
                      VALUES(INTEGER(x->series), INTEGER(x->width), INTEGER(sqlite_slice_at(x->width, x->end)),
                             INTEGER(x->instance), INTEGER(x->upload)),
                      e);
}

enum profd_status sqlite_slice_remove_hours(struct sqlite_store *s, int64_t series, int64_t from, int64_t to,
                                            struct profd_error *e)
{
    enum profd_status status = PROFD_OK;
    for (size_t i = 0; status == PROFD_OK && i < SQLITE_SLICE_WIDTHS; i++) {
        int64_t each = SQLITE_SLICE_WIDE / sqlite_slice_widths[i]; /* in an hour */
        status = sqlite_run(s, SQL_SLICE_REMOVE_RANGE,
                            VALUES(INTEGER(series), INTEGER(sqlite_slice_widths[i]), INTEGER(from * each),
                                   INTEGER(to * each + each - 1)),
                            e);
    }
    return status;
}

enum profd_status sqlite_slice_enter(struct sqlite_store *s, int64_t series, int64_t hour, size_t builds, uint64_t raw,
                                     uint64_t live, struct profd_error *e)
{
    struct sqlite_sums of_hour, of_series;
    bool has_hour = false, has_series = false;
    enum profd_status status = sqlite_ledger_load(s, series, hour, builds, &of_hour, &has_hour, e);
    if (status == PROFD_OK) {
        status = sqlite_series_load(s, series, builds, &of_series, &has_series, e);
    }
    if (status == PROFD_OK && (!has_hour || !has_series)) {
        status = profd_error_set(
            e, PROFD_DAMAGED, "database %s: series %lld, hour %lld: the ledger does not know a live process's upload",
            s->path, (long long)series, (long long)hour);
    }
    if (status != PROFD_OK) {
        return status;
    }
    of_hour.raw_bytes += raw;
    of_hour.live_bytes += live;
    of_series.raw_bytes += raw;
    of_series.live_bytes += live;
    s->state.raw_bytes += raw;
    s->state.live_bytes += live;
    status = sqlite_ledger_set(s, series, hour, &of_hour, e);
    return status == PROFD_OK ? sqlite_series_save(s, series, &of_series, e) : status;
}

/* An upload that grew before slices existed gets a slice of an hour, which is its content. Nothing else of it changes.
 */
static enum profd_status slice_adopt(struct sqlite_store *s, const struct sqlite_slice *x, int64_t hour, uint64_t bytes,
                                     size_t builds, struct profd_error *e)
{
    enum profd_status status = sqlite_slice_enter(s, x->series, hour, builds, 0, bytes, e);
    if (status == PROFD_OK) {
        status =
            sqlite_run(s, SQL_UPLOAD_WIDEN, VALUES(INTEGER(x->upload), INTEGER(x->width), INTEGER(x->instance)), e);
    }
    return status == PROFD_OK ? sqlite_slice_add(s, x, e) : status;
}

/* The upload of the live process in the current row of SQL_INSTANCE_NEXT. */
static enum profd_status adopt_row(struct sqlite_store *s, struct arena *a, sqlite3_stmt *q, struct profd_error *e)
{
    const struct sqlite_slice slice = {.series = sqlite3_column_int64(q, 2),
                                       .width = SQLITE_SLICE_WIDE,
                                       .end = sqlite3_column_int64(q, 4),
                                       .instance = sqlite3_column_int64(q, 0),
                                       .upload = sqlite3_column_int64(q, 1)};
    int64_t hour = sqlite3_column_int64(q, 3);
    uint64_t bytes = (uint64_t)sqlite3_column_int64(q, 5);
    struct sqlite_identity series;
    struct profd_error why;
    bool found = false, grew = sqlite3_column_type(q, 1) != SQLITE_NULL && sqlite3_column_int(q, 6) == 0;
    sqlite_finish(q);
    if (!grew) {
        return PROFD_OK;
    }
    enum profd_status status = sqlite_series_identify(s, a, slice.series, &series, &found, &why);
    if (status == PROFD_OK && found) {
        status = slice_adopt(s, &slice, hour, bytes, series.build_count, &why);
    }
    if (status == PROFD_DAMAGED && s->broken == PROFD_OK) { /* nothing was written, because its ledger cannot be read */
        return PROFD_OK;
    }
    if (status != PROFD_OK && e) {
        *e = why;
    }
    return status;
}

/* *id: where to begin; then the instance that was found. */
static enum profd_status adopt_next(struct sqlite_store *s, struct arena *a, int64_t *id, bool *found,
                                    struct profd_error *e)
{
    sqlite3_stmt *q;
    enum profd_status status = sqlite_start(s, SQL_INSTANCE_NEXT, VALUES(INTEGER(*id)), &q, e);
    if (status == PROFD_OK) {
        status = sqlite_next(s, q, found, e);
    }
    if (status != PROFD_OK || !*found) {
        return status;
    }
    *id = sqlite3_column_int64(q, 0);
    arena_reset(a);
    return adopt_row(s, a, q, e);
}

enum profd_status sqlite_slice_adopt_of(struct sqlite_store *s, struct arena *scratch, int64_t instance,
                                        struct profd_error *e)
{
    bool found = false;
    return s->migrated ? PROFD_OK : adopt_next(s, scratch, &instance, &found, e);
}

enum profd_status sqlite_slice_migrate(struct sqlite_store *s, struct sqlite_migrating *m, struct profd_error *e)
{
    struct arena *a = arena_new(0);
    enum profd_status status =
        a ? PROFD_OK : profd_error_set(e, PROFD_NO_MEMORY, "no memory to look at live processes");
    bool row = true;
    while (status == PROFD_OK && row && (m->rows == 0 || !sqlite_budget_spent(&m->budget))) {
        status = adopt_next(s, a, &m->cursor, &row, e);
        if (status == PROFD_OK && row) {
            m->cursor++;
            m->rows++;
            m->budget.uploads -= m->budget.uploads > 0;
        }
    }
    m->more = row;
    arena_free(a);
    return status;
}
