/* What the daemon says to the load generator. Every answer must belong to something that was asked. */
#include <stdlib.h>
#include <string.h>

#include "load.h"

void load_conn_say(struct load_conn *c, const struct message *m, uint32_t tag)
{
    uint8_t *frame, *grown;
    size_t size;

    if (message_encode(m, 0, tag, &frame, &size, NULL) != PROFD_OK) {
        abort();
    }
    grown = realloc(c->control, c->control_size + size);
    if (!grown) {
        abort();
    }
    memcpy(grown + c->control_size, frame, size);
    c->control = grown;
    c->control_size += size;
    free(frame);
}

static void ask(struct load_conn *c)
{
    struct message m = {.type = FRAME_QUERY};

    m.as.query.target = c->load->options.target;
    m.as.query.if_none_match = "";
    load_conn_say(c, &m, ++c->tag);
    load_conn_write(c);
}

static void take_welcome(struct load_conn *c, const struct message_welcome *w)
{
    c->state = CONN_UP;
    c->attempts = 0;
    c->load->up++;
    if (w->in_flight_max < c->window) {
        load_complain(c->load, "the window is larger than the daemon's in_flight_max");
    }
    if (c->asker) {
        ask(c);
    }
}

static struct load_slot *find_slot(struct load_conn *c, uint32_t tag)
{
    for (unsigned i = 0; i < c->window; i++) {
        struct load_slot *s = &c->slots[(tag + i) % c->window];
        if (s->tag == tag && s->state == SLOT_SENT) {
            return s;
        }
    }
    load_complain(c->load, "an answer with a tag that nothing on its way has");
    return NULL;
}

static void take_ack(struct load_conn *c, uint32_t tag, bool duplicate)
{
    struct load_slot *s = find_slot(c, tag);

    if (!s) {
        return;
    }
    if (duplicate && !s->attempts && !c->load->reconnects) {
        load_complain(c->load, "an upload sent once was acknowledged as a duplicate");
    }
    s->state = SLOT_FREE;
    c->in_flight--;
    c->load->acked++;
    c->load->acked_in_second++;
    c->load->duplicates += duplicate;
    load_latency_add(&c->load->latency, load_now() - s->born);
}

static void take_nack(struct load_conn *c, uint32_t tag, const struct message_nack *n)
{
    struct load_slot *s;
    uint64_t pause;

    c->load->nacked++;
    c->load->busy += n->status == PROFD_BUSY;
    if (!n->retry) {
        load_complain(c->load, n->sentence);
        return;
    }
    if (tag == 0 || c->state != CONN_UP || c->asker) { /* of the connection, which ends now */
        c->load->refused++;
        if (c->asker && tag != 0) {
            ask(c);
        }
        return;
    }
    s = find_slot(c, tag);
    if (!s) {
        return;
    }
    s->state = SLOT_WAITING;
    s->attempts++;
    /* Not before the daemon said, twice as long each time, and up to as much again by chance. */
    pause = (uint64_t)(n->retry_after_ms ? n->retry_after_ms : 50) * 1000000u
            << (s->attempts < 6 ? s->attempts - 1 : 5);
    s->due = load_now() + pause + load_random(c->load) % (pause + 1);
}

static void take_want(struct load_conn *c, const struct message_want_object *o)
{
    struct message m = {.type = FRAME_DECLINE};

    m.as.decline.build_id = o->build_id;
    m.as.decline.reason = "the load generator has no executables";
    c->load->declined++;
    load_conn_say(c, &m, 0);
    load_conn_write(c);
}

void load_take_frame(struct load_conn *c, const struct frame_header *f, const uint8_t *payload)
{
    struct message m;
    struct profd_error e;

    if (f->type == FRAME_ACK && f->length == 0) {
        take_ack(c, f->tag, false);
        return;
    }
    if (f->type == FRAME_REPLY) {
        if (!c->asker || f->tag != c->tag) {
            load_complain(c->load, "a REPLY that nobody asked for");
        }
        if (f->flags & FRAME_FLAG_LAST) {
            c->load->answers++;
            if (c->load->filling) {
                ask(c);
            }
        }
        return;
    }
    if (message_decode(f->type, payload, f->length, &m, &e) != PROFD_OK) {
        load_complain(c->load, e.sentence);
        return;
    }
    if (f->type == FRAME_WELCOME && c->state == CONN_GREETING) {
        take_welcome(c, &m.as.welcome);
    } else if (f->type == FRAME_ACK && c->state == CONN_UP) {
        take_ack(c, f->tag, m.as.ack.duplicate);
    } else if (f->type == FRAME_NACK) {
        take_nack(c, f->tag, &m.as.nack);
    } else if (f->type == FRAME_WANT_OBJECT && c->state == CONN_UP) {
        take_want(c, &m.as.want_object);
    } else {
        load_complain(c->load, "a frame that does not belong here");
    }
    message_done(&m);
}
