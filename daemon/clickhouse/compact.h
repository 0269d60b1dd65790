/* What a handle remembers of the sums that it makes (store_compact). */
#ifndef PROFD_CLICKHOUSE_COMPACT_H
#define PROFD_CLICKHOUSE_COMPACT_H

struct compacting;

/* Accepts NULL. */
void compact_free(struct compacting *c);

#endif
