#include "profctl/profctl_debuginfod.h"

#include <elfutils/debuginfod.h>
#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

struct transfer {
    time_t end; /* of the monotonic clock */
    bool late, large;
};

static time_t now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return t.tv_sec;
}

/* libdebuginfod calls this at least once a second, before the server answers too. */
static int on_progress(debuginfod_client *client, long done, long size)
{
    struct transfer *t = debuginfod_get_user_data(client);
    t->late = t->late || now() >= t->end;
    t->large = t->large || done > (long)DEBUGINFOD_SIZE_MAX || size > (long)DEBUGINFOD_SIZE_MAX;
    return t->late || t->large;
}

static enum profd_status fail(const struct transfer *t, int why, const char *build_id, unsigned seconds,
                              struct profd_error *e)
{
    const char *servers = getenv("DEBUGINFOD_URLS");
    if (t->large || why == EFBIG) {
        return profd_error_set(e, PROFD_TOO_LARGE, "%s: the debug file of build %.12s has more than %lu MiB", servers,
                               build_id, DEBUGINFOD_SIZE_MAX >> 20);
    }
    if (t->late || why == ETIME || why == ETIMEDOUT) {
        return profd_error_set(e, PROFD_TIMEOUT,
                               "%s: the debug file of build %.12s did not arrive within %u s; --timeout allows more",
                               servers, build_id, seconds);
    }
    return why == ENOENT
               ? profd_error_set(e, PROFD_NOT_FOUND, "%s: has no debug file of build %.12s", servers, build_id)
               : profd_error_set(e, PROFD_UNAVAILABLE, "%s: cannot fetch the debug file of build %.12s: %s", servers,
                                 build_id, strerror(why));
}

enum profd_status debuginfod_fetch(const char *url, const char *build_id, unsigned seconds, char **path,
                                   struct profd_error *e)
{
    struct transfer t = {.end = now() + (time_t)seconds};
    if (url && setenv("DEBUGINFOD_URLS", url, 1) != 0) {
        return profd_error_set(e, PROFD_NO_MEMORY, "no memory for %s", url);
    }
    const char *servers = getenv("DEBUGINFOD_URLS");
    if (!servers || servers[strspn(servers, " ")] == '\0') {
        return profd_error_set(e, PROFD_USAGE,
                               "symbols: there is no debuginfod server; set DEBUGINFOD_URLS, or use --url URL");
    }
    debuginfod_client *client = debuginfod_begin();
    if (!client) {
        return profd_error_set(e, PROFD_NO_MEMORY, "no memory for a debuginfod client");
    }
    debuginfod_set_user_data(client, &t);
    debuginfod_set_progressfn(client, on_progress);
    int fd = debuginfod_find_debuginfo(client, (const unsigned char *)build_id, 0, path);
    debuginfod_end(client);
    if (fd < 0) {
        return fail(&t, -fd, build_id, seconds, e);
    }
    close(fd);
    return PROFD_OK;
}
