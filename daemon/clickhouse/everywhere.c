#include "clickhouse/everywhere.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "clickhouse/members.h"

const char *engine_local(const struct clickhouse_store *s, const char *table)
{
    return s->address.cluster[0] && engine_is_spread(table, strlen(table)) ? "_local" : "";
}

/* Runs a statement on one server; its reply is freed by the caller. */
static enum profd_status ask_server(struct clickhouse_store *s, unsigned server, const char *statement, char **reply,
                                    struct profd_error *e)
{
    struct clickhouse *c;
    enum profd_status status = engine_open_server(s, server, &c, e);
    if (status != PROFD_OK) {
        return status;
    }
    status = clickhouse_use(c, &s->address, e);
    if (status == PROFD_OK) {
        status = clickhouse_ask(c, statement, reply, e);
    }
    clickhouse_close(c);
    return status == PROFD_OK || status == PROFD_NO_MEMORY ? status : profd_error_wrap(e, PROFD_BUSY, "store");
}

enum profd_status engine_run_everywhere(struct clickhouse_store *s, const char *statement, struct profd_error *e)
{
    enum profd_status status = PROFD_OK;
    for (unsigned i = 0; i < s->address.server_count && status == PROFD_OK; i++) {
        char *reply = NULL;
        status = ask_server(s, i, statement, &reply, e);
        free(reply);
    }
    return status;
}

enum profd_status engine_sum_everywhere(struct clickhouse_store *s, uint64_t *out, struct profd_error *e,
                                        const char *format, ...)
{
    char statement[512];
    va_list arguments;
    enum profd_status status = PROFD_OK;
    va_start(arguments, format);
    const int n = vsnprintf(statement, sizeof statement, format, arguments);
    va_end(arguments);
    if (n < 0 || n >= (int)sizeof statement) {
        return profd_error_set(e, PROFD_INTERNAL, "a statement for ClickHouse has %d bytes", n);
    }
    *out = 0;
    for (unsigned i = 0; i < s->address.server_count && status == PROFD_OK; i++) {
        char *reply = NULL;
        status = ask_server(s, i, statement, &reply, e);
        *out += status == PROFD_OK ? strtoull(reply, NULL, 10) : 0;
        free(reply);
    }
    return status;
}

/* What the servers of the address have of a table, by shard: replicas of one have the same rows. */
struct shard_rows {
    unsigned shard;
    uint64_t rows;
};

/* Adds a server's rows, if no replica has more. */
static void add_shard(struct shard_rows *list, unsigned *n, unsigned shard, uint64_t rows)
{
    unsigned i = 0;
    while (i < *n && list[i].shard != shard) {
        i++;
    }
    if (i == *n) {
        list[(*n)++] = (struct shard_rows){.shard = shard};
    }
    list[i].rows = rows > list[i].rows ? rows : list[i].rows;
}

enum profd_status engine_check_everywhere(struct clickhouse_store *s, const char *table, const char *where,
                                          struct profd_error *e)
{
    struct shard_rows shards[CLICKHOUSE_SERVERS_MOST];
    uint64_t all = 0, found = 0;
    unsigned n = 0;
    char statement[512 + CLICKHOUSE_NAME_MAX];
    enum profd_status status = PROFD_OK;
    if (!s->address.cluster[0]) {
        return PROFD_OK;
    }
    (void)snprintf(statement, sizeof statement,
                   "SELECT (SELECT max(shard_num) FROM system.clusters WHERE cluster = '%s' AND is_local), count() "
                   "FROM %s_local WHERE %s",
                   s->address.cluster, table, where);
    for (unsigned i = 0; i < s->address.server_count && status == PROFD_OK; i++) {
        char *reply = NULL, *end;
        status = ask_server(s, i, statement, &reply, e);
        if (status == PROFD_OK) {
            const unsigned shard = (unsigned)strtoul(reply, &end, 10);
            add_shard(shards, &n, shard, strtoull(end, NULL, 10));
        }
        free(reply);
    }
    for (unsigned i = 0; i < n; i++) {
        found += shards[i].rows;
    }
    if (status == PROFD_OK) {
        status = engine_query_number(s, &all, e, "SELECT toUInt64(count()) FROM %s WHERE %s", table, where);
    }
    if (status == PROFD_OK && found < all) {
        status = profd_error_set(e, PROFD_REFUSED,
                                 "the %u servers of the store's URL have %" PRIu64 " of %" PRIu64
                                 " rows of table %s that are to be removed: name a server of each shard of cluster %s",
                                 s->address.server_count, found, all, table, s->address.cluster);
    }
    return status;
}
