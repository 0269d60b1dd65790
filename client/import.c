/* gmon.out to upload. */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "client/executable.h"
#include "client/upload.h"
#include "proto/gmon.h"
#include "proto/limits.h"

#define CALLER_BUCKET 16 /* glibc rounds callers down to this */

static bool range_meets(const struct object *o, uint64_t low, uint64_t high)
{
    for (uint32_t i = 0; i < o->range_count; i++) {
        if (low < o->ranges[i].high && high > o->ranges[i].low) {
            return true;
        }
    }
    return false;
}

/* low + (high − low)·i/bins without overflow. */
static uint64_t bin_low(const struct counts_histogram *h, uint64_t i)
{
    uint64_t span = h->high - h->low;
    return h->low + span / h->bins * i + span % h->bins * i / h->bins;
}

static enum profd_status histogram_check(const struct object *o, const char *path, const struct counts *c,
                                         const struct counts_histogram *h, struct profd_error *e)
{
    if (o->has_executable_start && o->has_etext) {
        uint64_t low = o->executable_start & ~(uint64_t)3, high = (o->etext + 3) & ~(uint64_t)3;
        if (h->low != low || h->high != high) {
            return profd_error_set(e, PROFD_WRONG_BUILD,
                                   "its histogram covers 0x%" PRIx64 "–0x%" PRIx64 ", but %s is profiled at 0x%" PRIx64
                                   "–0x%" PRIx64 ": it is not the executable that ran",
                                   h->low, h->high, path, low, high);
        }
        return PROFD_OK;
    }
    for (uint32_t i = h->first; i < h->first + h->used; i++) {
        uint64_t low = bin_low(h, c->bin_index[i]), high = bin_low(h, (uint64_t)c->bin_index[i] + 1);
        if (!range_meets(o, low, high > low ? high : low + 1)) {
            return profd_error_set(
                e, PROFD_WRONG_BUILD,
                "it has ticks at 0x%" PRIx64 ", where %s has no code: it is not the executable that ran", low, path);
        }
    }
    return PROFD_OK;
}

/* Histograms that span exactly what the symbols say prove that this is the executable. */
static bool proven(const struct object *o, const struct counts *c)
{
    return o->has_executable_start && o->has_etext && c->histogram_count > 0;
}

enum profd_status executable_check_counts(const struct object *o, const char *path, struct counts *c,
                                          struct profd_error *e)
{
    for (uint32_t i = 0; i < c->histogram_count; i++) {
        enum profd_status status = histogram_check(o, path, c, &c->histograms[i], e);
        if (status != PROFD_OK) {
            return status;
        }
    }
    for (uint32_t i = 0; i < c->arc_count; i++) {
        uint64_t from = c->from[i], to = c->to[i];
        bool from_inside = from <= UINT64_MAX - CALLER_BUCKET && range_meets(o, from, from + CALLER_BUCKET);
        bool to_inside = object_holds(o, to);
        if (from_inside && !to_inside && proven(o, c)) {
            /* A function of a shared library built with -pg: glibc subtracted the wrong load address, nobody can
             * know which one it was. */
            c->to_build[i] = COUNTS_NOWHERE;
            c->to[i] = 0;
        } else if (!from_inside || !to_inside) {
            return profd_error_set(e, PROFD_WRONG_BUILD,
                                   "it has a call from 0x%" PRIx64 " to 0x%" PRIx64 ", and %s has no code at 0x%" PRIx64
                                   ": it is not the executable that ran",
                                   from, to, path, from_inside ? to : from);
        }
    }
    return PROFD_OK;
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
    size_t got = 0, room = 0;
    if (!S_ISREG(s.st_mode)) {
        status = profd_error_set(e, PROFD_REFUSED, "not a regular file");
    } else if ((unsigned long long)s.st_size > LIMIT_COUNTS_RAW) {
        status = profd_error_set(e, PROFD_TOO_LARGE, "%lld bytes; a gmon.out of at most %u is taken",
                                 (long long)s.st_size, LIMIT_COUNTS_RAW);
    } else {
        room = (size_t)s.st_size;
        bytes = malloc(room + 1);
        if (!bytes) {
            status = profd_error_set(e, PROFD_NO_MEMORY, "no memory for %zu bytes", room);
        }
    }
    while (status == PROFD_OK && got < room) {
        ssize_t n = pread(fd, bytes + got, room - got, (off_t)got);
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
        status = executable_check_counts(o, profd_executable_path(x), &c, e);
    }
    if (status == PROFD_OK) {
        status = counts_to_upload(x, &c, end, out, e);
    }
    counts_done(&c);
    free(bytes);
    return status == PROFD_OK ? status : profd_error_wrap(e, status, "%s", gmon_path);
}
