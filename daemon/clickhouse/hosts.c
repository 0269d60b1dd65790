#include "clickhouse/hosts.h"

#include "proto/hex.h"
#include "store/arrivals.h"

void host_slots_init(struct host_slots *h, struct clickhouse_store *s, struct arena *a)
{
    *h = (struct host_slots){.s = s, .arena = a};
    hashmap_init(&h->by_slot, 0);
}

void host_slots_done(struct host_slots *h)
{
    hashmap_clear(&h->by_slot);
}

static enum profd_status take_host(struct host_slots *h, struct row_reader *rows, struct profd_error *e)
{
    uint8_t identity[STORE_HOST_SIZE];
    char text[2 * STORE_HOST_SIZE + 1];
    rows_fixed(rows, identity, sizeof identity);
    const uint32_t slot = rows_u32(rows);
    const char *name = rows_copy(rows, h->arena);
    hex_put(text, identity, sizeof identity);
    const struct host_slot x = {arena_copy(h->arena, text, sizeof text - 1), name};
    if (rows->cut) {
        return engine_rows_check(rows, "hosts", e);
    }
    if (!x.identity || !name) {
        return profd_no_memory(e);
    }
    return hashmap_find(&h->by_slot, &slot, sizeof slot) || hashmap_put(&h->by_slot, &slot, sizeof slot, &x, sizeof x)
               ? PROFD_OK
               : profd_no_memory(e);
}

static enum profd_status load(struct host_slots *h, struct profd_error *e)
{
    struct row_reader rows;
    enum profd_status status = engine_query(h->s, &rows, e,
                                            "SELECT identity, argMax(slot, number), argMax(name, number) FROM host "
                                            "GROUP BY identity ORDER BY identity");
    if (status != PROFD_OK) {
        return status;
    }
    while (status == PROFD_OK && rows_more(&rows)) {
        status = take_host(h, &rows, e);
    }
    rows_close(&rows);
    h->loaded = status == PROFD_OK;
    return status;
}

enum profd_status host_slots_find(struct host_slots *h, uint32_t slot, const struct host_slot **out,
                                  struct profd_error *e)
{
    const enum profd_status status = h->loaded ? PROFD_OK : load(h, e);
    if (status != PROFD_OK) {
        return status;
    }
    *out = hashmap_find(&h->by_slot, &slot, sizeof slot);
    return *out ? PROFD_OK
                : profd_error_set(e, PROFD_BUSY,
                                  "store: the servers do not know the host of slot %u, which has sent "
                                  "segments",
                                  slot);
}
