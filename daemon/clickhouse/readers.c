/* Readers over the network (readers.h). */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "clickhouse/engine_internal.h"

#define COLUMNS "name, number, id, admin, has_token, hash, expires, created, everything, tenants, gone"

static enum profd_status put_row(struct clickhouse_store *s, const struct engine_lock *lock,
                                 const struct store_reader *r, const uint32_t *tenants, bool gone,
                                 struct profd_error *e)
{
    struct buffer row;
    const uint64_t number = engine_number(s);
    buffer_init(&row, 1 << 20);
    rows_put_text(&row, r->name);
    rows_put_u64(&row, number);
    rows_put_u64(&row, number);
    rows_put_u8(&row, r->admin);
    rows_put_u8(&row, r->has_token);
    rows_put_fixed(&row, r->hash, sizeof r->hash);
    rows_put_i64(&row, r->expires);
    rows_put_i64(&row, r->created);
    rows_put_u8(&row, r->all);
    rows_put_array_u32(&row, tenants, r->tenant_count);
    rows_put_u8(&row, gone);
    const enum profd_status status = engine_insert_locked(s, lock, "reader (" COLUMNS ")", &row, e);
    buffer_done(&row);
    return status;
}

/* *count: of readers; *found: one has this name. Numbers that are given from now on are above those of their rows. */
static enum profd_status look(struct clickhouse_store *s, const char *name, uint64_t *count, bool *found,
                              struct profd_error *e)
{
    struct row_reader rows;
    engine_begin(s);
    buffer_add_text(&s->statement,
                    "SELECT toUInt64(max(number)), toUInt64(countIf(gone = 0)), toUInt64(countIf(gone = 0 AND name = ");
    engine_put_quoted(&s->statement, name);
    buffer_add_text(&s->statement, ")) FROM reader FINAL");
    enum profd_status status = engine_query_printed(s, &rows, e);
    if (status == PROFD_OK) {
        engine_saw(s, rows_u64(&rows));
        *count = rows_u64(&rows);
        *found = rows_u64(&rows) > 0;
        status = engine_rows_check(&rows, "readers", e);
        rows_close(&rows);
    }
    return status;
}

static enum profd_status add(struct clickhouse_store *s, const struct engine_lock *lock, const struct store_reader *r,
                             struct profd_error *e)
{
    uint32_t tenants[STORE_READER_TENANTS];
    uint64_t count = 0;
    bool found = false;
    enum profd_status status = look(s, r->name, &count, &found, e);
    if (status == PROFD_OK && found) {
        return profd_error_set(e, PROFD_REFUSED, "there is a reader \"%s\"; remove it first to give it another token",
                               r->name);
    }
    if (status == PROFD_OK && count >= STORE_READERS_MOST) {
        return profd_error_set(e, PROFD_LIMIT, "there are %u readers, the limit", STORE_READERS_MOST);
    }
    for (size_t i = 0; i < r->tenant_count && status == PROFD_OK; i++) {
        status = engine_find_tenant(s, r->tenants[i].name, &tenants[i], e);
    }
    return status == PROFD_OK ? put_row(s, lock, r, tenants, false, e) : status;
}

enum profd_status engine_add_reader(struct store *base, const struct store_reader *reader, struct profd_error *e)
{
    struct clickhouse_store *s = engine_self(base);
    struct engine_lock lock;
    const enum profd_status status = engine_lock_take(s, "reader", &lock, e);
    return status == PROFD_OK ? engine_lock_give(s, &lock, add(s, &lock, reader, e)) : status;
}

static enum profd_status remove_one(struct clickhouse_store *s, const struct engine_lock *lock, const char *name,
                                    struct profd_error *e)
{
    struct store_reader gone = {.id = 0};
    uint64_t count;
    bool found = false;
    const enum profd_status status = look(s, name, &count, &found, e);
    if (status != PROFD_OK) {
        return status;
    }
    if (!found || strlen(name) >= sizeof gone.name) {
        return profd_error_set(e, PROFD_NOT_FOUND, "there is no reader \"%s\"; see profctl reader list", name);
    }
    memcpy(gone.name, name, strlen(name));
    return put_row(s, lock, &gone, NULL, true, e);
}

enum profd_status engine_remove_reader(struct store *base, const char *name, struct profd_error *e)
{
    struct clickhouse_store *s = engine_self(base);
    struct engine_lock lock;
    const enum profd_status status = engine_lock_take(s, "reader", &lock, e);
    return status == PROFD_OK ? engine_lock_give(s, &lock, remove_one(s, &lock, name, e)) : status;
}

static void copy_name(struct row_reader *rows, char out[STORE_NAME_MOST + 1])
{
    size_t n;
    const char *text = rows_string(rows, &n);
    n = n < STORE_NAME_MOST ? n : STORE_NAME_MOST;
    memcpy(out, text, n);
    out[n] = '\0';
}

static int by_uid(const void *a, const void *b)
{
    const struct store_reader_tenant *x = a, *y = b;
    return (x->uid > y->uid) - (x->uid < y->uid);
}

/* The tenants of the row that is being read. */
static enum profd_status read_tenants(struct clickhouse_store *s, struct row_reader *rows, struct store_reader *r,
                                      struct profd_error *e)
{
    enum profd_status status = PROFD_OK;
    const size_t n = rows_length(rows, sizeof(uint32_t));
    for (size_t i = 0; i < n && status == PROFD_OK; i++) {
        const uint32_t id = rows_u32(rows);
        const char *name = "";
        bool twice = false;
        for (size_t k = 0; k < r->tenant_count; k++) {
            twice |= r->tenants[k].uid == store_tenant_uid(id);
        }
        if (twice || r->tenant_count == STORE_READER_TENANTS) {
            continue;
        }
        status = engine_tenant_name(s, id, &name, e);
        struct store_reader_tenant *t = &r->tenants[r->tenant_count++];
        t->uid = store_tenant_uid(id);
        (void)snprintf(t->name, sizeof t->name, "%s", name);
    }
    qsort(r->tenants, r->tenant_count, sizeof *r->tenants, by_uid);
    return status;
}

static enum profd_status read_reader(struct clickhouse_store *s, struct row_reader *rows, struct store_reader *r,
                                     struct profd_error *e)
{
    *r = (struct store_reader){.id = 0};
    copy_name(rows, r->name);
    r->id = rows_u64(rows);
    r->admin = rows_u8(rows) != 0;
    r->has_token = rows_u8(rows) != 0;
    rows_fixed(rows, r->hash, sizeof r->hash);
    r->expires = rows_i64(rows);
    r->created = rows_i64(rows);
    r->all = rows_u8(rows) != 0;
    return read_tenants(s, rows, r, e);
}

enum profd_status engine_each_reader(struct store *base, bool (*each)(void *context, const struct store_reader *r),
                                     void *context, struct profd_error *e)
{
    struct clickhouse_store *s = engine_self(base);
    struct row_reader rows;
    struct store_reader r;
    bool more = true;
    enum profd_status status = engine_query(s, &rows, e,
                                            "SELECT name, id, admin, has_token, hash, expires, created, everything, "
                                            "tenants FROM reader FINAL WHERE gone = 0 ORDER BY id");
    if (status != PROFD_OK) {
        return status;
    }
    while (status == PROFD_OK && more && rows_more(&rows)) {
        status = read_reader(s, &rows, &r, e);
        if (status == PROFD_OK) {
            status = engine_rows_check(&rows, "readers", e);
        }
        more = status == PROFD_OK && each(context, &r);
    }
    rows_close(&rows);
    return status;
}
