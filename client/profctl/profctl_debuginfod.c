#include "profctl/profctl_debuginfod.h"

#include <elfutils/debuginfod.h>
#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define TIMEOUT_USUAL 120
#define TIMEOUT_MOST 86400

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

static const char *const KINDS[] = {"debug file", "executable", "source file"};

static enum profd_status fail(const struct transfer *t, int why, const struct debuginfod_file *file,
                              struct profd_error *e)
{
    const char *servers = getenv("DEBUGINFOD_URLS"), *kind = KINDS[file->kind], *build_id = file->build_id;
    if (t->large || why == EFBIG) {
        return profd_error_set(e, PROFD_TOO_LARGE, "%s: the %s of build %.12s has more than %lu MiB", servers, kind,
                               build_id, DEBUGINFOD_SIZE_MAX >> 20);
    }
    if (t->late || why == ETIME || why == ETIMEDOUT) {
        return profd_error_set(e, PROFD_TIMEOUT,
                               "%s: the %s of build %.12s did not arrive within %u s; --timeout allows more", servers,
                               kind, build_id, file->seconds);
    }
    return why == ENOENT ? profd_error_set(e, PROFD_NOT_FOUND, "%s: has no %s of build %.12s", servers, kind, build_id)
                         : profd_error_set(e, PROFD_UNAVAILABLE, "%s: cannot fetch the %s of build %.12s: %s", servers,
                                           kind, build_id, strerror(why));
}

enum profd_status debuginfod_fetch(const struct debuginfod_file *file, char **path, struct profd_error *e)
{
    struct transfer t = {.end = now() + (time_t)file->seconds};
    if (file->url && setenv("DEBUGINFOD_URLS", file->url, 1) != 0) {
        return profd_error_set(e, PROFD_NO_MEMORY, "no memory for %s", file->url);
    }
    const char *servers = getenv("DEBUGINFOD_URLS");
    if (!servers || servers[strspn(servers, " ")] == '\0') {
        return profd_error_set(e, PROFD_USAGE, "there is no debuginfod server; set DEBUGINFOD_URLS, or use --url URL");
    }
    debuginfod_client *client = debuginfod_begin();
    if (!client) {
        return profd_error_set(e, PROFD_NO_MEMORY, "no memory for a debuginfod client");
    }
    debuginfod_set_user_data(client, &t);
    debuginfod_set_progressfn(client, on_progress);
    const unsigned char *id = (const unsigned char *)file->build_id;
    int fd = file->kind == DEBUGINFOD_DEBUG        ? debuginfod_find_debuginfo(client, id, 0, path)
             : file->kind == DEBUGINFOD_EXECUTABLE ? debuginfod_find_executable(client, id, 0, path)
                                                   : debuginfod_find_source(client, id, 0, file->source, path);
    debuginfod_end(client);
    if (fd < 0) {
        return fail(&t, -fd, file, e);
    }
    close(fd);
    return PROFD_OK;
}

enum profd_status debuginfod_read_timeout(const struct profctl_call *call, unsigned *seconds, struct profd_error *e)
{
    const char *timeout = profctl_value(call, "timeout");
    char *end = NULL;
    unsigned long value = timeout ? strtoul(timeout, &end, 10) : TIMEOUT_USUAL;
    if (timeout && (*timeout < '0' || *timeout > '9' || *end || value < 1 || value > TIMEOUT_MOST)) {
        return profd_error_set(e, PROFD_USAGE, "%s: --timeout \"%s\" is not a number of seconds from 1 to %d",
                               call->verb->name, timeout, TIMEOUT_MOST);
    }
    *seconds = (unsigned)value;
    return PROFD_OK;
}
