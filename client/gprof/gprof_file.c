#include "gprof/gprof_file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

/* In large pages where it is much: a large file costs more page faults than reading. */
static uint8_t *block_take(size_t capacity)
{
    const size_t page = (size_t)2 << 20;
    if (capacity < 2 * page || capacity > SIZE_MAX - page) {
        return malloc(capacity);
    }
    capacity = (capacity + page - 1) & ~(page - 1);
    uint8_t *bytes = aligned_alloc(page, capacity);
    if (bytes != NULL) {
        (void)madvise(bytes, capacity, MADV_HUGEPAGE);
    }
    return bytes;
}

/* Reads all of fd. */
static bool descriptor_read(int fd, struct gprof_file *f)
{
    struct stat st;
    size_t capacity = fstat(fd, &st) == 0 && S_ISREG(st.st_mode) && st.st_size > 0 ? (size_t)st.st_size + 2 : 65536;
    f->seekable = lseek(fd, 0, SEEK_CUR) >= 0;
    f->bytes = block_take(capacity);
    while (f->bytes != NULL) {
        if (f->size + 1 == capacity) {
            uint8_t *more = capacity > SIZE_MAX / 2 ? NULL : realloc(f->bytes, capacity * 2);
            if (more == NULL) {
                break;
            }
            f->bytes = more;
            capacity *= 2;
        }
        ssize_t got = read(fd, f->bytes + f->size, capacity - 1 - f->size);
        if (got < 0 && errno == EINTR) {
            continue;
        }
        if (got <= 0) {
            f->bytes[f->size] = '\0';
            return true;
        }
        f->size += (size_t)got;
    }
    free(f->bytes);
    errno = ENOMEM;
    return false;
}

bool gprof_file_read(const char *path, struct gprof_file *out)
{
    struct gprof_file f = {0};
    bool standard = strcmp(path, "-") == 0;
    int fd = standard ? STDIN_FILENO : open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0) {
        return false;
    }
    bool good = descriptor_read(fd, &f);
    if (!standard) {
        (void)close(fd);
    }
    if (good) {
        *out = f;
    }
    return good;
}

void gprof_file_done(struct gprof_file *f)
{
    free(f->bytes);
    *f = (struct gprof_file){0};
}

bool gprof_file_write_all(int fd, const void *bytes, size_t n)
{
    const char *p = bytes;
    while (n > 0) {
        ssize_t put = write(fd, p, n);
        if (put < 0 && errno == EINTR) {
            continue;
        }
        if (put < 0) {
            return false;
        }
        p += put;
        n -= (size_t)put;
    }
    return true;
}

bool gprof_file_write(const char *path, const void *bytes, size_t n)
{
    int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
    if (fd < 0) {
        return false;
    }
    if (gprof_file_write_all(fd, bytes, n)) {
        return close(fd) == 0;
    }
    int why = errno;
    (void)close(fd);
    errno = why;
    return false;
}

void gprof_file_widen(int fd)
{
    struct stat st;
    if (fstat(fd, &st) == 0 && S_ISFIFO(st.st_mode)) {
        (void)fcntl(fd, F_SETPIPE_SZ, 1 << 20); /* where it is refused, the usual 64 KiB do */
    }
}
