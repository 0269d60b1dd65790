/* Statements that each server runs for itself, such as removing partitions of its tables. */
#ifndef PROFD_CLICKHOUSE_EVERYWHERE_H
#define PROFD_CLICKHOUSE_EVERYWHERE_H

#include "clickhouse/engine_internal.h"

/* True of a table of which each shard has a part; of others every server has all rows. */
bool engine_is_spread(const char *table, size_t size);
/* Inserts into a table that is not spread on a server of each shard. BUSY if a shard has none that can be asked: some
 * may have stored it. REFUSED: the address names no server of a shard. */
enum profd_status engine_insert_everywhere(struct clickhouse_store *s, const char *statement, const struct buffer *rows,
                                           struct profd_error *e);
/* Closes what it has connected to. */
void engine_close_members(struct clickhouse_store *s);
/* What follows the name of a table in that of the server's own part of it. */
const char *engine_local(const struct clickhouse_store *s, const char *table);
/* Runs a statement on every server of the handle's address. A server that cannot be asked is BUSY; it may have run on
 * others, and is one that may be repeated. */
enum profd_status engine_run_everywhere(struct clickhouse_store *s, const char *statement, struct profd_error *e);
/* REFUSED unless the servers of the address have all rows of the table that a condition selects: the address must name
 * a server of each shard. */
enum profd_status engine_check_everywhere(struct clickhouse_store *s, const char *table, const char *where,
                                          struct profd_error *e);

#endif
