/* Import of tenants, tokens, enrolments, readers and the watch list. */
#include "clickhouse/import.h"
#include "clickhouse/importing.h"

/* Ids of readers of a database: smaller than those that daemons give, and others than those of another database. */
static uint64_t reader_id(const struct importing *x, uint64_t id)
{
    const uint64_t of = (uint64_t)x->incarnation[0] << 20 | (uint64_t)x->incarnation[1] << 12 |
                        (uint64_t)x->incarnation[2] << 4 | (uint64_t)x->incarnation[3] >> 4;
    return of << 32 | (id & UINT32_MAX);
}

static enum profd_status add_tenant(void *context, const struct store_cell *row, struct profd_error *e)
{
    struct importing *x = context;
    uint32_t id = 0;
    const char *name = arena_copy(x->arena, (const char *)row[1].bytes, row[1].size);
    enum profd_status status = name ? engine_find_tenant(x->to, name, &id, e) : profd_no_memory(e);
    if (status == PROFD_OK && !hashmap_put(&x->tenants, &row[0].number, sizeof row[0].number, &id, sizeof id)) {
        status = profd_no_memory(e);
    }
    x->out->tenants++;
    return status;
}

static enum profd_status add_token(void *context, const struct store_cell *row, struct profd_error *e)
{
    struct importing *x = context;
    uint32_t tenant = 0;
    const enum profd_status status = import_map_tenant(x, row[1].number, &tenant, e);
    import_put_fixed(&x->rows, &row[0], STORE_HASH_SIZE);
    rows_put_u64(&x->rows, x->number);
    rows_put_u32(&x->rows, tenant);
    import_put_text(&x->rows, &row[2]);
    rows_put_u64(&x->rows, (uint64_t)(row[3].number + row[4].number)); /* enrolments count as uses here */
    rows_put_i64(&x->rows, row[5].number);
    rows_put_i64(&x->rows, row[6].number);
    x->out->tokens++;
    return status;
}

static enum profd_status add_enrolment(void *context, const struct store_cell *row, struct profd_error *e)
{
    struct importing *x = context;
    uint32_t tenant = 0;
    const bool revoked = row[9].number != 0;
    const enum profd_status status = import_map_tenant(x, row[2].number, &tenant, e);
    import_put_fixed(&x->rows, &row[0], STORE_HASH_SIZE);
    import_put_fixed(&x->rows, &row[1], STORE_HOST_SIZE);
    rows_put_u64(&x->rows, revoked ? UINT64_MAX : x->number);
    rows_put_u32(&x->rows, tenant);
    import_put_fixed(&x->rows, &row[3], STORE_HASH_SIZE);
    for (int i = 4; i < 7; i++) {
        import_put_text(&x->rows, &row[i]);
    }
    for (int i = 7; i < 10; i++) {
        rows_put_i64(&x->rows, row[i].number);
    }
    x->out->enrolments++;
    return status;
}

struct taking {
    struct importing *x;
    enum profd_status status;
    struct profd_error *e;
};

static bool add_reader(void *context, const struct store_reader *r)
{
    struct taking *t = context;
    struct buffer *b = &t->x->rows;
    uint32_t tenants[STORE_READER_TENANTS] = {0};
    for (size_t i = 0; i < r->tenant_count && t->status == PROFD_OK; i++) {
        t->status = engine_find_tenant(t->x->to, r->tenants[i].name, &tenants[i], t->e);
    }
    rows_put_text(b, r->name);
    rows_put_u64(b, t->x->number);
    rows_put_u64(b, reader_id(t->x, r->id));
    rows_put_u8(b, r->admin);
    rows_put_u8(b, r->has_token);
    rows_put_fixed(b, r->hash, sizeof r->hash);
    rows_put_i64(b, r->expires);
    rows_put_i64(b, r->created);
    rows_put_u8(b, r->all);
    rows_put_array_u32(b, tenants, r->tenant_count);
    rows_put_u8(b, 0);
    t->x->out->readers++;
    return t->status == PROFD_OK;
}

static bool add_watch_row(void *context, const struct store_watch_row *r)
{
    struct taking *t = context;
    struct buffer *b = &t->x->rows;
    rows_put_u8(b, (uint8_t)r->kind);
    rows_put_text(b, r->key);
    rows_put_u64(b, t->x->number);
    rows_put_i64(b, r->changed);
    rows_put_text(b, r->document);
    rows_put_u8(b, 0);
    t->x->out->watch_rows++;
    t->status = import_flush(t->x, "watch (kind, key, number, changed, document, gone)", false, t->e);
    return t->status == PROFD_OK;
}

static enum profd_status import_watch_list(struct importing *x, struct taking *t, struct profd_error *e)
{
    static const enum store_watch_kind kinds[] = {STORE_WATCH_COUNT, STORE_WATCH_VERDICT};
    enum profd_status status = PROFD_OK;
    for (size_t i = 0; i < sizeof kinds / sizeof kinds[0] && status == PROFD_OK; i++) {
        status = store_each_watch_row(x->from, kinds[i], add_watch_row, t, e);
        status = status == PROFD_OK ? t->status : status;
    }
    return status == PROFD_OK ? import_flush(x, "watch (kind, key, number, changed, document, gone)", true, e) : status;
}

enum profd_status import_people(struct importing *x, struct profd_error *e)
{
    struct taking t = {x, PROFD_OK, e};
    enum profd_status status = store_sqlite_export(x->from, STORE_EXPORT_TENANTS, add_tenant, x, e);
    if (status == PROFD_OK) {
        status = import_table(x, STORE_EXPORT_TOKENS, add_token,
                              "token (hash, number, tenant, name, uses, expires, created)", e);
    }
    if (status == PROFD_OK) {
        status = import_table(x, STORE_EXPORT_ENROLMENTS, add_enrolment,
                              "enrolment (key, identity, number, tenant, token, name, machine, version, not_after, "
                              "enrolled, revoked)",
                              e);
    }
    if (status == PROFD_OK) {
        status = store_each_reader(x->from, add_reader, &t, e);
        status = status == PROFD_OK ? t.status : status;
    }
    if (status == PROFD_OK) {
        status = import_flush(
            x, "reader (name, number, id, admin, has_token, hash, expires, created, everything, tenants, gone)", true,
            e);
    }
    return status == PROFD_OK ? import_watch_list(x, &t, e) : status;
}
