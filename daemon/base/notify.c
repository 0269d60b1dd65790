#include "base/notify.h"

#include <errno.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <sys/un.h>
#include <unistd.h>

static struct {
    int fd;
    struct sockaddr_un address;
    socklen_t size;
    uint64_t watchdog_ms;
} notify_state = {.fd = -1};

bool notify_open(void)
{
    const char *path = getenv("NOTIFY_SOCKET"), *usec = getenv("WATCHDOG_USEC"), *pid = getenv("WATCHDOG_PID");
    const size_t n = path ? strlen(path) : 0;
    unsigned long long value;
    char *end;

    if (n > 1 && n < sizeof notify_state.address.sun_path && (*path == '/' || *path == '@')) {
        notify_state.fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
        notify_state.address.sun_family = AF_UNIX;
        memcpy(notify_state.address.sun_path, path, n);
        if (*path == '@') {
            notify_state.address.sun_path[0] = 0; /* the abstract name space */
        }
        notify_state.size = (socklen_t)(offsetof(struct sockaddr_un, sun_path) + n);
        if (usec && (!pid || strtoll(pid, NULL, 10) == (long long)getpid())) {
            errno = 0;
            value = strtoull(usec, &end, 10);
            if (!errno && !*end && end != usec && value >= 2000) {
                notify_state.watchdog_ms = value / 2000; /* half the time, in milliseconds */
            }
        }
    }
    unsetenv("NOTIFY_SOCKET");
    unsetenv("WATCHDOG_USEC");
    unsetenv("WATCHDOG_PID");
    return notify_state.fd >= 0;
}

void notify_send(const char *text)
{
    if (notify_state.fd < 0) {
        return;
    }
    ssize_t sent = sendto(notify_state.fd, text, strlen(text), MSG_NOSIGNAL,
                          (const struct sockaddr *)&notify_state.address, notify_state.size);
    (void)sent;
}

bool notify_send_fd(const char *text, int fd)
{
    union {
        struct cmsghdr head;
        char bytes[CMSG_SPACE(sizeof(int))];
    } control;
    char copy[256];
    const size_t n = strlen(text);
    struct iovec part = {.iov_base = copy, .iov_len = n};
    struct msghdr m = {
        .msg_name = &notify_state.address, .msg_namelen = notify_state.size, .msg_iov = &part, .msg_iovlen = 1};

    if (notify_state.fd < 0 || n > sizeof copy) {
        return false;
    }
    memcpy(copy, text, n);
    if (fd >= 0) {
        memset(&control, 0, sizeof control);
        m.msg_control = control.bytes;
        m.msg_controllen = sizeof control.bytes;
        control.head.cmsg_level = SOL_SOCKET;
        control.head.cmsg_type = SCM_RIGHTS;
        control.head.cmsg_len = CMSG_LEN(sizeof fd);
        memcpy(CMSG_DATA(&control.head), &fd, sizeof fd);
    }
    return sendmsg(notify_state.fd, &m, MSG_NOSIGNAL) == (ssize_t)n;
}

uint64_t notify_watchdog_ms(void)
{
    return notify_state.watchdog_ms;
}
