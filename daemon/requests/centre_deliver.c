/* DELIVER: a segment of a host, which the gate passes on. */
#include <stdlib.h>
#include <string.h>

#include "net/loop.h"
#include "requests/body.h"
#include "requests/centre_internal.h"
#include "requests/session.h"
#include "requests/sync.h"

#define BUSY_RETRY_MS 2000u

/* A segment until it is answered. */
struct centre_delivery {
    struct intake_parcel parcel; /* first */
    struct intake_item item;
    struct centre_service *service;
    conn_id conn;
    uint32_t tag;
    uint64_t session_job;
    struct message message; /* owns the bytes */
};

/* The machine that sent the counted segment is told of it when it sends ARRIVE next. */
static void note_conflict(struct centre_service *s, const struct intake_item *x)
{
    const struct store_delivery *d = &x->delivery;
    uint8_t *epoch = hashmap_find(&s->conflicts, d->host, sizeof d->host);

    if (x->receipt.outcome != STORE_SEGMENT_CONFLICT) {
        return;
    }
    if (epoch) {
        memcpy(epoch, d->epoch, sizeof d->epoch);
    } else { /* without memory for it, the next conflict is noted */
        (void)hashmap_put(&s->conflicts, d->host, sizeof d->host, d->epoch, sizeof d->epoch);
    }
}

/* The only answer that lets a host forget a segment: it is durable. */
static void delivery_done(struct intake_parcel *p)
{
    struct centre_delivery *x = (struct centre_delivery *)p;
    struct centre_service *s = x->service;
    struct conn *c = conn_find(s->config.conns, x->conn);
    const struct store_delivery *d = &x->item.delivery;
    const enum profd_status status = p->status ? p->status : x->item.status;
    const struct profd_error *e = p->status ? &p->error : &x->item.error;
    struct message m = {.type = FRAME_ACKNOWLEDGE};

    if (!status) {
        note_conflict(s, &x->item);
    }
    if (c && status) {
        sync_nack_job(c, x->tag, status, e->sentence, BUSY_RETRY_MS);
    } else if (c) {
        m.as.acknowledge.epoch = (struct message_bytes){d->epoch, sizeof d->epoch};
        m.as.acknowledge.sequence = d->sequence;
        m.as.acknowledge.incarnation = (struct message_bytes){p->centre.incarnation, sizeof p->centre.incarnation};
        m.as.acknowledge.number = x->item.receipt.number;
        m.as.acknowledge.outcome = (uint32_t)x->item.receipt.outcome;
        conn_answer(c, &m, 0, x->tag);
    }
    if (c) {
        sync_end_job(s->config.sync, c, x->session_job);
    }
    message_done(&x->message);
    free(x);
}

static enum profd_status delivery_read(struct centre_delivery *x, struct profd_error *e)
{
    const struct message_deliver *m = &x->message.as.deliver;
    struct store_delivery *d = &x->item.delivery;
    const struct host_counts *known;
    TRY(centre_copy(&m->host, "the host's identity", d->host, sizeof d->host, e));
    memcpy(x->parcel.host, d->host, sizeof x->parcel.host);
    TRY(centre_copy(&m->epoch, "the segment's epoch", d->epoch, sizeof d->epoch, e));
    if (m->sequence < 1 || m->sequence > INT64_MAX) {
        return profd_error_set(e, PROFD_MALFORMED, "sequence of DELIVER must be 1 to 2^63-1");
    }
    if (m->number > CENTRE_NUMBER_MOST) {
        return profd_error_set(e, PROFD_MALFORMED, "number of DELIVER must be at most 2^62");
    }
    d->sequence = m->sequence;
    d->number = m->number;
    d->bytes = m->segment.data;
    d->size = m->segment.size;
    d->received = loop_clock();
    known = hashmap_find(intake_get_hosts(x->service->config.intake), d->host, sizeof d->host);
    x->parcel.tenant = known ? known->tenant : STORE_TENANT;
    x->parcel.name = "";
    return intake_reserve(x->service->config.intake, &x->parcel, e);
}

enum profd_status centre_receive_deliver(void *context, struct conn *c, struct conn_frame *f, struct profd_error *e)
{
    struct centre_service *s = context;
    struct centre_delivery *x = NULL;
    enum profd_status status = centre_check(s, c, e);

    if (!status) {
        x = calloc(1, sizeof *x);
        status = x ? PROFD_OK : profd_error_set(e, PROFD_NO_MEMORY, "no memory for a segment");
    }
    if (!status) {
        status = body_decode(f, &x->message, e);
    }
    if (status) {
        free(x);
        intake_get_counts(s->config.intake)->segments.refused++;
        return status;
    }
    x->service = s;
    x->conn = conn_get_id(c);
    x->tag = f->header.tag;
    x->item.keyed = true;
    x->parcel.items = &x->item;
    x->parcel.count = 1;
    x->parcel.done = delivery_done;
    status = delivery_read(x, e);
    if (status) {
        intake_refuse(s->config.intake, x->parcel.host, 1);
        message_done(&x->message);
        free(x);
        return status;
    }
    x->session_job = session_begin(conn_get_user(c));
    intake_put(s->config.intake, &x->parcel);
    return PROFD_OK;
}
