/* Tombstones in ClickHouse: what was deleted, for all centres (store/tombstones.h). */
#ifndef PROFD_TIER_TOMBSTONE_H
#define PROFD_TIER_TOMBSTONE_H

#include <stddef.h>
#include <stdint.h>

#include "proto/status.h"
#include "store/store.h"

struct clickhouse;

/* A deletion of a program. */
struct tombstone_order {
    const char *build;
    uint8_t centre[STORE_CENTRE_SIZE]; /* this one */
    uint64_t block;                    /* the last number that it gave to a block */
    int64_t deleted;                   /* ns */
    size_t tenant_count;
    const char *const *tenants; /* that have data of it here, as store_each_owner names them */
};

/* Writes the tombstones of a deletion: for each tenant one for this centre, and unless it is a user of this machine,
 * for every other centre of the manifest one with its last block. On OK they are durable, and *out has them, in the
 * arena, for store_bury. Blocks that become visible while it runs are covered, too. Statuses as of clickhouse_insert;
 * then some may be written, and it may be repeated. */
enum profd_status tombstone_write(struct clickhouse *c, const struct tombstone_order *order, struct arena *a,
                                  struct store_tombstone **out, size_t *count, struct profd_error *e);
/* Writes the cover of each tombstone that store_bury found a later block of (beyond), unless the list has the cover. */
enum profd_status tombstone_cover(struct clickhouse *c, const struct store_tombstone *list, size_t n,
                                  struct profd_error *e);
/* Reads the tombstones for store_bury into the arena. *known: how many there were when they were read last; if there
 * are as many now, *count is 0. PROTOCOL: also a text that is no tenant or build-id. */
enum profd_status tombstone_read(struct clickhouse *c, struct arena *a, uint64_t *known, struct store_tombstone **out,
                                 size_t *count, struct profd_error *e);

#endif
