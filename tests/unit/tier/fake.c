/* The fixture of the tests against a server of their own. */
#include "tests/unit/tier/fake.h"

#include <arpa/inet.h>
#include <criterion/criterion.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

static bool request_take(struct server *s, int fd)
{
    size_t size = 0, head = 0, length = 0;
    while (!head || size < head + length) {
        const ssize_t n = read(fd, s->request + size, sizeof s->request - 1 - size);
        if (n <= 0) {
            return false;
        }
        size += (size_t)n;
        s->request[size] = 0;
        const char *end = strstr(s->request, "\r\n\r\n"), *at = strstr(s->request, "Content-Length:");
        head = end ? (size_t)(end + 4 - s->request) : 0;
        length = end && at ? strtoul(at + 15, NULL, 10) : 0;
    }
    s->request_size = size;
    return true;
}

static void reply_send(struct server *s, int fd)
{
    const size_t i = s->next < s->count ? s->next++ : s->count - 1;
    const char *reply = s->replies[i];
    const size_t n = s->sizes ? s->sizes[i] : strlen(reply);
    for (size_t at = 0; at < n && s->slow; at++) {
        if (send(fd, reply + at, 1, MSG_NOSIGNAL) < 0) {
            return;
        }
        nanosleep(&(struct timespec){0, 20000000}, NULL);
    }
    (void)!send(fd, reply, s->slow ? 0 : n, MSG_NOSIGNAL);
    while (s->endless && send(fd, reply + n - 1, 1, MSG_NOSIGNAL) > 0) {
    }
}

static void *serve(void *context)
{
    struct server *s = context;
    for (int fd; (fd = accept(s->fd, NULL, NULL)) >= 0; close(fd)) {
        if (!request_take(s, fd)) {
            continue;
        }
        if (s->settings && strstr(s->request, "system.settings")) {
            dprintf(fd, "HTTP/1.1 200 OK\r\nContent-Length: %zu\r\n\r\n%s", strlen(s->settings), s->settings);
        } else {
            if (s->once) {
                shutdown(s->fd, SHUT_RDWR);
            }
            s->statements++;
            reply_send(s, fd);
        }
        if (s->stale) {
            (void)poll(&(struct pollfd){.fd = fd, .events = POLLIN}, 1, 200);
            continue;
        }
        shutdown(fd, SHUT_WR);
        char rest[4096]; /* what is not read would reset the connection */
        while (read(fd, rest, sizeof rest) > 0) {
        }
    }
    return NULL;
}

void server_start(struct server *s)
{
    struct sockaddr_in a = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t n = sizeof a;
    s->fd = socket(AF_INET, SOCK_STREAM, 0);
    cr_assert(!bind(s->fd, (struct sockaddr *)&a, sizeof a) && !listen(s->fd, 16) &&
              !getsockname(s->fd, (struct sockaddr *)&a, &n));
    s->port = ntohs(a.sin_port);
    cr_assert(!pthread_create(&s->thread, NULL, serve, s));
}

void server_stop(struct server *s)
{
    shutdown(s->fd, SHUT_RDWR);
    pthread_join(s->thread, NULL);
    close(s->fd);
}
