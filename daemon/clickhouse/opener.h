/* Opens handles of the engine as the configuration says. */
#ifndef PROFD_CLICKHOUSE_OPENER_H
#define PROFD_CLICKHOUSE_OPENER_H

#include "clickhouse/address.h"
#include "store/opener.h"

struct clickhouse_opener {
    struct store_opener base;
    struct clickhouse_address address;
    const char *ca; /* as clickhouse_open; borrowed */
};

/* password: file, NULL: there is none. Does not connect. Once in a process, before it has threads. Errors as
 * clickhouse_parse_address and clickhouse_read_password, but CONFIG for USAGE. */
enum profd_status clickhouse_opener_init(struct clickhouse_opener *o, const char *url, const char *password,
                                         const char *ca, struct profd_error *e);
enum profd_status clickhouse_opener_open_writer(const struct clickhouse_opener *o, struct store **out,
                                                struct profd_error *e);

#endif
