#include "relay/stream.h"

#include <errno.h>
#include <poll.h>
#include <pwd.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

int64_t stream_now(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return t.tv_sec * INT64_C(1000) + t.tv_nsec / 1000000;
}

static enum profd_status stream_wait(int fd, short events, int64_t deadline, struct profd_error *e)
{
    struct pollfd p = {.fd = fd, .events = events};
    int64_t left;
    int ready;

    do {
        left = deadline - stream_now();
        ready = poll(&p, 1, left > 0 ? (int)(left < INT32_MAX ? left : INT32_MAX) : 0);
    } while (ready < 0 && errno == EINTR);
    if (ready < 0) {
        return profd_error_set(e, PROFD_IO, "poll: %s", strerror(errno));
    }
    return ready ? PROFD_OK : profd_error_set(e, PROFD_TIMEOUT, "no answer within the time allowed");
}

enum profd_status stream_open_unix(const char *path, struct stream *out, struct profd_error *e)
{
    struct sockaddr_un a = {.sun_family = AF_UNIX};
    struct ucred peer = {.uid = UINT32_MAX};
    socklen_t size = sizeof peer;
    const struct passwd *service;
    enum profd_status status = PROFD_OK;
    int fd;

    memcpy(a.sun_path, path, strlen(path) + 1); /* its length was validated with the configuration */
    fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (fd < 0 || connect(fd, (const struct sockaddr *)&a, sizeof a)) {
        status = profd_error_set(e, PROFD_UNAVAILABLE, "profd does not answer on %s: %s", path, strerror(errno));
    } else if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &size)) {
        status = profd_error_set(e, PROFD_IO, "%s: %s", path, strerror(errno));
    } else if (peer.uid && peer.uid != geteuid() && (!(service = getpwnam("profd")) || service->pw_uid != peer.uid)) {
        status = profd_error_set(e, PROFD_UNTRUSTED, "%s belongs to user %u, not to root, profd or user %u", path,
                                 peer.uid, geteuid());
    }
    if (status && fd >= 0) {
        close(fd);
    }
    if (!status) {
        *out = (struct stream){.fd = fd};
    }
    return status;
}

static enum profd_status stream_move(struct stream *s, bool writes, uint8_t *data, size_t n, int64_t deadline,
                                     struct profd_error *e)
{
    while (n) {
        const ssize_t done = writes ? send(s->fd, data, n, MSG_NOSIGNAL) : recv(s->fd, data, n, 0);

        if (done > 0) {
            data += done;
            n -= (size_t)done;
        } else if (done < 0 && (errno == EAGAIN || errno == EINTR)) {
            TRY(stream_wait(s->fd, writes ? POLLOUT : POLLIN, deadline, e));
        } else {
            return profd_error_set(e, PROFD_UNAVAILABLE, "%s", done ? strerror(errno) : "the connection was closed");
        }
    }
    return PROFD_OK;
}

enum profd_status stream_write(struct stream *s, const void *data, size_t n, int64_t deadline, struct profd_error *e)
{
    return stream_move(s, true, (uint8_t *)(uintptr_t)data, n, deadline, e);
}

enum profd_status stream_read(struct stream *s, void *data, size_t n, int64_t deadline, struct profd_error *e)
{
    return stream_move(s, false, data, n, deadline, e);
}

void stream_close(struct stream *s)
{
    if (s->fd >= 0) {
        close(s->fd);
    }
    *s = (struct stream){.fd = -1};
}
