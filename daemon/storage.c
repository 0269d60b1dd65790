/* Opens the database in the state directory. */
#include "server_internal.h"
#include "writer/database.h"

enum profd_status server_open_storage(struct server *s, struct profd_error *e)
{
    TRY(database_open(s->config->state_dir, s->lock_fd, &s->write_store, &s->salt, e));

    /* If the lock file is missing, an older daemon could start on the same data, so this one must not write. */
    char path[4096];
    TRY(state_dir_lock_path(s->config->state_dir, path, sizeof path, e));

    return store_sqlite_watch(s->write_store, path, s->lock_fd, e);
}

void server_close_storage(struct server *s)
{
    if (s->write_store) {
        database_note_end(s->config->state_dir, s->lock_fd, s->write_store, s->salt);
    }
    store_close(s->write_store);
    s->write_store = NULL;
}

void server_mark_damaged(struct server *s, bool unwritable)
{
    database_mark_damaged(s->config->state_dir, s->lock_fd, unwritable);
}
