/* The database server of the key store, if there is one. */
#include <stdlib.h>

#include "clickhouse/segments.h"
#include "server_internal.h"

enum profd_status server_open_remote(struct server *s, struct profd_error *e)
{
    char *const *values = s->config->values;

    if (!values[CONFIG_store]) {
        return values[CONFIG_store_password] || values[CONFIG_store_ca]
                   ? profd_error_set(e, PROFD_CONFIG, "store-password and store-ca are for the server that store names")
                   : PROFD_OK;
    }
    if (!s->config->gate) {
        return profd_error_set(e, PROFD_CONFIG,
                               "store %s: only a centre, with the key gate, keeps what hosts send on a server",
                               values[CONFIG_store]);
    }
    struct clickhouse_segments_maker *m = calloc(1, sizeof *m);
    if (!m) {
        return profd_no_memory(e);
    }
    enum profd_status status =
        clickhouse_segments_init(m, values[CONFIG_store], values[CONFIG_store_password], values[CONFIG_store_ca], e);
    if (status) {
        free(m);
        return profd_error_wrap(e, status, "store");
    }
    s->remote = &m->base;
    return store_sqlite_attach(s->write_store, s->remote, e);
}
