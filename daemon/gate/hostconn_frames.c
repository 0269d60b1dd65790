/* The frames of one connection: memory for a request, what the gate answers itself, output. */
#include <event2/event.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "gate/enrol.h"
#include "gate/hostconns_internal.h"
#include "proto/message.h"

#define AMPLE (LIMIT_GATE_BYTES / 4) /* below, shares are not looked at: that takes a pass over all connections */

void hostconn_set_wait(struct hostconn *c, enum hostconn_wait wait)
{
    struct hostconns *h = c->all;

    if (c->wait == wait) {
        return;
    }
    if (c->wait != HOSTCONN_READY) {
        TAILQ_REMOVE(&h->queues[c->wait], c, waits);
    }
    if (wait != HOSTCONN_READY) {
        TAILQ_INSERT_TAIL(&h->queues[wait], c, waits);
    }
    c->wait = wait;
}

/* What a charge belongs to: the memory of large or of small frames. */
static size_t *hostconn_account(struct hostconns *h, size_t charge)
{
    return charge > LIMIT_FRAME_SMALL ? &h->large_memory : &h->memory;
}

/* Do other connections of this host, or of its tenant, have so much that it cannot get more? Either may have as much as
 * would then be left for the others, so that some hosts, or the hosts of some tenants, together leave something. Large
 * frames count for a host, too: it gets one of them at a time; those of a tenant count among the large ones. */
static bool hostconn_exceeds_share(const struct hostconn *c, size_t need)
{
    const struct hostconn *o;
    const bool large = need > LIMIT_FRAME_SMALL;
    const size_t all = large ? c->all->large_memory : c->all->memory;
    size_t own = 0, tenant = 0;

    TAILQ_FOREACH(o, &c->all->conns, next)
    {
        if (o == c || !o->charge) {
            continue;
        }
        own += memcmp(o->host.host, c->host.host, sizeof c->host.host) ? 0 : o->charge;
        if ((o->charge > LIMIT_FRAME_SMALL) == large && strcmp(o->host.tenant, c->host.tenant) == 0) {
            tenant += o->charge;
        }
    }
    return (own && (own + need > LIMIT_GATE_BYTES_PER_HOST || c->all->memory + own + need > LIMIT_GATE_BYTES)) ||
           (tenant && all + tenant + need > (large ? LIMIT_GATE_LARGE_BYTES : LIMIT_GATE_BYTES));
}

/* Memory is given in order. Large frames have memory of their own, so that slow ones hold up only large ones; and a
 * host that has its share holds up only itself. */
bool hostconn_take_memory(struct hostconn *c)
{
    struct hostconns *h = c->all;
    const size_t need = FRAME_HEADER_SIZE + (size_t)c->frame.length + FRAMES_ADDED_MAX;
    size_t *account = hostconn_account(h, need);
    const bool large = account == &h->large_memory;
    const enum hostconn_wait wait = large ? HOSTCONN_FOR_LARGE : HOSTCONN_FOR_MEMORY;
    const size_t most = large ? LIMIT_GATE_LARGE_BYTES : LIMIT_GATE_BYTES;
    const struct hostconn *first = TAILQ_FIRST(&h->queues[wait]);

    if ((large || h->memory > AMPLE) && hostconn_exceeds_share(c, need)) {
        hostconn_set_wait(c, HOSTCONN_FOR_HOST);
        return false;
    }
    if ((first && first != c) || h->memory > LIMIT_GATE_BYTES || *account + need > most) {
        hostconn_set_wait(c, wait);
        return false;
    }
    hostconn_set_wait(c, HOSTCONN_READY);
    c->bytes = malloc(need);
    if (!c->bytes) {
        return false;
    }
    c->charge = need;
    *account += need;
    return true;
}

void hostconn_drop_frame(struct hostconn *c)
{
    free(c->bytes);
    *hostconn_account(c->all, c->charge) -= c->charge;
    if (c->timer) {
        event_del(c->timer); /* the next frame has its own time */
    }
    c->bytes = NULL;
    c->charge = 0;
    c->header_got = c->got = 0;
}

static bool hostconn_has_expired(const struct hostconn *c)
{
    return time(NULL) >= c->host.not_after / INT64_C(1000000000);
}

enum profd_status hostconn_begin_frame(struct hostconn *c, struct profd_error *e)
{
    enum profd_status status = frame_decode(c->header, &c->frame, e);

    if (!status && c->stage == FRAMES_AFTER_ARRIVE && hostconn_has_expired(c)) {
        status = profd_error_set(e, PROFD_UNAUTHORIZED, "the certificate has expired since this connection began");
    }
    if (!status) {
        status = frames_check(&c->frame, c->stage, e);
    }
    if (!status && !hostconn_take_memory(c) && c->wait == HOSTCONN_READY) {
        status = profd_error_set(e, PROFD_NO_MEMORY, "no memory for a frame of %u bytes", c->frame.length);
    }
    return status;
}

bool hostconn_put(struct hostconn *c, const struct frame *f, const uint8_t *payload)
{
    const size_t need = c->output_size + FRAME_HEADER_SIZE + f->length;

    if (need > c->output_capacity) {
        uint8_t *larger = realloc(c->output, need);

        if (!larger) {
            return false;
        }
        c->output = larger;
        c->output_capacity = need;
    }
    frame_encode(f, c->output + c->output_size);
    memcpy(c->output + c->output_size + FRAME_HEADER_SIZE, payload, f->length);
    c->output_size = need;
    return true;
}

static bool hostconn_put_message(struct hostconn *c, const struct message *m, uint32_t tag)
{
    struct frame f;
    uint8_t *bytes;
    size_t n;
    bool done;

    if (message_encode(m, 0, tag, &bytes, &n, NULL)) {
        return false;
    }
    done = !frame_decode(bytes, &f, NULL) && hostconn_put(c, &f, bytes + FRAME_HEADER_SIZE);
    free(bytes);
    return done;
}

bool hostconn_put_nack(struct hostconn *c, uint32_t tag, enum profd_status status, const char *sentence)
{
    const bool retry = profd_status_retry(status);
    const struct message m = {.type = FRAME_NACK, .as.nack = {(uint32_t)status, retry, retry ? 1000 : 0, sentence}};

    return hostconn_put_message(c, &m, tag);
}

static enum profd_status hostconn_welcome(struct hostconn *c, struct profd_error *e)
{
    struct message hello, welcome = {.type = FRAME_WELCOME,
                                     .as.welcome = {.version = FRAME_VERSION,
                                                    .payload_max = FRAMES_PAYLOAD_MAX,
                                                    .in_flight_max = LIMIT_GATE_IN_FLIGHT,
                                                    .daemon = "profd-gate " PROFD_VERSION}};
    enum profd_status status = message_decode(c->frame.type, c->bytes + FRAME_HEADER_SIZE, c->frame.length, &hello, e);

    if (status) {
        return status;
    }
    if (hello.as.hello.version_oldest > FRAME_VERSION || hello.as.hello.version_newest < FRAME_VERSION) {
        status = profd_error_set(e, PROFD_UNKNOWN_VERSION, "versions %u to %u of the protocol, this gate speaks %d",
                                 hello.as.hello.version_oldest, hello.as.hello.version_newest, FRAME_VERSION);
        message_done(&hello);
        return status;
    }
    if (!hostconn_put_message(c, &welcome, c->frame.tag)) {
        status = profd_error_set(e, PROFD_NO_MEMORY, "no memory for an answer");
    }
    message_done(&hello);
    return status;
}

/* Hands a request on, or waits until it can be. */
static enum profd_status hostconn_forward(struct hostconn *c, struct profd_error *e)
{
    struct hostconns *h = c->all;
    const size_t size = FRAME_HEADER_SIZE + c->frame.length;
    enum profd_status status = PROFD_OK;
    const enum hostconns_result result = h->config.request(h->config.context, c->id, c->frame.tag, c->bytes, size, e);

    if (result == HOSTCONNS_WAIT) {
        hostconn_set_wait(c, HOSTCONN_FOR_DAEMON);
        return PROFD_OK;
    }
    hostconn_set_wait(c, HOSTCONN_READY);
    if (result == HOSTCONNS_REFUSED) {
        if (!hostconn_put_nack(c, c->frame.tag, PROFD_UNAVAILABLE, e->sentence)) {
            status = profd_error_set(e, PROFD_NO_MEMORY, "no memory for an answer");
        }
    } else {
        c->in_flight++;
        h->memory += size; /* given back when it was written */
        c->bytes = NULL;
    }
    c->stage = c->frame.type == FRAME_ENROLL || c->frame.type == FRAME_RENEW ? FRAMES_ENROLLED : FRAMES_AFTER_ARRIVE;
    hostconn_drop_frame(c);
    return status;
}

/* ENROLL or RENEW: the daemon gets the public key alone. */
static enum profd_status hostconn_rewrite(struct hostconn *c, struct profd_error *e)
{
    uint8_t *bytes;
    size_t n;
    enum profd_status status = hostconn_may_enrol(c, e);

    if (!status) {
        status =
            enrol_rewrite(&c->frame, c->bytes + FRAME_HEADER_SIZE, SSL_get0_peer_certificate(c->ssl), &bytes, &n, e);
    }
    if (!status) {
        free(c->bytes);
        c->bytes = bytes;
        c->frame.length = (uint32_t)(n - FRAME_HEADER_SIZE);
        c->got = c->frame.length;
    }
    return status;
}

enum profd_status hostconn_finish_frame(struct hostconn *c, struct profd_error *e)
{
    const bool waited = c->wait == HOSTCONN_FOR_DAEMON;
    enum profd_status status;

    if (c->frame.type == FRAME_HELLO) {
        status = hostconn_welcome(c, e);
        hostconn_drop_frame(c);
        c->stage = c->ready;
        return status;
    }
    if (!waited && (c->frame.type == FRAME_ENROLL || c->frame.type == FRAME_RENEW)) {
        status = hostconn_rewrite(c, e);
        if (status) {
            return status;
        }
    } else if (!waited) { /* else that was done before */
        status = frames_check_fields(c->frame.type, c->bytes + FRAME_HEADER_SIZE, c->frame.length, e);
        if (status) {
            return status;
        }
        c->frame.length +=
            (uint32_t)frames_add(c->frame.type, &c->host, c->bytes + FRAME_HEADER_SIZE + c->frame.length);
        c->got = c->frame.length;
        frame_encode(&c->frame, c->bytes);
    }
    return hostconn_forward(c, e);
}
