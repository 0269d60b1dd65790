#include "elf/broker_wire.h"

#include <errno.h>
#include <stdbool.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <unistd.h>

/* Aligned as the kernel wants it. */
union control {
    struct cmsghdr header;
    char bytes[CMSG_SPACE(BROKER_FDS * sizeof(int))];
};

int broker_send(int socket, const void *packet, size_t size, const int *fds, unsigned n)
{
    char copy[1024];
    if (size > sizeof copy || n > BROKER_FDS) {
        return 0;
    }
    memcpy(copy, packet, size);
    struct iovec part = {copy, size};
    union control control;
    memset(&control, 0, sizeof control);
    struct msghdr m = {.msg_iov = &part, .msg_iovlen = 1};
    if (n != 0) {
        m.msg_control = control.bytes;
        m.msg_controllen = CMSG_SPACE(n * sizeof(int));
        struct cmsghdr *c = CMSG_FIRSTHDR(&m);
        c->cmsg_level = SOL_SOCKET;
        c->cmsg_type = SCM_RIGHTS;
        c->cmsg_len = CMSG_LEN(n * sizeof(int));
        memcpy(CMSG_DATA(c), fds, n * sizeof(int));
    }
    ssize_t sent;
    do {
        sent = sendmsg(socket, &m, MSG_NOSIGNAL);
    } while (sent < 0 && errno == EINTR);
    return sent == (ssize_t)size;
}

int broker_receive(int socket, void *packet, size_t size, int fds[BROKER_FDS])
{
    struct iovec part = {packet, size};
    union control control;
    struct msghdr m = {
        .msg_iov = &part, .msg_iovlen = 1, .msg_control = control.bytes, .msg_controllen = sizeof control.bytes};
    for (int i = 0; i < BROKER_FDS; i++) {
        fds[i] = -1;
    }
    ssize_t got;
    do {
        got = recvmsg(socket, &m, MSG_CMSG_CLOEXEC);
    } while (got < 0 && errno == EINTR);
    if (got == 0) {
        return 0;
    }
    if (got > 0) {
        for (struct cmsghdr *c = CMSG_FIRSTHDR(&m); c != NULL; c = CMSG_NXTHDR(&m, c)) {
            if (c->cmsg_level != SOL_SOCKET || c->cmsg_type != SCM_RIGHTS) {
                continue;
            }
            size_t n = (c->cmsg_len - CMSG_LEN(0)) / sizeof(int);
            memcpy(fds, CMSG_DATA(c), (n < BROKER_FDS ? n : BROKER_FDS) * sizeof(int));
        }
    }
    bool whole = got == (ssize_t)size && !(m.msg_flags & (MSG_TRUNC | MSG_CTRUNC));
    for (int i = 0; i < BROKER_FDS && !whole; i++) {
        if (fds[i] >= 0) {
            close(fds[i]);
        }
    }
    return whole ? 1 : -1;
}
