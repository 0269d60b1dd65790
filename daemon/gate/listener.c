#include "gate/listener.h"

#include <errno.h>
#include <fcntl.h>
#include <netdb.h>
#include <netinet/in.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "log/log.h"

#define PASSED 3
#define BACKLOG 4096

/* The descriptor that was passed in, or −1. */
static enum profd_status listener_take_passed(int *fd, struct profd_error *e)
{
    const char *pid = getenv("LISTEN_PID"), *count = getenv("LISTEN_FDS");
    socklen_t size = sizeof(int);
    int listening = 0, family = 0;
    char own[24];

    *fd = -1;
    snprintf(own, sizeof own, "%ld", (long)getpid());
    if (!pid || !count || strcmp(pid, own) != 0) {
        return PROFD_OK;
    }
    if (strcmp(count, "1") != 0 || getsockopt(PASSED, SOL_SOCKET, SO_ACCEPTCONN, &listening, &size) || !listening ||
        getsockopt(PASSED, SOL_SOCKET, SO_DOMAIN, &family, &size) || (family != AF_INET6 && family != AF_INET)) {
        return profd_error_set(e, PROFD_CONFIG, "what was passed in is not one listening TCP socket");
    }
    if (fcntl(PASSED, F_SETFL, O_NONBLOCK) || fcntl(PASSED, F_SETFD, FD_CLOEXEC)) {
        return profd_error_set(e, PROFD_IO, "the socket that was passed in: %s", strerror(errno));
    }
    *fd = PASSED;
    return PROFD_OK;
}

static void listener_tell(int fd)
{
    struct sockaddr_storage a;
    socklen_t size = sizeof a;
    char port[8] = "";

    if (!getsockname(fd, (struct sockaddr *)&a, &size) &&
        !getnameinfo((const struct sockaddr *)&a, size, NULL, 0, port, sizeof port, NI_NUMERICSERV)) {
        log_write(LOG_LEVEL_NOTICE, NULL, "listening on port %s", port);
    }
}

enum profd_status listener_open(const struct config *c, int *fd, struct profd_error *e)
{
    const struct addrinfo want = {.ai_flags = AI_NUMERICHOST | AI_NUMERICSERV | AI_PASSIVE, .ai_socktype = SOCK_STREAM};
    const int on = 1, off = 0;
    struct addrinfo *a;
    enum profd_status status = listener_take_passed(fd, e);

    if (status || *fd >= 0) {
        return status;
    }
    if (!c->gate_listen) {
        return profd_error_set(e, PROFD_CONFIG, "no socket was passed in, and gate-listen is not set");
    }
    if (getaddrinfo(c->listen.host, c->listen.port, &want, &a)) {
        return profd_error_set(e, PROFD_CONFIG, "gate-listen is \"%s\", not ADDR:PORT with numbers", c->gate_listen);
    }
    *fd = socket(a->ai_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    (void)setsockopt(*fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
    if (a->ai_family == AF_INET6) {
        (void)setsockopt(*fd, IPPROTO_IPV6, IPV6_V6ONLY, &off, sizeof off);
    }
    if (*fd < 0 || bind(*fd, a->ai_addr, a->ai_addrlen) || listen(*fd, BACKLOG)) {
        status = profd_error_set(e, PROFD_CANT_CREATE, "cannot listen on %s: %s", c->gate_listen, strerror(errno));
    } else {
        listener_tell(*fd);
    }
    freeaddrinfo(a);
    return status;
}
