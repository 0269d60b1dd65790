/* Where ClickHouse is and how the tier's tables are laid out on it, as a URL says:
 * https://[USER@]HOST[:PORT][,HOST[:PORT]...][/DATABASE][?cluster=NAME&replicated=1]. Pure.
 *
 * All names are restricted to characters that need no quoting in SQL, URLs and HTTP headers. */
#ifndef PROFD_BASE_CLICKHOUSE_ADDRESS_H
#define PROFD_BASE_CLICKHOUSE_ADDRESS_H

#include <stdbool.h>

#include "proto/status.h"

#define CLICKHOUSE_NAME_MAX 64      /* bytes of a user, a database, a cluster */
#define CLICKHOUSE_PASSWORD_MAX 256 /* bytes */
#define CLICKHOUSE_SERVERS_MOST 16u

struct clickhouse_server {
    char host[256]; /* a name or an address; IPv6 in brackets */
    unsigned port;  /* 8443 if the URL names none, with http 8123 */
};

struct clickhouse_address {
    char user[CLICKHOUSE_NAME_MAX + 1];     /* "default" if the URL names none */
    char database[CLICKHOUSE_NAME_MAX + 1]; /* "profd" if the URL names none */
    char cluster[CLICKHOUSE_NAME_MAX + 1];  /* "": the tables are on one server */
    unsigned server_count;                  /* at least 1 */
    struct clickhouse_server servers[CLICKHOUSE_SERVERS_MOST];
    bool tls, replicated;
    char password[CLICKHOUSE_PASSWORD_MAX + 2]; /* "": none. The URL has none */
};

/* Parses a URL; http:// is for loopback only. USAGE with the rule and the value; *out is then unchanged. */
enum profd_status clickhouse_parse_address(const char *url, struct clickhouse_address *out, struct profd_error *e);

/* The same address with one of its servers only. */
struct clickhouse_address clickhouse_pick_server(const struct clickhouse_address *a, unsigned server);

#endif
