/* Tokens and tenants (tokens.h). */
#include <stdio.h>
#include <string.h>

#include "store/sqlite.h"

#define EVERY_TENANT 0 /* in table token */

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

static enum profd_status add_token(struct store *s, struct store_token *t, struct profd_error *e)
{
    int64_t id = 0, tenant = EVERY_TENANT, tokens = 0;
    bool found = false;
    TRY(sqlite_find(s, SQL_TOKEN_FIND, VALUES(TEXT(t->name)), &id, &found, e));
    if (found) {
        return profd_error_set(e, PROFD_REFUSED, "there is a token \"%s\"; remove it first to make another", t->name);
    }
    TRY(sqlite_find(s, SQL_TOKEN_COUNT, NULL, 0, &tokens, &found, e));
    if (tokens >= (int64_t)STORE_TOKENS_MOST) {
        return profd_error_set(e, PROFD_LIMIT, "there are %u tokens, the limit", STORE_TOKENS_MOST);
    }
    if (!t->all) {
        TRY(sqlite_find_tenant(s, t->tenant, &tenant, e));
    }
    TRY(sqlite_find(s, SQL_TOKEN_ADD,
                    VALUES(TEXT(t->name), INTEGER(t->rights), INTEGER(tenant), TEXT(t->hosts),
                           t->has_hash ? BLOB(t->hash, sizeof t->hash) : NOTHING, INTEGER(t->expires),
                           INTEGER(t->created)),
                    &id, &found, e));
    t->id = (uint64_t)id;
    t->uid = t->all ? UINT32_MAX : store_tenant_uid(tenant);
    return PROFD_OK;
}

enum profd_status store_add_token(struct store *s, struct store_token *token, struct profd_error *e)
{
    TRY(sqlite_store_begin(s, e));
    return sqlite_write_end(s, add_token(s, token, e), e);
}

enum profd_status store_remove_token(struct store *s, const char *name, uint64_t *id, struct profd_error *e)
{
    int64_t removed = 0;
    bool found = false;
    TRY(sqlite_write_begin(s, e));
    enum profd_status status = sqlite_find(s, SQL_TOKEN_REMOVE, VALUES(TEXT(name)), &removed, &found, e);
    if (status == PROFD_OK && !found) {
        status = profd_error_set(e, PROFD_NOT_FOUND, "there is no token \"%s\"; see profctl token list", name);
    }
    TRY(sqlite_write_end(s, status, e));
    *id = (uint64_t)removed;
    return PROFD_OK;
}

enum profd_status store_each_token(struct store *s, bool (*each)(void *context, const struct store_token *t),
                                   void *context, struct profd_error *e)
{
    enum profd_status status = PROFD_OK;
    sqlite3_stmt *q;
    bool goes_on = true;
    TRY(sqlite_start(s, SQL_TOKEN_EACH, NULL, 0, &q, e));
    while (goes_on && sqlite_row(s, q, &status, e)) {
        const int64_t tenant = sqlite3_column_int64(q, 3);
        struct store_token t = {.id = (uint64_t)sqlite3_column_int64(q, 0),
                                .rights = (unsigned)sqlite3_column_int(q, 2),
                                .all = tenant == EVERY_TENANT,
                                .uid = tenant == EVERY_TENANT ? UINT32_MAX : store_tenant_uid(tenant),
                                .expires = sqlite3_column_int64(q, 7),
                                .created = sqlite3_column_int64(q, 8)};
        size_t n = 0;
        const uint8_t *hash = sqlite_blob(q, 6, &n);
        snprintf(t.name, sizeof t.name, "%s", sqlite_text(q, 1));
        snprintf(t.tenant, sizeof t.tenant, "%s", sqlite_text(q, 4));
        snprintf(t.hosts, sizeof t.hosts, "%s", sqlite_text(q, 5));
        t.has_hash = n == sizeof t.hash;
        if (t.has_hash) {
            memcpy(t.hash, hash, n);
        }
        goes_on = each(context, &t);
    }
    if (status == PROFD_OK && !goes_on) {
        sqlite_finish(q);
    }
    return status;
}
