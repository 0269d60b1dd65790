#include "net/listen.h"

#include <errno.h>
#include <event2/event.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "net/loop.h"

#define ACCEPTS_PER_WAKE 256 /* they cost little; what they send is read in shares (conn_limits.c) */
#define TELL_MS 60000u       /* interval of log lines while descriptors are exhausted */

struct listener {
    struct listener_config config;
    struct event *readable, *resume;
    int spare; /* a spare descriptor, closed when descriptors run out, so that a client can be accepted and told */
    bool told;
    uint64_t told_at;
};

static int listener_open_spare(void)
{
    return open("/dev/null", O_RDONLY | O_CLOEXEC);
}

/* Without the spare descriptor the caller would hang in the backlog and the loop would spin on it. */
static void listener_refuse_one(struct listener *l)
{
    int fd;

    if (l->spare < 0) {
        return;
    }
    close(l->spare);
    fd = accept4(l->config.fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
    if (fd >= 0) {
        if (l->config.refusal) {
            ssize_t sent = send(fd, l->config.refusal, l->config.refusal_size, MSG_NOSIGNAL | MSG_DONTWAIT);
            (void)sent;
        }
        close(fd);
    }
    l->spare = listener_open_spare();
}

/* Accepts at most that many; true if more may wait. */
static bool listener_accept_some(struct listener *l, int most)
{
    for (int i = 0; i < most; i++) {
        int got = accept4(l->config.fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);

        if (got >= 0) {
            l->config.accepted(l->config.context, got);
        } else if (errno == EMFILE || errno == ENFILE || errno == ENOBUFS || errno == ENOMEM) {
            struct timeval tv = {.tv_sec = l->config.pause_ms / 1000,
                                 .tv_usec = (suseconds_t)(l->config.pause_ms % 1000) * 1000};

            listener_refuse_one(l);
            event_del(l->readable);
            evtimer_add(l->resume, &tv);
            if (l->config.exhausted && (!l->told || loop_now() - l->told_at >= TELL_MS)) {
                l->told = true;
                l->told_at = loop_now();
                l->config.exhausted(l->config.context, strerror(errno));
            }
            return false;
        } else if (errno != EINTR && errno != ECONNABORTED && errno != EPROTO) {
            return false; /* EAGAIN: no connection is waiting */
        }
    }
    return true;
}

static void listener_on_readable(evutil_socket_t fd, short what, void *context)
{
    (void)fd;
    (void)what;
    listener_accept_some(context, ACCEPTS_PER_WAKE);
}

void listener_accept(struct listener *l)
{
    /* Not while it pauses for lack of descriptors: connections that arrive meanwhile have not waited longer. */
    if (l && event_pending(l->readable, EV_READ, NULL)) {
        listener_accept_some(l, SOMAXCONN);
    }
}

static void listener_on_resume(evutil_socket_t fd, short what, void *context)
{
    struct listener *l = context;

    (void)fd;
    (void)what;
    if (l->spare < 0) {
        l->spare = listener_open_spare();
    }
    event_add(l->readable, NULL);
}

struct listener *listener_new(struct event_base *base, const struct listener_config *config)
{
    struct listener *l = calloc(1, sizeof *l);

    if (!l) {
        return NULL;
    }
    l->config = *config;
    l->spare = listener_open_spare();
    l->readable = event_new(base, config->fd, EV_READ | EV_PERSIST, listener_on_readable, l);
    l->resume = evtimer_new(base, listener_on_resume, l);
    if (!l->readable || !l->resume || event_add(l->readable, NULL)) {
        listener_free(l);
        return NULL;
    }
    return l;
}

void listener_free(struct listener *l)
{
    if (!l) {
        return;
    }
    if (l->readable) {
        event_free(l->readable);
    }
    if (l->resume) {
        event_free(l->resume);
    }
    if (l->spare >= 0) {
        close(l->spare);
    }
    free(l);
}
