#include "gate/uplinks.h"

#include <errno.h>
#include <event2/event.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/queue.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "gate/frames.h"
#include "log/log.h"
#include "proto/limits.h"
#include "proto/message.h"

#define UPLINKS 8
#define SLOTS LIMIT_IN_FLIGHT
#define OUTPUT_MAX (1u << 20) /* bytes that wait on one connection; then it takes no more */
#define RETRY_SECONDS 1
#define ANSWER_MAX (64u << 10)

struct uplinks_output {
    STAILQ_ENTRY(uplinks_output) next;
    uint8_t *bytes;
    size_t size, sent;
    bool request; /* of a host: its memory is counted */
};

enum uplink_state { UPLINK_DOWN, UPLINK_GREETING, UPLINK_OPEN };

struct uplink {
    struct uplinks *all;
    enum uplink_state state;
    int fd;
    struct event *readable, *writable, *retry;
    STAILQ_HEAD(uplinks_outputs, uplinks_output) output;
    size_t output_bytes;
    unsigned in_flight, most;
    bool used[SLOTS];
    struct uplinks_origin origins[SLOTS];
    size_t got; /* of input */
    uint8_t input[FRAME_HEADER_SIZE + ANSWER_MAX];
};

struct uplinks {
    struct uplinks_config config;
    bool told; /* that the daemon does not answer */
    struct uplink links[UPLINKS];
};

static void uplink_drop_output(struct uplink *l, struct uplinks_output *o)
{
    STAILQ_REMOVE_HEAD(&l->output, next);
    l->output_bytes -= o->size;
    free(o->bytes);
    if (o->request) {
        l->all->config.freed(l->all->config.context, o->size);
    }
    free(o);
}

/* Ends the connection, and tries again a little later. */
static void uplink_close(struct uplink *l, const char *why)
{
    const struct timeval later = {RETRY_SECONDS, 0};
    struct uplinks *u = l->all;

    if (l->readable) {
        event_free(l->readable);
        event_free(l->writable);
    }
    if (l->fd >= 0) {
        close(l->fd);
    }
    l->readable = l->writable = NULL;
    l->fd = -1;
    l->state = UPLINK_DOWN;
    l->got = 0;
    if (!u->told) {
        log_write(LOG_LEVEL_WARNING, NULL, "the daemon does not answer on %s: %s", u->config.path, why);
        u->told = true;
    }
    while (!STAILQ_EMPTY(&l->output)) {
        uplink_drop_output(l, STAILQ_FIRST(&l->output));
    }
    for (size_t i = 0; i < SLOTS; i++) {
        if (l->used[i]) {
            l->used[i] = false;
            l->in_flight--;
            u->config.lost(u->config.context, &l->origins[i]);
        }
    }
    event_add(l->retry, &later);
    u->config.writable(u->config.context); /* what waits gets its answer now, if this was the last connection */
}

/* Queues a block that it takes over. */
static bool uplink_put(struct uplink *l, uint8_t *bytes, size_t n, bool request)
{
    struct uplinks_output *o = malloc(sizeof *o);

    if (!o) {
        return false;
    }
    *o = (struct uplinks_output){.bytes = bytes, .size = n, .request = request};
    STAILQ_INSERT_TAIL(&l->output, o, next);
    l->output_bytes += n;
    event_add(l->writable, NULL);
    return true;
}

/* The WELCOME of the daemon. False: closed. */
static bool uplink_welcome(struct uplink *l, const struct frame *f, const uint8_t *payload)
{
    struct uplinks *u = l->all;
    struct profd_error e = {""};
    struct message m;

    if (message_decode(f->type, payload, f->length, &m, &e)) {
        uplink_close(l, e.sentence);
        return false;
    }
    if (m.type != FRAME_WELCOME) {
        uplink_close(l, m.type == FRAME_NACK ? m.as.nack.sentence : "its answer to HELLO is not WELCOME");
        message_done(&m);
        return false;
    }
    l->most = m.as.welcome.in_flight_max < SLOTS ? m.as.welcome.in_flight_max : SLOTS;
    message_done(&m);
    l->state = UPLINK_OPEN;
    if (u->told) {
        log_write(LOG_LEVEL_NOTICE, NULL, "the daemon answers again");
        u->told = false;
    }
    u->config.writable(u->config.context);
    return true;
}

/* One frame of the daemon. False: closed. */
static bool uplink_handle(struct uplink *l, struct frame *f, const uint8_t *payload)
{
    struct uplinks *u = l->all;
    const uint32_t slot = f->tag - 1;
    struct uplinks_origin from;

    if (l->state == UPLINK_GREETING) {
        return uplink_welcome(l, f, payload);
    }
    if (!frames_may_answer(f->type) || slot >= SLOTS || !l->used[slot]) {
        uplink_close(l, "it sent an answer to no request");
        return false;
    }
    from = l->origins[slot];
    l->used[slot] = false;
    l->in_flight--;
    f->tag = from.tag;
    u->config.answered(u->config.context, &from, f, payload);
    u->config.writable(u->config.context);
    return true;
}

static void uplink_on_readable(evutil_socket_t fd, short what, void *context)
{
    struct uplink *l = context;
    const ssize_t n = recv(fd, l->input + l->got, sizeof l->input - l->got, 0);
    struct profd_error e;
    struct frame f;
    size_t at = 0;

    (void)what;
    if (n <= 0) {
        if (!n || (errno != EAGAIN && errno != EINTR)) {
            uplink_close(l, n ? strerror(errno) : "it has closed the connection");
        }
        return;
    }
    l->got += (size_t)n;
    while (l->got - at >= FRAME_HEADER_SIZE) {
        if (frame_decode(l->input + at, &f, &e) || f.length > ANSWER_MAX) {
            uplink_close(l, "it sent a frame that is not valid");
            return;
        }
        if (l->got - at < FRAME_HEADER_SIZE + f.length) {
            break;
        }
        if (!uplink_handle(l, &f, l->input + at + FRAME_HEADER_SIZE)) {
            return;
        }
        at += FRAME_HEADER_SIZE + f.length;
    }
    memmove(l->input, l->input + at, l->got - at);
    l->got -= at;
}

static void uplink_on_writable(evutil_socket_t fd, short what, void *context)
{
    struct uplink *l = context;
    struct uplinks_output *o;

    (void)what;
    while ((o = STAILQ_FIRST(&l->output)) != NULL) {
        const ssize_t n = send(fd, o->bytes + o->sent, o->size - o->sent, MSG_NOSIGNAL);

        if (n < 0 && errno != EINTR) {
            if (errno != EAGAIN) {
                uplink_close(l, strerror(errno));
            }
            return;
        }
        o->sent += n > 0 ? (size_t)n : 0;
        if (o->sent == o->size) {
            uplink_drop_output(l, o);
        }
    }
    event_del(l->writable);
    l->all->config.writable(l->all->config.context);
}

/* Is the other end of root, of the daemon's user or of the own one? Any user might bind a path that is free. */
static bool uplink_trusts(const struct uplink *l, char *why, size_t n)
{
    struct ucred peer = {.uid = UINT32_MAX};
    socklen_t size = sizeof peer;

    if (!getsockopt(l->fd, SOL_SOCKET, SO_PEERCRED, &peer, &size) &&
        (!peer.uid || peer.uid == geteuid() || (l->all->config.has_user && peer.uid == l->all->config.user))) {
        return true;
    }
    snprintf(why, n, "it belongs to user %u, not to root, profd or user %u", peer.uid, geteuid());
    return false;
}

/* Queues HELLO. */
static bool uplink_greet(struct uplink *l)
{
    const struct message hello = {.type = FRAME_HELLO,
                                  .as.hello = {FRAME_VERSION, FRAME_VERSION, "profd-gate " PROFD_VERSION}};
    uint8_t *bytes;
    size_t n;

    if (message_encode(&hello, 0, 0, &bytes, &n, NULL)) {
        return false;
    }
    if (!uplink_put(l, bytes, n, false)) {
        free(bytes);
        return false;
    }
    return true;
}

static void uplink_open(evutil_socket_t unused, short what, void *context)
{
    struct uplink *l = context;
    struct sockaddr_un a = {.sun_family = AF_UNIX};
    char why[120];

    (void)unused;
    (void)what;
    memcpy(a.sun_path, l->all->config.path, strlen(l->all->config.path) + 1);
    l->fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (l->fd < 0 || connect(l->fd, (const struct sockaddr *)&a, sizeof a)) {
        uplink_close(l, strerror(errno));
        return;
    }
    if (!uplink_trusts(l, why, sizeof why)) {
        uplink_close(l, why);
        return;
    }
    l->readable = event_new(l->all->config.base, l->fd, EV_READ | EV_PERSIST, uplink_on_readable, l);
    l->writable = event_new(l->all->config.base, l->fd, EV_WRITE | EV_PERSIST, uplink_on_writable, l);
    l->state = UPLINK_GREETING;
    if (!l->readable || !l->writable || event_add(l->readable, NULL) || !uplink_greet(l)) {
        uplink_close(l, "out of memory");
    }
}

enum profd_status uplinks_new(const struct uplinks_config *config, struct uplinks **out, struct profd_error *e)
{
    const struct timeval now = {0, 0};
    struct uplinks *u = calloc(1, sizeof *u);

    for (size_t i = 0; u && i < UPLINKS; i++) {
        struct uplink *l = &u->links[i];

        l->all = u;
        l->fd = -1;
        l->state = UPLINK_GREETING; /* what comes before the first attempt waits */
        STAILQ_INIT(&l->output);
        l->retry = evtimer_new(config->base, uplink_open, l);
        if (!l->retry || event_add(l->retry, &now)) {
            u = NULL; /* the program ends */
        }
    }
    if (!u) {
        return profd_error_set(e, PROFD_NO_MEMORY, "no memory for connections to the daemon");
    }
    u->config = *config;
    *out = u;
    return PROFD_OK;
}

/* The connection with the fewest requests that takes one more; *down: none is or will soon be open. */
static struct uplink *uplinks_choose(struct uplinks *u, bool *down)
{
    struct uplink *best = NULL;

    *down = true;
    for (size_t i = 0; i < UPLINKS; i++) {
        struct uplink *l = &u->links[i];

        *down = *down && l->state == UPLINK_DOWN;
        if (l->state == UPLINK_OPEN && l->in_flight < l->most && l->output_bytes < OUTPUT_MAX &&
            (!best || l->in_flight < best->in_flight)) {
            best = l;
        }
    }
    return best;
}

enum uplinks_result uplinks_send(struct uplinks *u, uint8_t *bytes, size_t n, const struct uplinks_origin *from)
{
    bool down;
    struct uplink *l = uplinks_choose(u, &down);
    struct frame f;
    uint32_t slot = 0;

    if (!l) {
        return down ? UPLINKS_DOWN : UPLINKS_FULL;
    }
    while (l->used[slot]) {
        slot++;
    }
    (void)frame_decode(bytes, &f, NULL); /* it was validated when it came */
    f.tag = slot + 1;
    frame_encode(&f, bytes);
    if (!uplink_put(l, bytes, n, true)) {
        return UPLINKS_FULL;
    }
    l->used[slot] = true;
    l->origins[slot] = *from;
    l->in_flight++;
    return UPLINKS_SENT;
}
