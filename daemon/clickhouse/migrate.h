/* Makes profd's tables on a ClickHouse server, and brings those of an older profd to this version: numbered migrations,
 * as schema/clickhouse has them. */
#ifndef PROFD_CLICKHOUSE_MIGRATE_H
#define PROFD_CLICKHOUSE_MIGRATE_H

#include "clickhouse/address.h"
#include "clickhouse/client.h"
#include "proto/status.h"

struct clickhouse_migrated {
    unsigned before, after; /* versions of the tables; before is 0 if there were none */
    char server[32];        /* version of the server, as "18.16.1" */
};

/* Makes the database and its tables on this one server. In a cluster each server wants it; named: how many of them get
 * it, which must be all. Each migration is recorded
 * in the database after it was made, and may be made again: a call that failed is completed by the next.
 *
 * REFUSED: the server has no cluster of this name; it has replicas, but replicated is not set, or the server is not
 * configured for it; the database has tables, but not profd's; its tables were made for another layout. NEWER: they
 * were made by a newer profd. Otherwise as clickhouse_ask. */
enum profd_status clickhouse_migrate(struct clickhouse *c, const struct clickhouse_address *address, unsigned named,
                                     struct clickhouse_migrated *out, struct profd_error *e);

/* To a server with new tables of a cluster of which others have data: copies what every shard has whole, in the order
 * of the schema, so that table state, by which a server is complete, comes last. May be repeated. */
enum profd_status clickhouse_copy_tables(struct clickhouse *c, const struct clickhouse_address *address,
                                         struct profd_error *e);

#endif
