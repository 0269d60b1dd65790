/* The servers of a cluster, each for itself: inserts into tables of which every shard has all rows. */
#ifndef PROFD_CLICKHOUSE_MEMBERS_H
#define PROFD_CLICKHOUSE_MEMBERS_H

#include <stdbool.h>
#include <stddef.h>

#include "clickhouse/engine_internal.h"

/* Connects to one of the address's servers, as clickhouse_open; clickhouse_close ends it. */
enum profd_status engine_open_server(const struct clickhouse_store *s, unsigned server, struct clickhouse **out,
                                     struct profd_error *e);
/* True of a table of which each shard has a part; of others every server has all rows. */
bool engine_is_spread(const char *table, size_t size);
/* Inserts into a table that is not spread on a server of each shard. BUSY if a shard has none that can be asked: some
 * may have stored it. REFUSED: the address names no server of a shard. */
enum profd_status engine_insert_everywhere(struct clickhouse_store *s, const char *statement, const struct buffer *rows,
                                           struct profd_error *e);
#endif
