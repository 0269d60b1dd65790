/* Memories that the service manager kept while the daemon was away. */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "log/log.h"
#include "live/live_internal.h"

static enum profd_status reclaim_one(struct live *l, const struct listen_kept *kept, struct profd_error *e)
{
    uint8_t instance[ATTACH_INSTANCE_SIZE];
    struct attach_origin origin;
    struct live_process *a;
    enum peer_process state;
    uint64_t started;
    uint32_t uid, pid;
    int pidfd;
    enum profd_status status;

    if (!fdstore_parse_name(kept->name, instance, &uid, &pid, &started)) {
        return profd_error_set(e, PROFD_REFUSED, "the service manager passed a descriptor with the unknown name \"%s\"",
                               kept->name);
    }
    origin_of(l, pid, &origin);
    origin.started = started;
    status = process_new(l, uid, &origin, kept->fd, &a, e);
    if (status) {
        return status;
    }
    if (memcmp(instance, a->instance, sizeof instance) != 0 || table_find(l, uid, instance) || table_find_same(l, a) ||
        !table_insert(l, a)) {
        process_discard(a);
        fdstore_say_drop(kept->name);
        return PROFD_OK;
    }
    a->kept = true;
    l->kept++;
    state = search_open_process(&origin, &pidfd);
    exits_watch(l, a, state, pidfd);
    harvest_want(l, a, false);
    return PROFD_OK;
}

void live_take_back(struct live *l, struct listen_kept *kept, size_t n)
{
    struct profd_error e;

    for (size_t i = 0; i < n; i++) {
        if (reclaim_one(l, &kept[i], &e)) {
            log_write(LOG_LEVEL_WARNING, "live process", "%s", e.sentence);
            close(kept[i].fd);
            fdstore_say_drop(kept[i].name);
        }
    }
    if (l->count) {
        log_write(LOG_LEVEL_NOTICE, NULL, "%zu live processes restored from the service manager", l->count);
    }
    free(kept);
}
