/* The list of hosts: those that have arrived and those that were enrolled. */
#include <stdlib.h>
#include <string.h>

#include "clickhouse/fleet.h"

/* What of an enrolment is in the list. */
struct enrolled {
    uint8_t host[STORE_HOST_SIZE];
    uint32_t tenant;
    const char *name, *machine, *version;
    int64_t not_after, revoked;
    bool arrived;
};

struct listing {
    struct clickhouse_store *s;
    struct arena *arena;
    struct store_fleet_host *list;
    size_t n;
    struct hashmap enrolled; /* identity → struct enrolled */
};

static bool read_enrolled(struct row_reader *r, struct arena *a, struct enrolled *x)
{
    rows_fixed(r, x->host, sizeof x->host);
    x->tenant = rows_u32(r);
    x->name = rows_copy(r, a);
    x->machine = rows_copy(r, a);
    x->version = rows_copy(r, a);
    x->not_after = rows_i64(r);
    x->revoked = rows_i64(r);
    return x->name && x->machine && x->version;
}

static enum profd_status load_enrolled(struct listing *l, struct profd_error *e)
{
    struct row_reader r = {.bytes = NULL};
    enum profd_status status = engine_query(l->s, &r, e,
                                            "SELECT identity, tenant, name, machine, version, not_after, revoked FROM "
                                            "enrolment FINAL ORDER BY number DESC LIMIT 1 BY identity");
    while (status == PROFD_OK && rows_more(&r)) {
        struct enrolled x = {.tenant = 0};
        const bool fine = read_enrolled(&r, l->arena, &x);
        status = engine_rows_check(&r, "enrolments", e);
        if (status == PROFD_OK && (!fine || !hashmap_put(&l->enrolled, x.host, sizeof x.host, &x, sizeof x))) {
            status = profd_no_memory(e);
        }
    }
    rows_close(&r);
    return status;
}

static enum profd_status add_arrived(struct listing *l, const struct engine_host *h, struct profd_error *e)
{
    struct enrolled *x = hashmap_find(&l->enrolled, h->identity, sizeof h->identity);
    struct store_fleet_host *out = &l->list[l->n++];
    *out = (struct store_fleet_host){.name = h->name,
                                     .machine = h->machine,
                                     .version = h->version,
                                     .other = h->other,
                                     .uid = h->uid,
                                     .has_enrolment = x != NULL,
                                     .not_after = x ? x->not_after : h->not_after,
                                     .revoked = x ? x->revoked : 0,
                                     .first = h->first,
                                     .last = h->last,
                                     .delivered = h->delivered,
                                     .restored = h->restored,
                                     .copied = h->copied};
    memcpy(out->host, h->identity, sizeof out->host);
    if (x) {
        x->arrived = true;
    }
    return engine_tenant_name(l->s, (uint32_t)store_tenant_id(h->uid), &out->tenant, e);
}

static enum profd_status add_enrolled(struct listing *l, const struct enrolled *x, struct profd_error *e)
{
    struct store_fleet_host *out = &l->list[l->n++];
    *out = (struct store_fleet_host){.name = x->name,
                                     .machine = x->machine,
                                     .version = x->version,
                                     .other = "",
                                     .uid = store_tenant_uid(x->tenant),
                                     .has_enrolment = true,
                                     .not_after = x->not_after,
                                     .revoked = x->revoked};
    memcpy(out->host, x->host, sizeof out->host);
    return engine_tenant_name(l->s, x->tenant, &out->tenant, e);
}

static int compare_hosts(const void *a, const void *b)
{
    const struct store_fleet_host *x = a, *y = b;
    const int names = strcmp(x->name, y->name);
    return names != 0 ? names : memcmp(x->host, y->host, sizeof x->host);
}

static enum profd_status load_list(struct listing *l, struct profd_error *e)
{
    struct engine_host *hosts;
    size_t n = 0, position = 0;
    const void *key;
    enum profd_status status = load_enrolled(l, e);
    if (status == PROFD_OK) {
        status = engine_load_hosts(l->s, l->arena, NULL, 0, &hosts, &n, e);
    }
    l->list = status == PROFD_OK ? ARENA_ARRAY(l->arena, n + l->enrolled.count + 1, struct store_fleet_host) : NULL;
    if (!l->list) {
        return status == PROFD_OK ? profd_no_memory(e) : status;
    }
    for (size_t i = 0; i < n && status == PROFD_OK; i++) {
        status = add_arrived(l, &hosts[i], e);
    }
    for (struct enrolled *x; status == PROFD_OK && (x = hashmap_next(&l->enrolled, &position, &key));) {
        status = x->arrived ? PROFD_OK : add_enrolled(l, x, e);
    }
    qsort(l->list, l->n, sizeof *l->list, compare_hosts);
    return status;
}

enum profd_status engine_each_host(struct store *base, bool (*each)(void *context, const struct store_fleet_host *host),
                                   void *context, struct profd_error *e)
{
    struct listing l = {.s = engine_self(base), .arena = arena_new(0)};
    hashmap_init(&l.enrolled, 0);
    const enum profd_status status = l.arena ? load_list(&l, e) : profd_no_memory(e);
    for (size_t i = 0; i < l.n && status == PROFD_OK; i++) {
        if (!each(context, &l.list[i])) {
            break;
        }
    }
    hashmap_clear(&l.enrolled);
    arena_free(l.arena);
    return status;
}
