/* Opens what the daemon stores: the database in its state directory, or the tables on servers of ClickHouse that the
 * key store names. */
#include <stdlib.h>
#include <sys/stat.h>

#include "clickhouse/opener.h"
#include "server_internal.h"
#include "writer/database.h"
#include "writer/state_dir.h"

/* If the lock file is missing, an older daemon could start on the same data, so this one must not write. */
static enum profd_status storage_watch_lock(struct server *s, struct profd_error *e)
{
    char path[4096];
    enum profd_status status = state_dir_lock_path(s->config->state_dir, path, sizeof path, e);

    return status ? status : store_sqlite_watch(s->write_store, path, s->lock_fd, e);
}

static enum profd_status storage_open_database(struct server *s, struct profd_error *e)
{
    enum profd_status status = database_open(s->config->state_dir, s->lock_fd, &s->write_store, &s->salt, e);

    if (!status) {
        status = storage_watch_lock(s, e);
    }
    s->database = store_sqlite_opener(s->path);
    s->opener = &s->database.base;
    return status;
}

/* What the configuration must say of a daemon that keeps nothing itself. */
static enum profd_status storage_check_config(const struct server *s, struct profd_error *e)
{
    struct stat st;

    if (s->config->relay) {
        return profd_error_set(e, PROFD_CONFIG,
                               "store and relay: what is in ClickHouse is not relayed to another centre");
    }
    if (!stat(s->path, &st)) {
        return profd_error_set(e, PROFD_CONFIG,
                               "store %s: the data of %s would not be shown: import it with \"profctl clickhouse "
                               "import\", then move it out of the state directory",
                               s->config->values[CONFIG_store], s->path);
    }
    return PROFD_OK;
}

static enum profd_status storage_open_servers(struct server *s, struct profd_error *e)
{
    char *const *values = s->config->values;
    enum profd_status status = storage_check_config(s, e);

    if (status) {
        return status;
    }
    s->servers = calloc(1, sizeof *s->servers);
    if (!s->servers) {
        return profd_no_memory(e);
    }
    status = clickhouse_opener_init(s->servers, values[CONFIG_store], values[CONFIG_store_password],
                                    values[CONFIG_store_ca], e);
    if (status) {
        return profd_error_wrap(e, status, "store");
    }
    s->opener = &s->servers->base;
    return clickhouse_opener_open_writer(s->servers, &s->write_store, e);
}

enum profd_status server_open_storage(struct server *s, struct profd_error *e)
{
    char *const *values = s->config->values;

    if (values[CONFIG_store]) {
        return storage_open_servers(s, e);
    }
    if (values[CONFIG_store_password] || values[CONFIG_store_ca]) {
        return profd_error_set(e, PROFD_CONFIG, "store-password and store-ca are for the servers that store names");
    }
    return storage_open_database(s, e);
}

void server_close_storage(struct server *s)
{
    if (s->write_store && !s->servers) {
        database_note_end(s->config->state_dir, s->lock_fd, s->write_store, s->salt);
    }
    store_close(s->write_store);
    s->write_store = NULL;
}

void server_mark_damaged(struct server *s)
{
    if (!s->servers) {
        database_mark_damaged(s->config->state_dir, s->lock_fd);
    }
}
