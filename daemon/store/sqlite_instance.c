/* Rows of live processes. */
#include <stdlib.h>
#include <string.h>

#include "store/labels.h"
#include "store/sqlite.h"

#define FORGET_SLICE 2000 /* instances removed in one transaction */

/* Reads the current row of SQL_SNAPSHOT_GET. */
static enum profd_status copy_snapshot(struct sqlite_store *s, sqlite3_stmt *q, uint32_t uid, uint64_t *generation,
                                       uint8_t **snapshot, size_t *size, struct profd_error *e)
{
    size_t n;
    if (sqlite3_column_type(q, 1) == SQLITE_NULL) {
        return profd_error_set(e, PROFD_DAMAGED, "database %s: an instance of user %u has no snapshot", s->path, uid);
    }
    const uint8_t *bytes = sqlite_blob(q, 1, &n);
    uint8_t *copy = malloc(n + 1);
    if (!copy) {
        return profd_error_set(e, PROFD_NO_MEMORY, "no memory for a snapshot of %zu bytes", n);
    }
    memcpy(copy, bytes, n);
    *generation = (uint64_t)sqlite3_column_int64(q, 0);
    *snapshot = copy;
    *size = n;
    return PROFD_OK;
}

enum profd_status sqlite_get_instance(struct store *base, uint32_t uid, const uint8_t instance[STORE_INSTANCE_SIZE],
                                      uint64_t *generation, uint8_t **snapshot, size_t *size, struct profd_error *e)
{
    struct sqlite_store *s = sqlite_self(base);
    sqlite3_stmt *q;
    bool row = false;
    enum profd_status status =
        sqlite_start(s, SQL_SNAPSHOT_GET, VALUES(INTEGER(uid), BLOB(instance, STORE_INSTANCE_SIZE)), &q, e);
    if (status == PROFD_OK) {
        status = sqlite_next(s, q, &row, e);
    }
    if (status != PROFD_OK) {
        return status;
    }
    if (!row) {
        *generation = 0;
        *snapshot = NULL;
        *size = 0;
        return PROFD_OK;
    }
    status = copy_snapshot(s, q, uid, generation, snapshot, size, e);
    sqlite_finish(q);
    return status;
}

/* name NULL: store_each_instance; otherwise store_each_namesake. */
static enum profd_status each_found(struct sqlite_store *s, const uint8_t *name,
                                    bool (*each)(void *context, const struct store_instance *i), void *context,
                                    struct profd_error *e)
{
    sqlite3_stmt *q;
    bool row = false;
    enum profd_status status =
        name ? sqlite_start(s, SQL_INSTANCE_NAMESAKES, VALUES(BLOB(name, STORE_INSTANCE_SIZE)), &q, e)
             : sqlite_start(s, SQL_INSTANCE_EACH, NULL, 0, &q, e);
    while (status == PROFD_OK && (status = sqlite_next(s, q, &row, e)) == PROFD_OK && row) {
        size_t n, size;
        struct store_instance i = {.uid = (uint32_t)sqlite3_column_int64(q, 0),
                                   .generation = (uint64_t)sqlite3_column_int64(q, 2),
                                   .seen = sqlite3_column_int64(q, 3),
                                   .ended = sqlite3_column_int(q, 5) != 0,
                                   .missing_since = sqlite3_column_int64(q, 6)};
        const uint8_t *bytes = sqlite_blob(q, 1, &n);
        i.snapshot = sqlite_blob(q, 4, &size);
        i.snapshot_size = size;
        memcpy(i.instance, bytes, n < sizeof i.instance ? n : sizeof i.instance);
        if (!each(context, &i)) {
            sqlite_finish(q);
            break;
        }
    }
    return status;
}

enum profd_status sqlite_each_instance(struct store *base, bool (*each)(void *context, const struct store_instance *i),
                                       void *context, struct profd_error *e)
{
    return each_found(sqlite_self(base), NULL, each, context, e);
}

enum profd_status sqlite_each_namesake(struct store *base, const uint8_t instance[STORE_INSTANCE_SIZE],
                                       bool (*each)(void *context, const struct store_instance *i), void *context,
                                       struct profd_error *e)
{
    return each_found(sqlite_self(base), instance, each, context, e);
}

enum profd_status sqlite_get_living(struct store *base, enum store_living_kind kind, const struct store_scope *scope,
                                    const struct store_filter *filter, struct store_living *out, struct profd_error *e)
{
    struct sqlite_store *s = sqlite_self(base);
    const char *build = filter->build_id ? filter->build_id : "";
    char users[SQLITE_SCOPE_TEXT];
    sqlite3_stmt *q;
    bool row = false;
    enum profd_status status = sqlite_start(
        s, kind == STORE_READ ? SQL_INSTANCE_READ : SQL_INSTANCE_UNREAD,
        VALUES(INTEGER(base->run), INTEGER(filter->until), INTEGER(scope->all), TEXT(sqlite_scope_format(scope, users)),
               TEXT(build), INTEGER(filter->as_program), INTEGER(kind == STORE_READ ? filter->since : 0)),
        &q, e);
    while (status == PROFD_OK && (status = sqlite_next(s, q, &row, e)) == PROFD_OK && row) {
        size_t n;
        const uint8_t *labels = sqlite_blob(q, 0, &n);
        int64_t earliest = sqlite3_column_int64(q, 2), latest = sqlite3_column_int64(q, 3);
        if (!labels_match((const char *)labels, n, filter->matchers, filter->matcher_count)) {
            continue;
        }
        out->earliest = out->processes == 0 || earliest < out->earliest ? earliest : out->earliest;
        out->latest = latest > out->latest ? latest : out->latest;
        out->processes += (uint64_t)sqlite3_column_int64(q, 1);
    }
    return status;
}

/* Children that were read before their parent are not missing. */
static enum profd_status adopt(struct sqlite_store *s, const struct store_harvest *h, int64_t id, struct profd_error *e)
{
    enum profd_status status =
        sqlite_run(s, SQL_INSTANCE_ADOPT, VALUES(BLOB(h->instance, sizeof h->instance), INTEGER(h->upload.uid)), e);
    int found = sqlite3_changes(s->db);
    return status == PROFD_OK && found > 0
               ? sqlite_run(s, SQL_INSTANCE_BEAR, VALUES(INTEGER(id), INTEGER(-found), INTEGER(0)), e)
               : status;
}

enum profd_status sqlite_put_kin(struct sqlite_store *s, const struct store_harvest *h, int64_t id, bool first,
                                 int64_t before, struct profd_error *e)
{
    enum profd_status status = first ? adopt(s, h, id, e) : PROFD_OK;
    if (status == PROFD_OK && h->children > 0) {
        status = sqlite_run(s, SQL_INSTANCE_BEAR, VALUES(INTEGER(id), INTEGER(h->children), INTEGER(before)), e);
    }
    for (size_t i = 0; status == PROFD_OK && i < h->parent_count; i++) {
        const struct sqlite_value parent = BLOB(h->parents + i * STORE_INSTANCE_SIZE, STORE_INSTANCE_SIZE);
        const struct sqlite_value uid = INTEGER(h->upload.uid);
        status = sqlite_run(s, SQL_INSTANCE_FOUND, VALUES(parent, uid), e);
        if (status == PROFD_OK && sqlite3_changes(s->db) == 0) {
            status = sqlite_run(s, SQL_INSTANCE_WAIT, VALUES(parent, INTEGER(id), uid), e);
        }
    }
    return status == PROFD_OK && h->told ? sqlite_run(s, SQL_INSTANCE_TELL, VALUES(INTEGER(id)), e) : status;
}

enum profd_status sqlite_remove_instances(struct sqlite_store *s, int64_t before, struct profd_error *e)
{
    enum profd_status status =
        sqlite_run(s, SQL_INSTANCE_WAIT_REMOVE, VALUES(INTEGER(before), INTEGER(FORGET_SLICE)), e);
    if (status == PROFD_OK) {
        status = sqlite_run(s, SQL_SNAPSHOT_REMOVE, VALUES(INTEGER(before), INTEGER(FORGET_SLICE)), e);
    }
    return status == PROFD_OK ? sqlite_run(s, SQL_INSTANCE_REMOVE, VALUES(INTEGER(before), INTEGER(FORGET_SLICE)), e)
                              : status;
}

enum profd_status sqlite_touch_series(struct sqlite_store *s, int64_t series, struct profd_error *e)
{
    static const enum sqlite_sql touches[] = {SQL_TOUCH_SERIES_BUILDS, SQL_TOUCH_SERIES_BUILD_USERS,
                                              SQL_TOUCH_SERIES_USER};
    enum profd_status status = PROFD_OK;
    s->state.list_epoch = ++s->state.number;
    for (size_t i = 0; status == PROFD_OK && i < sizeof touches / sizeof touches[0]; i++) {
        status = sqlite_run(s, touches[i], VALUES(INTEGER(series), INTEGER(s->state.number)), e);
    }
    return status == PROFD_OK ? sqlite_save_state(s, e) : status;
}

enum profd_status sqlite_set_unread(struct store *base, uint32_t uid, const uint8_t instance[STORE_INSTANCE_SIZE],
                                    struct profd_error *e)
{
    struct sqlite_store *s = sqlite_self(base);
    enum profd_status status = sqlite_write_begin(s, e);
    if (status != PROFD_OK) {
        return status;
    }
    status = sqlite_run(s, SQL_INSTANCE_PUT_OFF, VALUES(INTEGER(uid), BLOB(instance, STORE_INSTANCE_SIZE)), e);
    return sqlite_write_end(s, status, e);
}
