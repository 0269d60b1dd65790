#include "profctl/run_place.h"

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "proto/uncounted.h"

#define SOCKET_PATH_MAX 107
#define ONLY_GLIBC "/$LIB"

/* folder + name into out, if that is a file that can be read. */
static bool library_try(const char *folder, const char *name, char out[RUN_PLACE_SIZE])
{
    int n = snprintf(out, RUN_PLACE_SIZE, "%s%s", folder, name);
    return n > 0 && n < RUN_PLACE_SIZE && access(out, R_OK) == 0;
}

enum profd_status run_place_library(char out[RUN_PLACE_SIZE], struct profd_error *e)
{
    char self[4096], path[RUN_PLACE_SIZE];
    ssize_t n = readlink("/proc/self/exe", self, sizeof self - 1);
    self[n > 0 ? n : 0] = '\0';
    char *slash = strrchr(self, '/');
    if (slash) {
        *slash = '\0';
    }
    if (!(slash && library_try(self, "/libprofd-collect.so", path)) &&
        !(slash && library_try(self, "/../lib/libprofd-collect.so." PROFD_COLLECT_ABI, path)) &&
        !library_try(PROFD_LIBDIR, "/libprofd-collect.so." PROFD_COLLECT_ABI, path)) {
        return profd_error_set(e, PROFD_NO_INPUT, "run: libprofd-collect.so is neither beside profctl (%s) nor in %s",
                               self, PROFD_LIBDIR);
    }
    if (strpbrk(path, " :\t\n")) {
        return profd_error_set(e, PROFD_REFUSED, "run: LD_PRELOAD cannot contain a path with a space or colon: %s",
                               path);
    }
    /* Only glibc's loader replaces $LIB. musl's finds no such file and goes on; it would load the collector, find that
     * a function of glibc is missing, and end the program. */
    const char *only =
        dlopen(ONLY_GLIBC "/libc.so.6", RTLD_LAZY | RTLD_NOLOAD) && path[0] == '/' ? ONLY_GLIBC UNCOUNTED_TO_ROOT : "";
    const char *before = getenv("LD_PRELOAD");
    int written =
        snprintf(out, RUN_PLACE_SIZE, "%s%s%s%s", only, path, before && *before ? ":" : "", before ? before : "");
    if (written < 0 || written >= RUN_PLACE_SIZE) {
        return profd_error_set(e, PROFD_TOO_LARGE, "run: LD_PRELOAD has over %d bytes", RUN_PLACE_SIZE);
    }
    return PROFD_OK;
}

enum profd_status run_place_socket(const char *text, char out[RUN_PLACE_SIZE], struct profd_error *e)
{
    char folder[4096] = "";
    const char *path = strncmp(text, "unix:", 5) == 0 ? text + 5 : text;
    if (*path == '\0') {
        return profd_error_set(e, PROFD_USAGE, "run: the path of the socket is empty");
    }
    if (path[0] != '/' && !getcwd(folder, sizeof folder)) {
        return profd_error_set(e, PROFD_USAGE, "run: --socket %s: the path of the current directory is unknown", path);
    }
    int n = snprintf(out, RUN_PLACE_SIZE, "%s%s%s", folder, folder[0] ? "/" : "", path);
    if (n < 0 || n > SOCKET_PATH_MAX) {
        return profd_error_set(e, PROFD_USAGE, "run: the path of the socket has %d bytes; the limit is %d: %s", n,
                               SOCKET_PATH_MAX, path);
    }
    return PROFD_OK;
}
