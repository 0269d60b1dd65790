/* Readers and tenants (readers.h). */
#include <stdio.h>
#include <string.h>

#include "store/sqlite.h"

#define EVERY_TENANT 0 /* in table reader_tenant */

enum profd_status sqlite_find_tenant(struct store *s, const char *name, int64_t *id, struct profd_error *e)
{
    bool found = false;
    enum profd_status status = sqlite_find(s, SQL_TENANT_FIND, VALUES(TEXT(name)), id, &found, e);
    if (status == PROFD_OK && !found) { /* a row that exists would use up a number, too */
        status = sqlite_run(s, SQL_TENANT_ADD, VALUES(TEXT(name)), e);
        *id = sqlite3_last_insert_rowid(s->db);
    }
    if (status == PROFD_OK && store_tenant_uid(*id) < STORE_TENANT_LAST) {
        status =
            profd_error_set(e, PROFD_LIMIT, "there are %u tenants, the limit", STORE_TENANT - STORE_TENANT_LAST + 1);
    }
    return status;
}

static enum profd_status add_reader(struct store *s, const struct store_reader *r, struct profd_error *e)
{
    int64_t id = 0, one, readers = 0;
    bool found = false;
    enum profd_status status = sqlite_find(s, SQL_READER_FIND, VALUES(TEXT(r->name)), &one, &found, e);
    if (status == PROFD_OK && found) {
        return profd_error_set(e, PROFD_REFUSED, "there is a reader \"%s\"; remove it first to give it another token",
                               r->name);
    }
    if (status == PROFD_OK) {
        status = sqlite_find(s, SQL_READER_COUNT, NULL, 0, &readers, &found, e);
    }
    if (status == PROFD_OK && readers >= (int64_t)STORE_READERS_MOST) {
        return profd_error_set(e, PROFD_LIMIT, "there are %u readers, the limit", STORE_READERS_MOST);
    }
    if (status == PROFD_OK) {
        status =
            sqlite_find(s, SQL_READER_ADD,
                        VALUES(TEXT(r->name), INTEGER(r->admin), r->has_token ? BLOB(r->hash, sizeof r->hash) : NOTHING,
                               INTEGER(r->expires), INTEGER(r->created)),
                        &id, &found, e);
    }
    if (status == PROFD_OK && r->all) {
        status = sqlite_run(s, SQL_READER_TENANT_ADD, VALUES(INTEGER(id), INTEGER(EVERY_TENANT)), e);
    }
    for (size_t i = 0; status == PROFD_OK && i < r->tenant_count; i++) {
        int64_t tenant = 0;
        status = sqlite_find_tenant(s, r->tenants[i].name, &tenant, e);
        if (status == PROFD_OK) {
            status = sqlite_run(s, SQL_READER_TENANT_ADD, VALUES(INTEGER(id), INTEGER(tenant)), e);
        }
    }
    return status;
}

enum profd_status store_add_reader(struct store *s, const struct store_reader *reader, struct profd_error *e)
{
    enum profd_status status = sqlite_store_begin(s, e);
    return status == PROFD_OK ? sqlite_write_end(s, add_reader(s, reader, e), e) : status;
}

enum profd_status store_remove_reader(struct store *s, const char *name, struct profd_error *e)
{
    int64_t id = 0;
    bool found = false;
    enum profd_status status = sqlite_write_begin(s, e);
    if (status != PROFD_OK) {
        return status;
    }
    status = sqlite_find(s, SQL_READER_FIND, VALUES(TEXT(name)), &id, &found, e);
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
    enum profd_status status = sqlite_start(s, SQL_READER_EACH, NULL, 0, &q, e);
    while (status == PROFD_OK && row && more) {
        status = sqlite_next(s, q, &row, e);
        if (status == PROFD_OK && r.id != 0 && (!row || (uint64_t)sqlite3_column_int64(q, 0) != r.id)) {
            more = each(context, &r);
            r.id = 0;
        }
        if (status == PROFD_OK && row && r.id == 0) {
            begin_reader(q, &r);
        }
        if (status == PROFD_OK && row) {
            add_tenant(q, &r);
        }
    }
    if (status == PROFD_OK && row) {
        sqlite_finish(q);
    }
    return status;
}
