#include "clickhouse/everywhere.h"

#include <inttypes.h>
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

enum profd_status engine_check_everywhere(struct clickhouse_store *s, const char *table, const char *where,
                                          struct profd_error *e)
{
    uint64_t all = 0, found = 0;
    char statement[512];
    enum profd_status status = PROFD_OK;
    if (!s->address.cluster[0]) {
        return PROFD_OK;
    }
    (void)snprintf(statement, sizeof statement, "SELECT count() FROM %s_local WHERE %s", table, where);
    for (unsigned i = 0; i < s->address.server_count && status == PROFD_OK; i++) {
        char *reply = NULL;
        status = ask_server(s, i, statement, &reply, e);
        found += status == PROFD_OK ? strtoull(reply, NULL, 10) : 0;
        free(reply);
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
