/* profd --restore FILE: offline, under the same lock as a running daemon. */
#include <sys/stat.h>
#include <unistd.h>

#include "admin/restore.h"
#include "log.h"
#include "server_parts.h"

static void server_restore_complain(void *context, const char *sentence)
{
    (void)context;
    log_write(LOG_LEVEL_ERROR, NULL, "%s", sentence);
}

enum profd_status server_finish_restore(const char *state_dir, bool *restored, struct profd_error *e)
{
    char kept[256] = "";
    enum profd_status status = restore_finish(state_dir, restored, kept, sizeof kept, e);

    if (!status && *restored)
        log_write(LOG_LEVEL_NOTICE, NULL, "the backup is in place in %s%s%s", state_dir,
                  *kept ? "; what was there is kept as " : "", kept);
    return status;
}

enum profd_status server_restore(const struct config *config, struct profd_error *e)
{
    static const struct restore_engine engine = {store_sqlite_open_writer, store_sqlite_check};
    const char *file = config->values[CONFIG_restore];
    bool restored = false;
    int lock;
    enum profd_status status = server_lock(config->state_dir, &lock, e);

    if (status)
        return status;
    umask(0077);
    status = restore_prepare(config->state_dir, file, &engine, server_restore_complain, NULL, e);
    if (!status)
        status = server_finish_restore(config->state_dir, &restored, e);
    close(lock);
    return status;
}
