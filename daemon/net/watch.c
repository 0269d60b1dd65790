#include "net/watch.h"

#include <event2/event.h>
#include <stdlib.h>

#include "net/loop.h"

struct watch {
    struct event *event;
    void (*f)(void *context);
    void *context;
};

static void watch_on_readable(evutil_socket_t fd, short what, void *context)
{
    struct watch *w = context;

    (void)fd;
    (void)what;
    w->f(w->context);
}

struct watch *watch_new(struct loop *l, int fd, void (*f)(void *context), void *context)
{
    struct watch *w = calloc(1, sizeof *w);

    if (!w) {
        return NULL;
    }
    w->f = f;
    w->context = context;
    w->event = event_new(loop_get_base(l), fd, EV_READ, watch_on_readable, w); /* once */
    if (!w->event || event_add(w->event, NULL)) {
        watch_free(w);
        return NULL;
    }
    return w;
}

void watch_free(struct watch *w)
{
    if (!w) {
        return;
    }
    if (w->event) {
        event_free(w->event);
    }
    free(w);
}
