/* Import of parsed objects and of what hosts attest. */
#include <nettle/sha2.h>
#include <stdio.h>

#include "clickhouse/import.h"
#include "clickhouse/importing.h"

/* A delivery, again in the order in which they came. */
static enum profd_status add_object(void *context, const struct store_cell *row, struct profd_error *e)
{
    struct importing *x = context;
    struct sha256_ctx sha;
    uint8_t hash[STORE_HASH_SIZE];
    struct store_object o = {.has_names = row[5].number != 0,
                             .outdated = row[6].number != 0,
                             .trusted = row[9].number != 0,
                             .by_operator = row[10].number != 0,
                             .encoded = row[2].bytes,
                             .encoded_size = row[2].size,
                             .bounds = row[14].bytes,
                             .bounds_size = row[14].size,
                             .received = row[11].number,
                             .hash = row[7].number != 0 ? hash : NULL};
    arena_reset(x->arena);
    o.name = arena_copy(x->arena, (const char *)row[12].bytes, row[12].size);
    o.note = arena_copy(x->arena, (const char *)row[13].bytes, row[13].size);
    if (!o.name || !o.note) {
        return profd_no_memory(e);
    }
    (void)snprintf(o.id.text, sizeof o.id.text, "%.*s", (int)row[3].size, (const char *)row[3].bytes);
    (void)snprintf(o.variant, sizeof o.variant, "%.*s", (int)row[4].size, (const char *)row[4].bytes);
    sha256_init(&sha);
    sha256_update(&sha, o.encoded_size, o.encoded);
    sha256_digest(&sha, sizeof hash, hash);
    const enum profd_status status = import_map_user(x, (uint32_t)row[8].number, &o.uid, e);
    x->out->objects++;
    return status == PROFD_OK ? engine_put_object(&x->to->base, &o, e) : status;
}

static enum profd_status add_attestation(void *context, const struct store_cell *row, struct profd_error *e)
{
    struct importing *x = context;
    uint32_t tenant = 0;
    const enum profd_status status = import_map_tenant(x, row[2].number, &tenant, e);
    import_put_text(&x->rows, &row[0]);
    import_put_fixed(&x->rows, &row[1], STORE_HOST_SIZE);
    rows_put_u64(&x->rows, x->number);
    rows_put_u32(&x->rows, store_tenant_uid(tenant));
    rows_put_u8(&x->rows, row[3].bytes != NULL);
    import_put_fixed(&x->rows, &row[3], STORE_HASH_SIZE);
    rows_put_u64(&x->rows, (uint64_t)row[4].number);
    rows_put_i64(&x->rows, row[5].number);
    rows_put_u8(&x->rows, 0);
    x->out->attestations++;
    return status;
}

enum profd_status import_objects(struct importing *x, struct profd_error *e)
{
    const enum profd_status status =
        import_table(x, STORE_EXPORT_ATTESTATIONS, add_attestation,
                     "attestation (build, host, number, uid, has, hash, size, due, gone)", e);
    return status == PROFD_OK ? store_sqlite_export(x->from, STORE_EXPORT_OBJECTS, add_object, x, e) : status;
}
