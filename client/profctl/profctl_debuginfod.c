#include "profctl/profctl_debuginfod.h"

#include <elfutils/debuginfod.h>
#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "proto/late.h"

#define TIMEOUT_USUAL 120
#define TIMEOUT_MOST 86400

static struct {
    __typeof__(debuginfod_begin) *begin;
    __typeof__(debuginfod_end) *end;
    __typeof__(debuginfod_set_user_data) *set_user_data;
    __typeof__(debuginfod_get_user_data) *get_user_data;
    __typeof__(debuginfod_set_progressfn) *set_progressfn;
    __typeof__(debuginfod_find_debuginfo) *find_debuginfo;
    __typeof__(debuginfod_find_executable) *find_executable;
    __typeof__(debuginfod_find_source) *find_source;
} library;
static const char *const names[] = {"debuginfod_begin",           "debuginfod_end",
                                    "debuginfod_set_user_data",   "debuginfod_get_user_data",
                                    "debuginfod_set_progressfn",  "debuginfod_find_debuginfo",
                                    "debuginfod_find_executable", "debuginfod_find_source"};

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
    struct transfer *t = library.get_user_data(client);
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
    TRY(late_load("libdebuginfod.so.1", names, COUNT(names), &library, e));
    debuginfod_client *client = library.begin();
    if (!client) {
        return profd_error_set(e, PROFD_NO_MEMORY, "no memory for a debuginfod client");
    }
    library.set_user_data(client, &t);
    library.set_progressfn(client, on_progress);
    const unsigned char *id = (const unsigned char *)file->build_id;
    int fd = file->kind == DEBUGINFOD_DEBUG        ? library.find_debuginfo(client, id, 0, path)
             : file->kind == DEBUGINFOD_EXECUTABLE ? library.find_executable(client, id, 0, path)
                                                   : library.find_source(client, id, 0, file->source, path);
    library.end(client);
    if (fd < 0) {
        return fail(&t, -fd, file, e);
    }
    close(fd);
    return PROFD_OK;
}

enum profd_status debuginfod_read_timeout(const struct profctl_call *call, unsigned *seconds, struct profd_error *e)
{
    const char *timeout = profctl_value(call, "timeout");
    unsigned long value = TIMEOUT_USUAL;
    if (timeout && !profctl_number(timeout, 1, TIMEOUT_MOST, &value)) {
        return profd_error_set(e, PROFD_USAGE, "%s: --timeout \"%s\" is not a number of seconds from 1 to %d",
                               call->verb->name, timeout, TIMEOUT_MOST);
    }
    *seconds = (unsigned)value;
    return PROFD_OK;
}
