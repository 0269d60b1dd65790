/* The frames of one connection: memory for a request, what the gate answers itself, output. */
#include <stdlib.h>
#include <string.h>

#include "gate/hostconns_internal.h"
#include "proto/message.h"

/* Memory is given in order: a large frame must not wait for ever behind small ones. One alone may have any size. */
bool hostconn_take_memory(struct hostconn *c)
{
    struct hostconns *h = c->all;
    const size_t need = FRAME_HEADER_SIZE + (size_t)c->frame.length + FRAMES_ADDED_MAX;
    const struct hostconn *first = TAILQ_FIRST(&h->memory_queue);

    if ((first && first != c) || (h->memory && h->memory + need > LIMIT_GATE_BYTES)) {
        if (c->wait != HOSTCONN_FOR_MEMORY) {
            c->wait = HOSTCONN_FOR_MEMORY;
            TAILQ_INSERT_TAIL(&h->memory_queue, c, waits);
        }
        return false;
    }
    if (c->wait == HOSTCONN_FOR_MEMORY) {
        c->wait = HOSTCONN_READY;
        TAILQ_REMOVE(&h->memory_queue, c, waits);
    }
    c->bytes = malloc(need);
    if (!c->bytes) {
        return false;
    }
    c->charge = need;
    h->memory += need;
    return true;
}

void hostconn_drop_frame(struct hostconn *c)
{
    free(c->bytes);
    c->all->memory -= c->charge;
    c->bytes = NULL;
    c->charge = 0;
    c->header_got = c->got = 0;
}

enum profd_status hostconn_begin_frame(struct hostconn *c, struct profd_error *e)
{
    enum profd_status status = frame_decode(c->header, &c->frame, e);

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
    if (hello.as.hello.version_oldest > FRAME_VERSION || hello.as.hello.version_newest < FRAME_VERSION_OLDEST) {
        status = profd_error_set(
            e, PROFD_UNKNOWN_VERSION, "versions %u to %u of the protocol, this gate speaks %d to %d",
            hello.as.hello.version_oldest, hello.as.hello.version_newest, FRAME_VERSION_OLDEST, FRAME_VERSION);
    } else if (!hostconn_put_message(c, &welcome, c->frame.tag)) {
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
        if (c->wait != HOSTCONN_FOR_DAEMON) {
            c->wait = HOSTCONN_FOR_DAEMON;
            TAILQ_INSERT_TAIL(&h->daemon_queue, c, waits);
        }
        return PROFD_OK;
    }
    if (c->wait == HOSTCONN_FOR_DAEMON) {
        c->wait = HOSTCONN_READY;
        TAILQ_REMOVE(&h->daemon_queue, c, waits);
    }
    if (result == HOSTCONNS_REFUSED) {
        if (!hostconn_put_nack(c, c->frame.tag, PROFD_UNAVAILABLE, e->sentence)) {
            status = profd_error_set(e, PROFD_NO_MEMORY, "no memory for an answer");
        }
    } else {
        c->in_flight++;
        h->memory -= c->charge - size; /* the rest is given back when it was written */
        c->bytes = NULL;
        c->charge = 0;
    }
    c->stage = FRAMES_AFTER_ARRIVE;
    hostconn_drop_frame(c);
    return status;
}

enum profd_status hostconn_finish_frame(struct hostconn *c, struct profd_error *e)
{
    const bool waited = c->wait == HOSTCONN_FOR_DAEMON;
    enum profd_status status;

    if (c->frame.type == FRAME_HELLO) {
        status = hostconn_welcome(c, e);
        hostconn_drop_frame(c);
        c->stage = FRAMES_BEFORE_ARRIVE;
        return status;
    }
    if (!waited) { /* else that was done before */
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
