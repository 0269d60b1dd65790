#include "proto/whole.h"

#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

void whole_close(int fd)
{
    if (fd >= 0) {
        close(fd);
    }
}

ssize_t whole_read(int fd, void *out, size_t n, uint64_t at)
{
    size_t done = 0;
    for (ssize_t got = 1; done < n && got != 0; done += got > 0 ? (size_t)got : 0) {
        got = pread(fd, (char *)out + done, n - done, (off_t)(at + done));
        if (got < 0 && errno != EINTR) {
            return -1;
        }
    }
    return (ssize_t)done;
}

size_t whole_read_text(const char *path, char *out, size_t size)
{
    const int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY);
    const ssize_t n = fd < 0 ? -1 : whole_read(fd, out, size - 1, 0);
    whole_close(fd);
    out[n > 0 ? n : 0] = '\0';
    return n > 0 ? (size_t)n : 0;
}

bool whole_write(int fd, const void *bytes, size_t n)
{
    const char *p = bytes;
    while (n > 0) {
        const ssize_t put = write(fd, p, n);
        if (put < 0 && errno != EINTR) {
            return false;
        }
        p += put > 0 ? put : 0;
        n -= put > 0 ? (size_t)put : 0;
    }
    return true;
}
