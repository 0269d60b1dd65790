/* Sockets that a supervisor made for us. */
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "net/listen.h"
#include "proto/limits.h"

#define PASSED_FIRST 3
#define PASSED_MAX (16u + LIMIT_ATTACHED_KEPT)

static bool listen_is_loopback(const struct sockaddr_storage *a, uint16_t *port)
{
    const struct sockaddr_in *four = (const struct sockaddr_in *)a;
    const struct sockaddr_in6 *six = (const struct sockaddr_in6 *)a;

    if (a->ss_family == AF_INET) {
        *port = ntohs(four->sin_port);
        return ntohl(four->sin_addr.s_addr) >> 24 == 127;
    }
    *port = ntohs(six->sin6_port);
    return a->ss_family == AF_INET6 && IN6_IS_ADDR_LOOPBACK(&six->sin6_addr);
}

/* A listening stream socket of the right family, made non-blocking and close-on-exec. */
static enum profd_status listen_check_passed(int fd, bool tcp, const char *name, uint16_t *port, struct profd_error *e)
{
    struct sockaddr_storage a;
    socklen_t size = sizeof a, word = sizeof(int);
    int listening = 0, type = 0, flags;

    if (getsockopt(fd, SOL_SOCKET, SO_ACCEPTCONN, &listening, &word) ||
        getsockopt(fd, SOL_SOCKET, SO_TYPE, &type, &word) || getsockname(fd, (struct sockaddr *)&a, &size) ||
        !listening || type != SOCK_STREAM) {
        return profd_error_set(e, PROFD_CONFIG,
                               "descriptor %d (\"%s\") that was passed in is not a listening stream socket", fd, name);
    }
    if (tcp ? !listen_is_loopback(&a, port) : a.ss_family != AF_UNIX) {
        return profd_error_set(e, PROFD_CONFIG, "descriptor %d (\"%s\") that was passed in is not a %s socket", fd,
                               name, tcp ? "loopback TCP" : "Unix");
    }
    flags = fcntl(fd, F_GETFL);
    if (flags < 0 || fcntl(fd, F_SETFL, flags | O_NONBLOCK) || fcntl(fd, F_SETFD, FD_CLOEXEC)) {
        return profd_error_set(e, PROFD_IO, "descriptor %d (\"%s\"): %s", fd, name, strerror(errno));
    }
    return PROFD_OK;
}

static enum profd_status listen_assign_passed(struct listen_passed *p, int fd, const char *name, bool only,
                                              struct profd_error *e)
{
    const bool nameless = !*name || !strcmp(name, "unknown");
    int *place;

    if (!strcmp(name, "upload") || (nameless && only)) {
        place = &p->upload;
    } else if (!strcmp(name, "http")) {
        place = &p->http;
    } else if (!strcmp(name, "http-tcp")) {
        place = &p->http_tcp;
    } else {
        return profd_error_set(e, PROFD_CONFIG,
                               "descriptor %d was passed in as \"%s\"; the names are upload, http and http-tcp", fd,
                               name);
    }
    if (*place >= 0) {
        return profd_error_set(e, PROFD_CONFIG, "two descriptors were passed in as \"%s\"", name);
    }
    *place = fd;
    return listen_check_passed(fd, place == &p->http_tcp, name, &p->http_port, e);
}

/* The next name of a colon-separated list; "" where it has ended. */
static void listen_take_name(const char **names, char out[LISTEN_NAME])
{
    size_t n = *names ? strcspn(*names, ":") : 0;
    const char *end = *names ? *names + n : NULL;

    if (n > LISTEN_NAME - 1) {
        n = LISTEN_NAME - 1;
    }
    if (n) {
        memcpy(out, *names, n);
    }
    out[n] = 0;
    *names = end && *end ? end + 1 : NULL;
}

static enum profd_status listen_keep(struct listen_passed *p, int fd, const char *name, struct profd_error *e)
{
    struct listen_kept *k = &p->kept[p->kept_count];

    if (fcntl(fd, F_SETFD, FD_CLOEXEC)) {
        return profd_error_set(e, PROFD_IO, "descriptor %d (\"%s\"): %s", fd, name, strerror(errno));
    }
    k->fd = fd;
    memcpy(k->name, name, strlen(name) + 1);
    p->kept_count++;
    return PROFD_OK;
}

static enum profd_status listen_read_names(struct listen_passed *p, unsigned long n, const char *names,
                                           struct profd_error *e)
{
    enum profd_status status = PROFD_OK;
    char name[LISTEN_NAME] = "";

    p->kept = calloc(n ? n : 1, sizeof *p->kept);
    if (!p->kept) {
        return profd_error_set(e, PROFD_NO_MEMORY, "no memory for %lu descriptors that were passed in", n);
    }
    for (unsigned long i = 0; i < n && !status; i++) {
        listen_take_name(&names, name);
        if (!memcmp(name, LISTEN_KEPT, sizeof LISTEN_KEPT - 1)) {
            status = listen_keep(p, PASSED_FIRST + (int)i, name, e);
        } else {
            status = listen_assign_passed(p, PASSED_FIRST + (int)i, name, n == 1, e);
        }
    }
    return status;
}

static enum profd_status listen_read_passed(struct listen_passed *p, struct profd_error *e)
{
    const char *pid = getenv("LISTEN_PID"), *count = getenv("LISTEN_FDS");
    char own[24], *end;
    unsigned long n;

    snprintf(own, sizeof own, "%ld", (long)getpid());
    if (!pid || !count || strcmp(pid, own) != 0) {
        return PROFD_OK; /* passed to another process, or to none */
    }
    errno = 0;
    n = strtoul(count, &end, 10);
    if (errno || *end || end == count || n > PASSED_MAX) {
        return profd_error_set(e, PROFD_CONFIG, "LISTEN_FDS is \"%s\", not a number of 0–%u", count, PASSED_MAX);
    }
    return listen_read_names(p, n, getenv("LISTEN_FDNAMES"), e);
}

enum profd_status listen_take_passed(struct listen_passed *out, struct profd_error *e)
{
    struct listen_passed p = {.upload = -1, .http = -1, .http_tcp = -1};
    enum profd_status status = listen_read_passed(&p, e);

    unsetenv("LISTEN_PID");
    unsetenv("LISTEN_FDS");
    unsetenv("LISTEN_FDNAMES");
    if (status || !p.kept_count) {
        free(p.kept);
        p.kept = NULL;
    }
    if (!status) {
        *out = p;
    }
    return status;
}
