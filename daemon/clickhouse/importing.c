#include "clickhouse/importing.h"

#define BLOCK_BYTES (16u << 20)

enum profd_status import_flush(struct importing *x, const char *columns, bool all, struct profd_error *e)
{
    enum profd_status status = PROFD_OK;
    if (all || x->rows.size >= BLOCK_BYTES || x->rows.failed) {
        status = engine_insert(x->to, columns, &x->rows, e);
        x->rows.size = 0;
    }
    return status;
}

struct table {
    struct importing *x;
    import_row *each;
    const char *columns;
};

static enum profd_status take_row(void *context, const struct store_cell *row, struct profd_error *e)
{
    const struct table *t = context;
    const enum profd_status status = t->each(t->x, row, e);
    return status == PROFD_OK ? import_flush(t->x, t->columns, false, e) : status;
}

enum profd_status import_table(struct importing *x, enum store_export what, import_row *each, const char *columns,
                               struct profd_error *e)
{
    struct table t = {x, each, columns};
    const enum profd_status status = store_sqlite_export(x->from, what, take_row, &t, e);
    return status == PROFD_OK ? import_flush(x, columns, true, e) : status;
}

enum profd_status import_map_tenant(struct importing *x, int64_t id, uint32_t *out, struct profd_error *e)
{
    const uint32_t *known = hashmap_find(&x->tenants, &id, sizeof id);
    if (!known) {
        return profd_error_set(e, PROFD_DAMAGED, "the database has rows of tenant %lld, which it does not have",
                               (long long)id);
    }
    *out = *known;
    return PROFD_OK;
}

enum profd_status import_map_user(struct importing *x, uint32_t uid, uint32_t *out, struct profd_error *e)
{
    uint32_t tenant = 0;
    *out = uid;
    if (!store_is_tenant(uid)) {
        return PROFD_OK;
    }
    const enum profd_status status = import_map_tenant(x, store_tenant_id(uid), &tenant, e);
    *out = store_tenant_uid(tenant);
    return status;
}
