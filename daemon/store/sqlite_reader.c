/* Readers and tenants (readers.h). */
#include <stdio.h>
#include <string.h>

#include "store/sqlite.h"

#define EVERY_TENANT 0 /* in table reader_tenant */

enum profd_status sqlite_find_tenant(struct store *s, const char *name, int64_t *id, struct profd_error *e)
{
    bool found = false;
    TRY(sqlite_find(s, SQL_TENANT_FIND, VALUES(TEXT(name)), id, &found, e));
    if (!found) { /* a row that exists would use up a number, too */
        TRY(sqlite_run(s, SQL_TENANT_ADD, VALUES(TEXT(name)), e));
        *id = sqlite3_last_insert_rowid(s->db);
    }
    if (store_tenant_uid(*id) < STORE_TENANT_LAST) {
        return profd_error_set(e, PROFD_LIMIT, "there are %u tenants, the limit", STORE_TENANT - STORE_TENANT_LAST + 1);
    }
    return PROFD_OK;
}

static enum profd_status add_reader(struct store *s, const struct store_reader *r, struct profd_error *e)
{
    int64_t id = 0, one, readers = 0;
    bool found = false;
    TRY(sqlite_find(s, SQL_READER_FIND, VALUES(TEXT(r->name)), &one, &found, e));
    if (found) {
        return profd_error_set(e, PROFD_REFUSED, "there is a reader \"%s\"; remove it first to give it another token",
                               r->name);
    }
    TRY(sqlite_find(s, SQL_READER_COUNT, NULL, 0, &readers, &found, e));
    if (readers >= (int64_t)STORE_READERS_MOST) {
        return profd_error_set(e, PROFD_LIMIT, "there are %u readers, the limit", STORE_READERS_MOST);
    }
    TRY(sqlite_find(s, SQL_READER_ADD,
                    VALUES(TEXT(r->name), INTEGER(r->admin), r->has_token ? BLOB(r->hash, sizeof r->hash) : NOTHING,
                           INTEGER(r->expires), INTEGER(r->created)),
                    &id, &found, e));
    if (r->all) {
        TRY(sqlite_run(s, SQL_READER_TENANT_ADD, VALUES(INTEGER(id), INTEGER(EVERY_TENANT)), e));
    }
    for (size_t i = 0; i < r->tenant_count; i++) {
        int64_t tenant = 0;
        TRY(sqlite_find_tenant(s, r->tenants[i].name, &tenant, e));
        TRY(sqlite_run(s, SQL_READER_TENANT_ADD, VALUES(INTEGER(id), INTEGER(tenant)), e));
    }
    return PROFD_OK;
}

enum profd_status store_add_reader(struct store *s, const struct store_reader *reader, struct profd_error *e)
{
    TRY(sqlite_store_begin(s, e));
    return sqlite_write_end(s, add_reader(s, reader, e), e);
}

enum profd_status store_remove_reader(struct store *s, const char *name, struct profd_error *e)
{
    int64_t id = 0;
    bool found = false;
    TRY(sqlite_write_begin(s, e));
    enum profd_status status = sqlite_find(s, SQL_READER_FIND, VALUES(TEXT(name)), &id, &found, e);
    if (status == PROFD_OK && !found) {
        status = profd_error_set(e, PROFD_NOT_FOUND, "there is no reader \"%s\"; see profctl reader list", name);
    }
    if (status == PROFD_OK) {
        status = sqlite_run(s, SQL_READER_TENANTS_REMOVE, VALUES(INTEGER(id)), e);
    }
    if (status == PROFD_OK) {
        status = sqlite_run(s, SQL_READER_REMOVE, VALUES(INTEGER(id)), e);
    }
    return sqlite_write_end(s, status, e);
}

static void begin_reader(sqlite3_stmt *q, struct store_reader *r)
{
    size_t n = 0;
    const uint8_t *hash = sqlite_blob(q, 3, &n);
    *r = (struct store_reader){.id = (uint64_t)sqlite3_column_int64(q, 0),
                               .admin = sqlite3_column_int(q, 2) != 0,
                               .has_token = n == sizeof r->hash,
                               .expires = sqlite3_column_int64(q, 4),
                               .created = sqlite3_column_int64(q, 5)};
    snprintf(r->name, sizeof r->name, "%s", sqlite_text(q, 1));
    if (r->has_token) {
        memcpy(r->hash, hash, n);
    }
}

static void add_tenant(sqlite3_stmt *q, struct store_reader *r)
{
    const int64_t tenant = sqlite3_column_type(q, 6) == SQLITE_NULL ? -1 : sqlite3_column_int64(q, 6);
    r->all |= tenant == EVERY_TENANT;
    if (tenant > EVERY_TENANT && sqlite3_column_type(q, 7) != SQLITE_NULL && r->tenant_count < STORE_READER_TENANTS) {
        struct store_reader_tenant *t = &r->tenants[r->tenant_count++];
        t->uid = store_tenant_uid(tenant);
        snprintf(t->name, sizeof t->name, "%s", sqlite_text(q, 7));
    }
}

enum profd_status store_each_reader(struct store *s, bool (*each)(void *context, const struct store_reader *r),
                                    void *context, struct profd_error *e)
{
    struct store_reader r = {.id = 0};
    sqlite3_stmt *q;
    bool row = true, more = true;
    TRY(sqlite_start(s, SQL_READER_EACH, NULL, 0, &q, e));
    while (row && more) {
        TRY(sqlite_next(s, q, &row, e));
        if (r.id != 0 && (!row || (uint64_t)sqlite3_column_int64(q, 0) != r.id)) {
            more = each(context, &r);
            r.id = 0;
        }
        if (row && r.id == 0) {
            begin_reader(q, &r);
        }
        if (row) {
            add_tenant(q, &r);
        }
    }
    if (row) {
        sqlite_finish(q);
    }
    return PROFD_OK;
}
