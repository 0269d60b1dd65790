/* Notices that peers have hung up. Their requests are not begun, and queued ones are cancelled: the answers would have
 * no reader. A peer that has only shut down its sending side still reads. */
#include <poll.h>

#include "net/conn_internal.h"

#define LOOK_MS 100 /* between two looks at the connections that have requests in flight */
#define POLLS 1024

static bool conn_hangup_is(const struct pollfd *p)
{
    return p->revents & (POLLHUP | POLLERR);
}

bool conn_has_hung_up(const struct conn *c)
{
    struct pollfd p = {.fd = c->fd};

    return poll(&p, 1, 0) > 0 && conn_hangup_is(&p);
}

/* At most POLLS connections from slot *at on, with requests in flight. */
static size_t conn_hangup_gather(const struct conn_group *g, uint32_t *at, struct pollfd *polls, struct conn **conns)
{
    size_t n = 0;

    for (; *at < g->slot_count && n < POLLS; ++*at) {
        struct conn *c = g->slots[*at].conn;

        if (c && c->in_flight && !c->deaf) {
            polls[n] = (struct pollfd){.fd = c->fd};
            conns[n++] = c;
        }
    }
    return n;
}

void conn_hangup_look(evutil_socket_t fd, short what, void *group)
{
    struct conn_group *g = group;
    struct pollfd polls[POLLS];
    struct conn *conns[POLLS];
    uint32_t at = 0;
    size_t n, left = 0;

    (void)fd;
    (void)what;
    while ((n = conn_hangup_gather(g, &at, polls, conns)) > 0) {
        left += n;
        if (poll(polls, (nfds_t)n, 0) <= 0) {
            continue;
        }
        for (size_t i = 0; i < n; i++) {
            if (conn_hangup_is(&polls[i])) {
                conns[i]->gone = true;
                event_active(&conns[i]->write_event, EV_WRITE, 0);
                left--;
            }
        }
    }
    if (left) {
        conn_hangup_watch(g);
    }
}

void conn_hangup_watch(struct conn_group *g)
{
    const struct timeval later = {.tv_usec = LOOK_MS * 1000};

    if (g->config.hung_up && !evtimer_pending(&g->hangup_event, NULL)) {
        evtimer_add(&g->hangup_event, &later);
    }
}
