/* The engine of store.h for centres that one machine cannot hold: everything is in the tables of a ClickHouse cluster
 * (schema/clickhouse), and any number of daemons store and answer beside each other. A handle keeps nothing that the
 * tables do not have, but for caches.
 *
 * Verbs that concern uploads of local processes, live processes and forwarding are refused: a host's own profd does
 * that. Backups are those of ClickHouse. */
#ifndef PROFD_CLICKHOUSE_ENGINE_H
#define PROFD_CLICKHOUSE_ENGINE_H

#include "clickhouse/address.h"
#include "store/store.h"

/* Opens a handle to tables that clickhouse_migrate has made. address and ca (as clickhouse_open) are copied. writable:
 * for storing; any number of such handles may be open, also of other daemons. A thread uses a handle at a time. BUSY:
 * the server cannot be asked now. REFUSED: the tables are not there, or of another version. */
enum profd_status store_clickhouse_open(const struct clickhouse_address *address, const char *ca, bool writable,
                                        struct store **out, struct profd_error *e);

#endif
