#include "clickhouse/hosts.h"

#include "clickhouse/fleet.h"
#include "proto/hex.h"

void host_slots_init(struct host_slots *h, struct clickhouse_store *s, struct arena *a)
{
    *h = (struct host_slots){.s = s, .arena = a};
    hashmap_init(&h->by_slot, 0);
}

void host_slots_done(struct host_slots *h)
{
    hashmap_clear(&h->by_slot);
}

static enum profd_status load(struct host_slots *h, struct profd_error *e)
{
    struct engine_host *list;
    size_t n = 0;
    enum profd_status status = engine_load_hosts(h->s, h->arena, NULL, 0, &list, &n, e);
    for (size_t i = 0; status == PROFD_OK && i < n; i++) {
        char text[2 * STORE_HOST_SIZE + 1];
        hex_put(text, list[i].identity, sizeof list[i].identity);
        const struct host_slot x = {arena_copy(h->arena, text, sizeof text - 1), list[i].name};
        const uint32_t slot = list[i].slot;
        if (!x.identity || (!hashmap_find(&h->by_slot, &slot, sizeof slot) &&
                            !hashmap_put(&h->by_slot, &slot, sizeof slot, &x, sizeof x))) {
            status = profd_no_memory(e);
        }
    }
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
                                  "store: the servers do not know the host with number %u, which has sent segments",
                                  slot);
}
