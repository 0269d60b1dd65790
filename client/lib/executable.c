/* Executables in the client: opened once, read once, passed on by descriptor. */
#include "lib/executable.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "core/arena.h"
#include "elf/elf_debuglink.h"
#include "proto/limits.h"
#include "proto/whole.h"

/* Symbols and their names; what a worker may take too (limits.h). */
#define EXECUTABLE_MEMORY ((size_t)LIMIT_WORKER_MEMORY + 2 * (size_t)LIMIT_NAME_BYTES)

/* O_NONBLOCK: a FIFO must not hang us before fstat refuses it. */
static enum profd_status file_open(const char *path, int *out, struct profd_error *e)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);
    struct stat s;
    FAIL_IF(fd < 0, e, PROFD_NO_INPUT, "cannot open %s: %s", path, strerror(errno));
    enum profd_status status = PROFD_OK;
    if (fstat(fd, &s) != 0) {
        status = profd_error_set(e, PROFD_IO, "cannot stat %s: %s", path, strerror(errno));
    } else if (!S_ISREG(s.st_mode)) {
        status = profd_error_set(e, PROFD_REFUSED, "%s is not a regular file", path);
    } else if ((unsigned long long)s.st_size > LIMIT_OBJECT_BYTES) {
        status = profd_error_set(e, PROFD_TOO_LARGE, "%s has %lld bytes; the limit for an executable is %llu", path,
                                 (long long)s.st_size, LIMIT_OBJECT_BYTES);
    }
    if (status != PROFD_OK) {
        close(fd);
        return status;
    }
    *out = fd;
    return PROFD_OK;
}

/* The debug file of .gnu_debuglink where debuggers look for it, or the one that a distribution keeps by build-id; −1 if
 * there is none. It is optional, so nothing here is an error. */
static int debug_open(int fd, const char *path, const struct buildid *id)
{
    static const char *const places[][2] = {{"", ""}, {"", ".debug/"}, {"/usr/lib/debug", ""}};
    enum { PLACES = sizeof places / sizeof places[0] };
    struct elf_debuglink link = {.crc = 0};
    char candidate[PATH_MAX];
    const char *slash = strrchr(path, '/');
    const bool linked = slash && elf_read_debuglink(fd, &link, NULL) == PROFD_OK,
               hashed = strncmp(id->text, "sha256-", 7) == 0; /* not an id that others know */
    for (int i = linked ? 0 : PLACES; i < PLACES + !hashed; i++) {
        const int n = i < PLACES ? snprintf(candidate, sizeof candidate, "%s%.*s%s%s", places[i][0],
                                            (int)(slash - path + 1), path, places[i][1], link.name)
                                 : snprintf(candidate, sizeof candidate, "/usr/lib/debug/.build-id/%.2s/%s.debug",
                                            id->text, id->text + 2);
        int debug;
        if (n < 0 || (size_t)n >= sizeof candidate || strcmp(candidate, path) == 0 ||
            file_open(candidate, &debug, NULL) != PROFD_OK) {
            continue;
        }
        /* It fits by build-id; if the executable has none, by the checksum in .gnu_debuglink. */
        struct buildid other;
        uint32_t crc;
        if (hashed ? elf_read_crc(debug, LIMIT_OBJECT_BYTES, &crc, NULL) == PROFD_OK && crc == link.crc
                   : elf_read_id(debug, LIMIT_OBJECT_BYTES, &other, NULL) == PROFD_OK &&
                         strcmp(id->text, other.text) == 0) {
            return debug;
        }
        close(debug);
    }
    return -1;
}

bool executable_has_own_names(const struct profd_executable *x)
{
    const struct elf_read_options options = {.static_arcs = false, .demangle = false, .lines = false};
    struct object *object;
    struct arena *a = x->debug >= 0 ? arena_new(EXECUTABLE_MEMORY) : NULL;
    const bool own = x->debug < 0 || (a && elf_read(x->fd, -1, &options, a, &object, NULL) == PROFD_OK &&
                                      object->has_names && !object->only_dynamic);
    arena_free(a);
    return own;
}

enum profd_status profd_executable_open(const char *path, struct profd_executable **out, struct profd_error *e)
{
    struct profd_executable *x = calloc(1, sizeof *x);
    FAIL_IF(!x, e, PROFD_NO_MEMORY, "no memory to read %s", path);
    x->fd = x->debug = -1;
    enum profd_status status = file_open(path, &x->fd, e);
    if (status == PROFD_OK) {
        char *absolute = realpath(path, NULL);
        x->path = absolute && strlen(absolute) <= LIMIT_BUILD_NAME ? absolute : strdup(path);
        if (x->path != absolute) {
            free(absolute);
        }
        x->arena = arena_new(EXECUTABLE_MEMORY);
        x->gmon_check = x->arena ? ARENA_NEW(x->arena, struct gmon_check *) : NULL;
        status = x->path && x->gmon_check ? PROFD_OK : profd_no_memory(e);
    }
    if (status == PROFD_OK) {
        const struct elf_read_options options = {.static_arcs = false, .demangle = false, .lines = false};
        struct buildid id;
        status = elf_read_id(x->fd, LIMIT_OBJECT_BYTES, &id, e);
        if (status == PROFD_OK) {
            x->debug = debug_open(x->fd, x->path, &id);
            status = elf_read(x->fd, x->debug, &options, x->arena, &x->object, e);
        }
        status = status == PROFD_OK ? status : profd_error_wrap(e, status, "%s", path);
    }
    if (status != PROFD_OK) {
        profd_executable_free(x);
        return status;
    }
    *out = x;
    return PROFD_OK;
}

void profd_executable_free(struct profd_executable *x)
{
    if (!x) {
        return;
    }
    whole_close(x->fd);
    whole_close(x->debug);
    arena_free(x->arena);
    free(x->path);
    free(x);
}

const char *profd_executable_build_id(const struct profd_executable *x)
{
    return x->object->id.text;
}

const char *profd_executable_path(const struct profd_executable *x)
{
    return x->path;
}

bool profd_executable_has_names(const struct profd_executable *x)
{
    return x->object->has_names;
}

void profd_executable_include_code(struct profd_executable *x)
{
    x->code = true;
}

enum profd_status executable_read_object(const struct profd_executable *x, const struct elf_read_options *options,
                                         struct arena *a, struct object **out, struct profd_error *e)
{
    enum profd_status status = elf_read(x->fd, x->debug, options, a, out, e);
    return status == PROFD_OK ? status : profd_error_wrap(e, status, "%s", x->path);
}

enum profd_status executable_read_loads(const struct profd_executable *x, struct arena *a, struct elf_load **out,
                                        uint32_t *count, struct profd_error *e)
{
    enum profd_status status = elf_read_loads(x->fd, a, out, count, e);
    return status == PROFD_OK ? status : profd_error_wrap(e, status, "%s", x->path);
}

enum profd_status executable_read_gmon(const struct profd_executable *x, struct arena *a, struct elf_gmon *out,
                                       struct profd_error *e)
{
    enum profd_status status = elf_read_gmon(x->fd, x->debug, a, out, e);
    return status == PROFD_OK ? status : profd_error_wrap(e, status, "%s", x->path);
}

uint64_t executable_time(const struct profd_executable *x)
{
    struct stat s;
    if (fstat(x->fd, &s) != 0 || s.st_mtim.tv_sec <= 0) {
        return 0;
    }
    return (uint64_t)s.st_mtim.tv_sec * 1000000000u + (uint64_t)s.st_mtim.tv_nsec;
}

enum profd_status profd_executable_read_id(const char *path, char *id, size_t size, struct profd_error *e)
{
    int fd;
    struct buildid found;
    TRY(file_open(path, &fd, e));
    enum profd_status status = elf_read_id(fd, LIMIT_OBJECT_BYTES, &found, e);
    close(fd);
    if (status != PROFD_OK) {
        return profd_error_wrap(e, status, "%s", path);
    }
    size_t n = strlen(found.text) + 1;
    FAIL_IF(n > size, e, PROFD_USAGE, "a build-id of %zu bytes does not fit into %zu", n, size);
    memcpy(id, found.text, n);
    return PROFD_OK;
}

enum profd_status executable_dup_fds(const struct profd_executable *x, int fds[2], size_t *fd_count,
                                     struct profd_error *e)
{
    int copies[2] = {fcntl(x->fd, F_DUPFD_CLOEXEC, 0), -1};
    size_t n = 1;
    if (copies[0] >= 0 && x->debug >= 0) {
        copies[1] = fcntl(x->debug, F_DUPFD_CLOEXEC, 0);
        n = 2;
    }
    if (copies[0] < 0 || (n == 2 && copies[1] < 0)) {
        int why = errno;
        executable_close_fds(copies, n);
        return profd_error_set(e, PROFD_IO, "no descriptor for %s: %s", x->path, strerror(why));
    }
    memcpy(fds, copies, n * sizeof fds[0]);
    *fd_count = n;
    return PROFD_OK;
}

void executable_close_fds(const int *fds, size_t fd_count)
{
    for (size_t i = 0; i < fd_count; i++) {
        whole_close(fds[i]);
    }
}
