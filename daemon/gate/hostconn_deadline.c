/* How long a connection of a host may take for what it is doing. */
#include <errno.h>
#include <event2/event.h>
#include <sys/socket.h>
#include <time.h>

#include "gate/hostconns_internal.h"

#define LINGER_SECONDS 2
#define STALE_MS 2000

static int64_t hostconn_now(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return t.tv_sec * INT64_C(1000) + t.tv_nsec / 1000000;
}

static enum hostconn_phase hostconn_find_phase(const struct hostconn *c)
{
    if (c->state == HOSTCONN_HANDSHAKE) {
        return HOSTCONN_PHASE_HANDSHAKE;
    }
    if (c->state == HOSTCONN_LINGERING) {
        return HOSTCONN_PHASE_LINGER;
    }
    if (c->output_size > c->output_sent) {
        return HOSTCONN_PHASE_WRITE;
    }
    if (c->stage == FRAMES_BEFORE_HELLO) {
        return HOSTCONN_PHASE_HELLO;
    }
    if (c->wait != HOSTCONN_READY || (!c->header_got && c->in_flight)) {
        return HOSTCONN_PHASE_WAIT;
    }
    if (c->bytes || c->header_got) {
        return c->bytes ? HOSTCONN_PHASE_BODY : HOSTCONN_PHASE_HEADER;
    }
    return c->stage >= FRAMES_BEFORE_ENROLL ? HOSTCONN_PHASE_ENROL : HOSTCONN_PHASE_IDLE;
}

void hostconn_set_deadline(struct hostconn *c)
{
    static const unsigned seconds[] = {[HOSTCONN_PHASE_HANDSHAKE] = LIMIT_GATE_HANDSHAKE_SECONDS,
                                       [HOSTCONN_PHASE_HELLO] = LIMIT_HELLO_SECONDS,
                                       [HOSTCONN_PHASE_IDLE] = LIMIT_GATE_IDLE_SECONDS,
                                       [HOSTCONN_PHASE_ENROL] = LIMIT_HELLO_SECONDS,
                                       [HOSTCONN_PHASE_HEADER] = LIMIT_FRAME_HEADER_SECONDS,
                                       [HOSTCONN_PHASE_BODY] = LIMIT_FRAME_SECONDS,
                                       [HOSTCONN_PHASE_WRITE] = LIMIT_WRITE_SECONDS,
                                       [HOSTCONN_PHASE_LINGER] = LINGER_SECONDS};
    const enum hostconn_phase phase = hostconn_find_phase(c);
    struct timeval t = {0, 0};

    if (phase == c->phase && event_pending(c->timer, EV_TIMEOUT, NULL)) {
        return;
    }
    c->phase = phase;
    c->since = hostconn_now();
    if (phase == HOSTCONN_PHASE_WAIT) { /* for the daemon, which answers or ends */
        event_del(c->timer);
        return;
    }
    t.tv_sec = (time_t)seconds[phase];
    event_add(c->timer, &t);
}

bool hostconn_extend_deadline(struct hostconn *c)
{
    const int64_t earned = LIMIT_FRAME_SECONDS + (int64_t)(c->got / LIMIT_FRAME_RATE);
    const int64_t left = earned * 1000 - (hostconn_now() - c->since);
    const struct timeval t = {(time_t)(left / 1000) + 1, 0};

    return c->state == HOSTCONN_OPEN && c->phase == HOSTCONN_PHASE_BODY && left > 0 && !event_add(c->timer, &t);
}

bool hostconn_is_stale(const struct hostconn *c)
{
    char byte;

    return c->state == HOSTCONN_HANDSHAKE && hostconn_now() - c->since >= STALE_MS &&
           recv(c->fd, &byte, 1, MSG_PEEK) < 0 && errno == EAGAIN;
}

const char *hostconn_explain_deadline(const struct hostconn *c)
{
    switch (c->phase) {
    case HOSTCONN_PHASE_HANDSHAKE:
        return "the TLS handshake took more than 10 seconds";
    case HOSTCONN_PHASE_HELLO:
        return "no HELLO within 5 seconds";
    case HOSTCONN_PHASE_IDLE:
        return "no request within 60 seconds";
    case HOSTCONN_PHASE_ENROL:
        return "no ENROLL or RENEW within 5 seconds";
    case HOSTCONN_PHASE_HEADER:
        return "the header of a frame took more than 2 seconds";
    case HOSTCONN_PHASE_BODY:
        return "a frame took more than 10 seconds and one for each 64 KiB that came";
    default:
        return "no answer was read for 10 seconds";
    }
}
