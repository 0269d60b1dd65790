/* How long a connection of a host may take for what it is doing. */
#include <event2/event.h>

#include "gate/hostconns_internal.h"

#define LINGER_SECONDS 2

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
    return c->bytes ? HOSTCONN_PHASE_BODY : c->header_got ? HOSTCONN_PHASE_HEADER : HOSTCONN_PHASE_IDLE;
}

void hostconn_set_deadline(struct hostconn *c)
{
    static const unsigned seconds[] = {[HOSTCONN_PHASE_HANDSHAKE] = LIMIT_GATE_HANDSHAKE_SECONDS,
                                       [HOSTCONN_PHASE_HELLO] = LIMIT_HELLO_SECONDS,
                                       [HOSTCONN_PHASE_IDLE] = LIMIT_GATE_IDLE_SECONDS,
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
    if (phase == HOSTCONN_PHASE_WAIT) { /* for the daemon, which answers or ends */
        event_del(c->timer);
        return;
    }
    t.tv_sec = (time_t)seconds[phase];
    t.tv_sec += phase == HOSTCONN_PHASE_BODY ? (time_t)(c->frame.length / LIMIT_FRAME_RATE) : 0;
    event_add(c->timer, &t);
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
    case HOSTCONN_PHASE_HEADER:
        return "the header of a frame took more than 2 seconds";
    case HOSTCONN_PHASE_BODY:
        return "a frame took more than 10 seconds and one for each 64 KiB";
    default:
        return "no answer was read for 10 seconds";
    }
}
