#include "admin/reserve.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

static uint64_t reserve_allocated(const struct stat *st)
{
    return (uint64_t)st->st_blocks * 512;
}

enum profd_status reserve_open(struct reserve *r, const char *directory, struct profd_error *e)
{
    struct stat st;

    *r = (struct reserve){.state = RESERVE_GIVEN_UP};
    if (snprintf(r->path, sizeof r->path, "%s/reserve", directory) >= (int)sizeof r->path) {
        return profd_error_set(e, PROFD_TOO_LARGE, "the path of the state directory is too long");
    }
    if (!lstat(r->path, &st) && S_ISREG(st.st_mode) && st.st_size > 0 &&
        reserve_allocated(&st) >= (uint64_t)st.st_size) {
        r->state = RESERVE_HELD;
        r->bytes = (uint64_t)st.st_size;
    }
    return PROFD_OK;
}

bool reserve_measure(const struct reserve *r, uint64_t *available, uint64_t *size)
{
    char directory[sizeof r->path];
    struct statvfs fs;

    snprintf(directory, sizeof directory, "%.*s", (int)(strrchr(r->path, '/') - r->path), r->path);
    if (statvfs(*directory ? directory : "/", &fs)) {
        return false;
    }
    *available = (uint64_t)fs.f_bavail * fs.f_frsize;
    *size = (uint64_t)fs.f_blocks * fs.f_frsize;
    return true;
}

static void reserve_fail(struct reserve *r, int error)
{
    const bool full = error == ENOSPC || error == EDQUOT;

    r->state = full ? RESERVE_GIVEN_UP : RESERVE_MISSING;
    r->bytes = 0;
    profd_error_set(&r->why, full ? PROFD_FULL : PROFD_IO, "cannot allocate %s: %s", r->path, strerror(error));
}

/* Allocates blocks for that many bytes of the open file, and checks that they were allocated. */
static void reserve_allocate(struct reserve *r, int fd, uint64_t bytes)
{
    struct stat st;
    int error = posix_fallocate(fd, 0, (off_t)bytes);

    if (!error && (fsync(fd) || fstat(fd, &st))) {
        error = errno;
    }
    if (error) {
        (void)!ftruncate(fd, 0);
        reserve_fail(r, error);
    } else if (reserve_allocated(&st) < bytes) {
        (void)!ftruncate(fd, 0);
        r->state = RESERVE_MISSING;
        r->bytes = 0;
        profd_error_set(&r->why, PROFD_IO,
                        "%s has %llu bytes, but its file system allocated only %llu, so it is no reserve", r->path,
                        (unsigned long long)bytes, (unsigned long long)reserve_allocated(&st));
    } else {
        r->state = RESERVE_HELD;
        r->bytes = bytes;
    }
}

void reserve_take(struct reserve *r)
{
    uint64_t available, size, wanted;
    int fd;

    if (!reserve_measure(r, &available, &size)) {
        return;
    }
    wanted = size / RESERVE_PART < RESERVE_BYTES ? size / RESERVE_PART / 4096 * 4096 : RESERVE_BYTES;
    if (r->state == RESERVE_MISSING || r->bytes >= wanted || available + r->bytes < wanted + wanted / 4) {
        return;
    }
    fd = open(r->path, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
    if (fd < 0) {
        reserve_fail(r, errno);
        return;
    }
    reserve_allocate(r, fd, wanted);
    close(fd);
}

bool reserve_give_up(struct reserve *r)
{
    const bool held = r->state == RESERVE_HELD;

    if (held && !truncate(r->path, 0)) {
        r->state = RESERVE_GIVEN_UP;
        r->bytes = 0;
    }
    return held && r->state == RESERVE_GIVEN_UP;
}

const char *reserve_name(enum reserve_state state)
{
    static const char *const names[] = {"missing", "held", "given-up"};

    return names[state];
}
