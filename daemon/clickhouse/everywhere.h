/* Statements that each server runs for itself, such as removing partitions of its tables. */
#ifndef PROFD_CLICKHOUSE_EVERYWHERE_H
#define PROFD_CLICKHOUSE_EVERYWHERE_H

#include "clickhouse/engine_internal.h"

/* What follows the name of a table in that of the server's own part of it. */
const char *engine_local(const struct clickhouse_store *s, const char *table);
/* Runs a statement on every server of the handle's address. A server that cannot be asked is BUSY; it may have run on
 * others, and is one that may be repeated. */
enum profd_status engine_run_everywhere(struct clickhouse_store *s, const char *statement, struct profd_error *e);
/* The sum of the numbers that a query gives on every server of the handle's address. BUSY as before. */
enum profd_status engine_sum_everywhere(struct clickhouse_store *s, uint64_t *out, struct profd_error *e,
                                        const char *format, ...) __attribute__((format(printf, 4, 5)));
/* REFUSED unless the servers of the address have all rows of the table that a condition selects: the address must name
 * a server of each shard. */
enum profd_status engine_check_everywhere(struct clickhouse_store *s, const char *table, const char *where,
                                          struct profd_error *e);

#endif
