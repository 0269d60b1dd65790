/* What is known of live processes. */
#include <stdlib.h>
#include <string.h>

#include "store/sqlite.h"

#define FORGET_SLICE 2000 /* instances removed in one transaction */

/* The row that SQL_SNAPSHOT_GET stands on. */
static enum profd_status copy_snapshot(struct sqlite_store *s, sqlite3_stmt *q, uint32_t uid, uint64_t *generation,
                                       uint8_t **snapshot, size_t *size, struct profd_error *e)
{
    size_t n;
    if (sqlite3_column_type(q, 1) == SQLITE_NULL)
        return profd_error_set(e, PROFD_DAMAGED, "database %s: an instance of user %u has no snapshot", s->path, uid);
    const uint8_t *bytes = sqlite_blob(q, 1, &n);
    uint8_t *copy = malloc(n + 1);
    if (!copy)
        return profd_error_set(e, PROFD_NO_MEMORY, "no memory for a snapshot of %zu bytes", n);
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
    if (status == PROFD_OK)
        status = sqlite_next(s, q, &row, e);
    if (status != PROFD_OK)
        return status;
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

enum profd_status sqlite_each_instance(struct store *base, bool (*each)(void *context, const struct store_instance *i),
                                       void *context, struct profd_error *e)
{
    struct sqlite_store *s = sqlite_self(base);
    sqlite3_stmt *q;
    bool row = false;
    enum profd_status status = sqlite_start(s, SQL_INSTANCE_EACH, NULL, 0, &q, e);
    while (status == PROFD_OK && (status = sqlite_next(s, q, &row, e)) == PROFD_OK && row) {
        size_t n, size;
        struct store_instance i = {.uid = (uint32_t)sqlite3_column_int64(q, 0),
                                   .generation = (uint64_t)sqlite3_column_int64(q, 2),
                                   .seen = sqlite3_column_int64(q, 3)};
        const uint8_t *name = sqlite_blob(q, 1, &n);
        i.snapshot = sqlite_blob(q, 4, &size);
        i.snapshot_size = size;
        memcpy(i.instance, name, n < sizeof i.instance ? n : sizeof i.instance);
        if (!each(context, &i)) {
            sqlite_finish(q);
            break;
        }
    }
    return status;
}

enum profd_status sqlite_forget_instances(struct sqlite_store *s, int64_t before, struct profd_error *e)
{
    enum profd_status status = sqlite_run(s, SQL_SNAPSHOT_REMOVE, VALUES(INTEGER(before), INTEGER(FORGET_SLICE)), e);
    return status == PROFD_OK ? sqlite_run(s, SQL_INSTANCE_REMOVE, VALUES(INTEGER(before), INTEGER(FORGET_SLICE)), e)
                              : status;
}
