/* Makes the tier's tables, and tries every statement of the tier on each server. */
#ifndef PROFD_TIER_INIT_H
#define PROFD_TIER_INIT_H

#include "tier/clickhouse.h"

struct tier_made {
    unsigned count;
    struct {
        char place[300], version[32]; /* "https://host:port"; of ClickHouse */
        bool made;                    /* the tables were not there */
    } servers[CLICKHOUSE_SERVERS_MOST];
};

/* On all of the address's servers: makes database and tables that are not there, and runs every statement, which
 * changes nothing. May be repeated at any time; what a failure left, the next call completes. REFUSED: a server does
 * not run a statement, which the sentence names, or has other tables or another cluster. NEWER: tables of a newer
 * profd. Else as clickhouse_ask. */
enum profd_status tier_init(const struct clickhouse_address *address, const char *ca,
                            const struct clickhouse_limits *limits, struct tier_made *out, struct profd_error *e);

#endif
