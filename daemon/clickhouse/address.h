/* Where a ClickHouse server is and how profd's tables are laid out on it, as a URL says:
 * clickhouse://[USER@]HOST[:PORT][,HOST[:PORT]...][/DATABASE][?cluster=NAME&replicated=1&tls=1]. Pure but for
 * clickhouse_read_password.
 *
 * All names are restricted to characters that need no quoting in SQL, URLs and HTTP headers. */
#ifndef PROFD_CLICKHOUSE_ADDRESS_H
#define PROFD_CLICKHOUSE_ADDRESS_H

#include <stdbool.h>

#include "proto/status.h"

#define CLICKHOUSE_NAME_MAX 64      /* bytes of a user, a database, a cluster */
#define CLICKHOUSE_PASSWORD_MAX 256 /* bytes */
#define CLICKHOUSE_SERVERS_MOST 32u

struct clickhouse_server {
    char host[256]; /* a name or an address; IPv6 in brackets */
    unsigned port;  /* 8123 if the URL names none, with TLS 8443 */
};

struct clickhouse_address {
    char user[CLICKHOUSE_NAME_MAX + 1];     /* "default" if the URL names none */
    char database[CLICKHOUSE_NAME_MAX + 1]; /* "profd" if the URL names none */
    char cluster[CLICKHOUSE_NAME_MAX + 1];  /* "": the tables are on this server alone */
    unsigned server_count;                  /* at least 1 */
    struct clickhouse_server servers[CLICKHOUSE_SERVERS_MOST];
    bool tls, replicated;
    char password[CLICKHOUSE_PASSWORD_MAX + 1]; /* "": none */
};

/* Parses a URL. USAGE with the rule and the value; *out is unchanged on failure. The password is "". O(length). */
enum profd_status clickhouse_parse_address(const char *url, struct clickhouse_address *out, struct profd_error *e);

/* The same with one of its servers only. */
struct clickhouse_address clickhouse_pick_server(const struct clickhouse_address *a, unsigned server);

/* Reads the password from the first line of a file. CONFIG if users other than the owner and the group may read or
 * write the file, if the line is empty, too long or not printable ASCII, or if the password would leave this machine
 * without TLS; NO_INPUT if the file cannot be read. */
enum profd_status clickhouse_read_password(const char *path, struct clickhouse_address *address, struct profd_error *e);

#endif
