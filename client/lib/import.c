/* gmon.out to upload. */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "core/arena.h"
#include "core/bounds.h"
#include "lib/executable.h"
#include "lib/gmon_check.h"
#include "lib/upload.h"
#include "proto/gmon.h"
#include "proto/limits.h"

/* A callee outside of the executable, in a file that is proven to be of it, is a function of a shared library built
 * with -pg. glibc has subtracted the wrong load address, so the address means nothing: the callee is nowhere. */
static enum profd_status counts_check(const struct profd_executable *x, struct counts *c, struct profd_error *e)
{
    struct bounds bounds = {.count = 0};
    struct bounds_build build = {
        .bounds = &bounds, .id = profd_executable_build_id(x), .name = profd_executable_path(x)};
    const uint8_t *bytes = NULL;
    size_t size = 0;
    struct gmon_check *k = NULL;
    struct arena *a = arena_new(0);
    enum profd_status status = a ? bounds_encode(executable_object(x), a, &bytes, &size, e)
                                 : profd_error_set(e, PROFD_NO_MEMORY, "no memory for the ranges of an executable");
    if (status == PROFD_OK) {
        status = gmon_check_get(x, &k, e);
    }
    if (status == PROFD_OK) {
        status = gmon_check_executable(k, c, e);
    }
    if (status == PROFD_OK) {
        (void)bounds_open(bytes, size, &bounds); /* they were encoded here */
        status = bounds_check_counts(&build, 0, true, c, e);
    }
    if (status == PROFD_OK) {
        status = gmon_check_callees(k, c, e);
    }
    for (uint32_t i = 0; status == PROFD_OK && i < c->arc_count; i++) {
        if (!bounds_touch(&bounds, c->to[i], c->to[i] + 1)) {
            c->to_build[i] = COUNTS_NOWHERE;
            c->to[i] = 0;
        }
    }
    arena_free(a);
    return status;
}

/* The whole file into a new block; its end is the file's modification time. */
static enum profd_status gmon_read(const char *path, uint8_t **out, size_t *size, uint64_t *end, struct profd_error *e)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);
    struct stat s;
    if (fd < 0 || fstat(fd, &s) != 0) {
        int why = errno;
        if (fd >= 0) {
            close(fd);
        }
        return profd_error_set(e, PROFD_NO_INPUT, "cannot open: %s", strerror(why));
    }
    enum profd_status status = PROFD_OK;
    uint8_t *bytes = NULL;
    size_t got = 0, total = 0;
    if (!S_ISREG(s.st_mode)) {
        status = profd_error_set(e, PROFD_REFUSED, "not a regular file");
    } else if ((unsigned long long)s.st_size > LIMIT_COUNTS_RAW) {
        status = profd_error_set(e, PROFD_TOO_LARGE, "%lld bytes; the limit for a gmon.out is %u", (long long)s.st_size,
                                 LIMIT_COUNTS_RAW);
    } else {
        total = (size_t)s.st_size;
        bytes = malloc(total + 1);
        if (!bytes) {
            status = profd_error_set(e, PROFD_NO_MEMORY, "no memory for %zu bytes", total);
        }
    }
    while (status == PROFD_OK && got < total) {
        ssize_t n = pread(fd, bytes + got, total - got, (off_t)got);
        if (n > 0) {
            got += (size_t)n;
        } else if (n == 0) {
            break; /* it shrank: the parser says where it ends */
        } else if (errno != EINTR) {
            status = profd_error_set(e, PROFD_IO, "cannot read: %s", strerror(errno));
        }
    }
    close(fd);
    if (status != PROFD_OK) {
        free(bytes);
        return status;
    }
    *out = bytes;
    *size = got;
    *end = s.st_mtim.tv_sec > 0 ? (uint64_t)s.st_mtim.tv_sec * 1000000000u + (uint64_t)s.st_mtim.tv_nsec : 0;
    return PROFD_OK;
}

static enum profd_status counts_to_upload(const struct profd_executable *x, const struct counts *c, uint64_t end,
                                          struct profd_upload **out, struct profd_error *e)
{
    struct profd_upload *u;
    enum profd_status status = profd_upload_new(&u, e);
    if (status != PROFD_OK) {
        return status;
    }
    status = profd_upload_add_build(u, profd_executable_build_id(x), profd_executable_path(x), NULL, e);
    if (status == PROFD_OK) {
        status = upload_add_counts(u, c, e);
    }
    if (status != PROFD_OK) {
        profd_upload_free(u);
        return status;
    }
    profd_upload_set_inexact(u,
                             PROFD_INEXACT_THREADS_UNKNOWN | PROFD_INEXACT_CALLER_BUCKET | PROFD_INEXACT_BINS_16_BIT);
    profd_upload_set_window(u, 0, end);
    *out = u;
    return PROFD_OK;
}

enum profd_status profd_executable_import(const struct profd_executable *x, const char *gmon_path,
                                          struct profd_upload **out, struct profd_error *e)
{
    const struct object *o = executable_object(x);
    const struct gmon_format format = {.big_endian = o->big_endian, .pointer_size = o->bits / 8u};
    uint8_t *bytes = NULL;
    size_t size = 0;
    uint64_t end = 0;
    struct counts c = {0};
    enum profd_status status = gmon_read(gmon_path, &bytes, &size, &end, e);
    if (status == PROFD_OK) {
        status = gmon_parse(bytes, size, &format, &c, e);
    }
    if (status == PROFD_OK) {
        status = counts_check(x, &c, e);
    }
    if (status == PROFD_OK) {
        status = counts_to_upload(x, &c, end, out, e);
    }
    counts_done(&c);
    free(bytes);
    return status == PROFD_OK ? status : profd_error_wrap(e, status, "%s", gmon_path);
}
