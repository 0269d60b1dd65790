/* Tenants: names with small ids, which are never used again. */
#include <string.h>

#include "clickhouse/engine_internal.h"

#define DEFAULT_NAME "default"
#define DEFAULT_ID 1u

static enum profd_status find_id(struct clickhouse_store *s, const char *name, uint32_t *id, struct profd_error *e)
{
    struct row_reader rows;
    engine_begin(s);
    buffer_add_text(&s->statement, "SELECT id FROM tenant WHERE name = ");
    engine_put_quoted(&s->statement, name);
    buffer_add_text(&s->statement, " LIMIT 1");
    enum profd_status status = engine_query_printed(s, &rows, e);
    if (status == PROFD_OK) {
        *id = rows_more(&rows) ? rows_u32(&rows) : 0;
        status = engine_rows_check(&rows, "a tenant", e);
        rows_close(&rows);
    }
    return status;
}

static enum profd_status add(struct clickhouse_store *s, const struct engine_lock *lock, const char *name, uint32_t *id,
                             struct profd_error *e)
{
    struct buffer row;
    uint64_t greatest = 0;
    enum profd_status status = engine_query_number(s, &greatest, e, "SELECT toUInt64(max(id)) FROM tenant");
    if (status != PROFD_OK) {
        return status;
    }
    *id = (uint32_t)(greatest > DEFAULT_ID ? greatest : DEFAULT_ID) + 1;
    if (store_tenant_uid(*id) < STORE_TENANT_LAST) {
        return profd_error_set(e, PROFD_LIMIT, "there are %u tenants, the limit", STORE_TENANT - STORE_TENANT_LAST + 1);
    }
    buffer_init(&row, 1 << 20);
    rows_put_text(&row, name);
    rows_put_u64(&row, engine_number(s));
    rows_put_u32(&row, *id);
    status = engine_insert_locked(s, lock, "tenant (name, number, id)", &row, e);
    buffer_done(&row);
    return status;
}

enum profd_status engine_find_tenant(struct clickhouse_store *s, const char *name, uint32_t *id, struct profd_error *e)
{
    struct engine_lock lock;
    if (strcmp(name, DEFAULT_NAME) == 0) {
        *id = DEFAULT_ID;
        return PROFD_OK;
    }
    enum profd_status status = find_id(s, name, id, e);
    if (status != PROFD_OK || *id != 0) {
        return status;
    }
    status = engine_lock_take(s, "tenant", &lock, e);
    if (status != PROFD_OK) {
        return status;
    }
    status = find_id(s, name, id, e); /* another daemon may have made it meanwhile */
    if (status == PROFD_OK && *id == 0) {
        status = add(s, &lock, name, id, e);
    }
    return engine_lock_give(s, &lock, status);
}

enum profd_status engine_tenant_name(struct clickhouse_store *s, uint32_t id, const char **name, struct profd_error *e)
{
    struct row_reader rows;
    size_t n = 0;
    *name = id == DEFAULT_ID ? DEFAULT_NAME : hashmap_find(&s->tenants, &id, sizeof id);
    if (*name) {
        return PROFD_OK;
    }
    enum profd_status status = engine_query(s, &rows, e, "SELECT name FROM tenant WHERE id = %u LIMIT 1", id);
    if (status != PROFD_OK) {
        return status;
    }
    *name = "";
    if (rows_more(&rows)) {
        char text[STORE_NAME_SIZE] = "";
        const char *at = rows_string(&rows, &n);
        memcpy(text, at, n < sizeof text ? n : sizeof text - 1);
        *name = hashmap_put(&s->tenants, &id, sizeof id, text, sizeof text);
    }
    status = *name ? engine_rows_check(&rows, "a tenant", e) : profd_no_memory(e);
    rows_close(&rows);
    return status;
}
