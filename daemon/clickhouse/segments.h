/* Segments of hosts as rows of ClickHouse (schema/clickhouse): what store/remote.h asks of a server. */
#ifndef PROFD_CLICKHOUSE_SEGMENTS_H
#define PROFD_CLICKHOUSE_SEGMENTS_H

#include "clickhouse/address.h"
#include "store/remote.h"

struct clickhouse_segments_maker {
    struct remote_maker base;
    struct clickhouse_address address;
    const char *ca; /* as clickhouse_open; outlives the maker */
};

/* Makes handles for the tables at a URL. password: file, NULL: there is none. Does not connect. Once in a process,
 * before it has threads. Errors as clickhouse_parse_address and clickhouse_read_password, but CONFIG for USAGE. */
enum profd_status clickhouse_segments_init(struct clickhouse_segments_maker *m, const char *url, const char *password,
                                           const char *ca, struct profd_error *e);

#endif
