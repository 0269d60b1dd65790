/* DELIVER: segments wait until enough of them are there. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "log/log.h"
#include "net/loop.h"
#include "requests/body.h"
#include "requests/centre_internal.h"
#include "requests/session.h"
#include "requests/sync.h"

#define WAIT_QUIET_MS 50u /* nothing more has come for so long: what waits is all that there is */
#define WAIT_MOST_MS 10000u
#define FLUSH_BYTES (16u << 20)
#define HELD_MOST (64u << 20)
#define HELD_MOST_OF_HOST (16u << 20)
#define BUSY_RETRY_MS 2000u
#define FIRST_CAPACITY 64u

/* Bytes of memory: as received, and as its content says it is when it is not compressed. */
static size_t item_weight(const struct centre_item *x)
{
    return sizeof *x + x->delivery.size + segment_content_size(x->delivery.bytes, x->delivery.size);
}

static void log_receipt(const struct centre_item *x)
{
    const struct store_receipt *r = &x->receipt;

    if (r->outcome == STORE_SEGMENT_PUT_ASIDE && !r->again) {
        log_write(LOG_LEVEL_ERROR, "segment put aside", "segment %" PRIu64 " of a host was put aside: %s",
                  x->delivery.sequence, x->delivery.fault ? x->delivery.fault : "it cannot be read");
    } else if (r->outcome == STORE_SEGMENT_CONFLICT) {
        log_write(LOG_LEVEL_ERROR, "segment conflict",
                  "segment %" PRIu64 " was not counted: its host has sent another with this key; two machines may have "
                  "one identity",
                  x->delivery.sequence);
    } else if (r->relabelled) {
        log_write(LOG_LEVEL_WARNING, "host label",
                  "a host sends another label \"host\" than its certificate's name; the latter is used");
    }
}

/* The machine that sent the counted segment is told of it when it sends ARRIVE next. */
static void note_conflict(struct centre_service *s, const struct centre_item *x)
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

static enum profd_status judge_receipt(struct centre_item *x)
{
    switch (x->receipt.verdict) {
    case STORE_FOREIGN:
        return profd_error_set(&x->error, PROFD_FORBIDDEN, "segment %" PRIu64 ": its epoch belongs to another host",
                               x->delivery.sequence);
    case STORE_UNKNOWN:
        return profd_error_set(&x->error, PROFD_REFUSED, "segment %" PRIu64 ": its host has not sent ARRIVE",
                               x->delivery.sequence);
    default:
        return PROFD_OK;
    }
}

static void count_item(struct delivery_counts *n, const struct centre_item *x)
{
    const struct store_receipt *r = &x->receipt;

    n->refused += x->status != PROFD_OK;
    if (x->status) {
        return;
    }
    n->again += r->again;
    n->conflicts += r->outcome == STORE_SEGMENT_CONFLICT;
    n->put_aside += !r->again && r->outcome == STORE_SEGMENT_PUT_ASIDE;
    n->counted += !r->again && r->outcome == STORE_SEGMENT_COUNTED;
}

static size_t get_share(const struct centre_service *s, const void *key, size_t size)
{
    const size_t *share = hashmap_find(&s->shares, key, size);

    return share ? *share : 0;
}

static bool add_to_share(struct centre_service *s, const void *key, size_t size, size_t weight)
{
    size_t *share = hashmap_find(&s->shares, key, size);

    if (share) {
        *share += weight;
        return true;
    }
    return hashmap_put(&s->shares, key, size, &weight, sizeof weight) != NULL;
}

static void take_from_share(struct centre_service *s, const void *key, size_t size, size_t weight)
{
    size_t *share = hashmap_find(&s->shares, key, size);

    *share -= weight;
    if (!*share) {
        hashmap_remove(&s->shares, share);
    }
}

/* Neither a host nor the hosts of a tenant must take all of the memory: each gets one segment of any size, or several,
 * which leave as much to others. */
static enum profd_status join_share(struct centre_service *s, struct centre_item *x, struct profd_error *e)
{
    const struct host_counts *known = hashmap_find(&s->known, x->delivery.host, sizeof x->delivery.host);
    size_t host, tenant;

    x->tenant = known ? known->tenant : STORE_TENANT;
    host = get_share(s, x->delivery.host, sizeof x->delivery.host);
    tenant = get_share(s, &x->tenant, sizeof x->tenant);
    if (host && (host + x->weight > HELD_MOST_OF_HOST || s->held_bytes + host + x->weight > HELD_MOST)) {
        return profd_error_set(e, PROFD_BUSY,
                               "segments of this host of %zu bytes wait to be stored, and of all hosts of %zu; at most "
                               "%u may, and not more than is left for others",
                               host, s->held_bytes, HELD_MOST_OF_HOST);
    }
    if (tenant && s->held_bytes + tenant + x->weight > HELD_MOST) {
        return profd_error_set(e, PROFD_BUSY,
                               "segments of this tenant of %zu bytes wait to be stored, and of all tenants of %zu; not "
                               "more may than is left for others of %u",
                               tenant, s->held_bytes, HELD_MOST);
    }
    if (!add_to_share(s, x->delivery.host, sizeof x->delivery.host, x->weight)) {
        return profd_error_set(e, PROFD_NO_MEMORY, "no memory for a segment");
    }
    if (!add_to_share(s, &x->tenant, sizeof x->tenant, x->weight)) {
        take_from_share(s, x->delivery.host, sizeof x->delivery.host, x->weight);
        return profd_error_set(e, PROFD_NO_MEMORY, "no memory for a segment");
    }
    return PROFD_OK;
}

static void leave_share(struct centre_service *s, const struct centre_item *x)
{
    take_from_share(s, x->delivery.host, sizeof x->delivery.host, x->weight);
    take_from_share(s, &x->tenant, sizeof x->tenant, x->weight);
}

/* The only answer that lets a host forget a segment: it is durable. */
static void answer_item(struct centre_service *s, struct centre_item *x, const uint8_t *incarnation)
{
    struct conn *c = conn_find(s->config.conns, x->conn);
    const struct store_delivery *d = &x->delivery;
    struct host_counts *known = hashmap_find(&s->known, d->host, sizeof d->host);
    struct message m = {.type = FRAME_ACKNOWLEDGE};

    x->status = x->status ? x->status : judge_receipt(x);
    count_item(&s->counts.segments, x);
    if (known) {
        count_item(&known->segments, x);
    }
    if (!x->status) {
        log_receipt(x);
        note_conflict(s, x);
    }
    if (x->status == PROFD_FULL) {
        s->config.no_space(s->config.context);
    }
    if (c && x->status) {
        sync_nack_job(c, x->tag, x->status, x->error.sentence, BUSY_RETRY_MS);
    } else if (c) {
        m.as.acknowledge.epoch = (struct message_bytes){d->epoch, sizeof d->epoch};
        m.as.acknowledge.sequence = d->sequence;
        m.as.acknowledge.incarnation = (struct message_bytes){incarnation, STORE_INCARNATION_SIZE};
        m.as.acknowledge.number = x->receipt.number;
        m.as.acknowledge.outcome = (uint32_t)x->receipt.outcome;
        conn_answer(c, &m, 0, x->tag);
    }
    if (c) {
        sync_end_job(s->config.sync, c, x->session_job);
    }
    s->held_bytes -= x->weight;
    s->pending--;
    leave_share(s, x);
}

static void on_flush_done(void *context, struct centre_flush *f)
{
    struct centre_service *s = context;

    for (size_t i = 0; i < f->count; i++) {
        answer_item(s, &f->items[i], f->incarnation);
    }
    centre_flush_free(f);
}

void centre_flush_waiting(struct centre_service *s)
{
    if (!s->item_count) {
        return;
    }
    if (!centre_flush_put(s->config.writer, s->items, s->item_count, &s->config.detail, on_flush_done, s)) {
        loop_timer_set(s->timer, WAIT_QUIET_MS);
        return;
    }
    hashmap_clear(&s->hosts);
    s->items = NULL;
    s->item_count = s->item_capacity = s->waiting_bytes = 0;
    loop_timer_clear(s->timer);
}

void centre_on_timer(void *context)
{
    struct centre_service *s = context;
    const uint64_t now = loop_now();

    if (now - s->latest >= WAIT_QUIET_MS || now - s->began >= WAIT_MOST_MS) {
        centre_flush_waiting(s);
    } else if (s->item_count) {
        loop_timer_set(s->timer, WAIT_QUIET_MS - (now - s->latest));
    }
}

static enum profd_status reserve_item(struct centre_service *s, struct profd_error *e)
{
    struct centre_item *items;
    size_t capacity = s->item_capacity ? 2 * s->item_capacity : FIRST_CAPACITY;

    if (s->item_count < s->item_capacity) {
        return PROFD_OK;
    }
    items = reallocarray(s->items, capacity, sizeof *items);
    if (!items) {
        return profd_error_set(e, PROFD_NO_MEMORY, "no memory for a segment");
    }
    s->items = items;
    s->item_capacity = capacity;
    return PROFD_OK;
}

static enum profd_status read_item(struct centre_item *x, struct profd_error *e)
{
    const struct message_deliver *m = &x->message.as.deliver;
    struct store_delivery *d = &x->delivery;
    enum profd_status status = centre_copy(&m->host, "the host's identity", d->host, sizeof d->host, e);

    if (!status) {
        status = centre_copy(&m->epoch, "the segment's epoch", d->epoch, sizeof d->epoch, e);
    }
    if (!status && (m->sequence < 1 || m->sequence > INT64_MAX)) {
        status = profd_error_set(e, PROFD_MALFORMED, "sequence of DELIVER must be 1 to 2^63-1");
    }
    if (!status && m->number > CENTRE_NUMBER_MOST) {
        status = profd_error_set(e, PROFD_MALFORMED, "number of DELIVER must be at most 2^62");
    }
    if (status) {
        return status;
    }
    d->sequence = m->sequence;
    d->number = m->number;
    d->bytes = m->segment.data;
    d->size = m->segment.size;
    d->received = loop_clock();
    x->weight = item_weight(x);
    return PROFD_OK;
}

static void add_item(struct centre_service *s, struct conn *c, const struct centre_item *x)
{
    struct centre_item *to = &s->items[s->item_count++];

    *to = *x;
    to->session_job = session_begin(conn_get_user(c));
    s->held_bytes += x->weight;
    s->waiting_bytes += x->weight;
    s->pending++;
    s->latest = loop_now();
    if (!hashmap_find(&s->hosts, x->delivery.host, STORE_HOST_SIZE)) { /* without memory for it, they wait longer */
        (void)hashmap_put(&s->hosts, x->delivery.host, STORE_HOST_SIZE, "", 1);
    }
    if (s->item_count == 1) {
        s->began = s->latest;
        loop_timer_set(s->timer, WAIT_QUIET_MS);
    }
    if (s->waiting_bytes >= FLUSH_BYTES || s->hosts.count >= LIMIT_GATE_CONNECTIONS / 2) {
        centre_flush_waiting(s);
    }
}

/* One that was not taken. */
static void refuse_item(struct centre_service *s, struct centre_item *x, enum profd_status status)
{
    struct host_counts *known = hashmap_find(&s->known, x->delivery.host, sizeof x->delivery.host);

    x->status = status;
    count_item(&s->counts.segments, x);
    if (known) {
        count_item(&known->segments, x);
    }
    message_done(&x->message);
}

enum profd_status centre_receive_deliver(void *context, struct conn *c, struct conn_frame *f, struct profd_error *e)
{
    struct centre_service *s = context;
    struct centre_item x = {.conn = conn_get_id(c), .tag = f->header.tag};
    enum profd_status status = centre_check(s, c, e);

    if (!status) {
        status = reserve_item(s, e);
    }
    if (!status) {
        status = body_decode(f, &x.message, e);
    }
    if (status) {
        s->counts.segments.refused++;
        return status;
    }
    status = read_item(&x, e);
    if (!status && s->pending && s->held_bytes + x.weight > HELD_MOST) {
        status = profd_error_set(e, PROFD_BUSY, "segments of %zu bytes wait to be stored; at most %u may",
                                 s->held_bytes, HELD_MOST);
    }
    if (!status) {
        status = join_share(s, &x, e);
    }
    if (status) {
        refuse_item(s, &x, status);
        return status;
    }
    add_item(s, c, &x);
    return PROFD_OK;
}
