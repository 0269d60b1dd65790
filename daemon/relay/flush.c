#include "relay/flush.h"

#include <string.h>
#include <time.h>

#include "proto/frame.h"
#include "proto/limits.h"
#include "proto/noun.h"
#include "proto/segment.h"
#include "relay/connect.h"
#include "relay/identity.h"
#include "relay/symbols.h"
#include "relay/talk.h"

#define INCARNATION_SIZE 16
#define ACKNOWLEDGE_MS 120000 /* the centre sums up for a while before it commits */
#define CENTRE_ANSWER_MAX (64u << 10)

/* A segment that was delivered. */
struct flush_key {
    uint8_t epoch[SEGMENT_EPOCH_SIZE];
    uint64_t sequence;
    bool answered;
};

/* The state of one connection. */
struct flush_run {
    const struct config *config;
    struct talk profd, centre;
    struct message_fetch fetch; /* the next one */
    uint8_t incarnation[INCARNATION_SIZE];
    uint8_t conflict[SEGMENT_EPOCH_SIZE];  /* an epoch of this host that another machine has, too */
    struct flush_key keys[FLUSH_SEGMENTS]; /* of the segments that were delivered: of tag 1 first */
    unsigned waiting;                      /* segments without an answer */
    bool last;                             /* no more is fetched: there is none, or the centre refused one */
    enum profd_status refused;
    struct profd_error refusal; /* if refused */
    bool attests;               /* the centre takes parsed objects */
    struct flush *out;
};

static enum profd_status flush_fetch(struct flush_run *f, const struct message_fetch *fetch, struct message *segment,
                                     struct profd_error *e)
{
    const struct message request = {.type = FRAME_FETCH, .as.fetch = *fetch};

    return talk_ask(&f->profd, &request, FRAME_SEGMENT, segment, e);
}

/* The error of the centre for the status page of profd; *arrive gets what its database says. */
static enum profd_status flush_report(struct flush_run *f, const char *error, struct message_arrive *arrive,
                                      struct profd_error *e)
{
    struct message segment;
    TRY(flush_fetch(f, &(struct message_fetch){.error = error}, &segment, e));

    arrive->number = segment.as.segment.number;
    arrive->held = segment.as.segment.held;
    arrive->oldest = segment.as.segment.oldest;
    message_done(&segment);
    return PROFD_OK;
}

static enum profd_status flush_check_admit(const struct message_admit *m, struct profd_error *e)
{
    if (m->incarnation.size != INCARNATION_SIZE) {
        return profd_error_set(e, PROFD_MALFORMED, "the centre's incarnation has %zu bytes, not %d",
                               m->incarnation.size, INCARNATION_SIZE);
    }
    if (m->conflict.size && m->conflict.size != SEGMENT_EPOCH_SIZE) {
        return profd_error_set(e, PROFD_MALFORMED, "the centre's conflict has %zu bytes, not %d", m->conflict.size,
                               SEGMENT_EPOCH_SIZE);
    }
    return PROFD_OK;
}

/* Connects to the centre and presents this host. */
static enum profd_status flush_arrive(struct flush_run *f, const struct message_arrive *known, struct profd_error *e)
{
    char machine[IDENTITY_MACHINE_SIZE];
    struct timespec now;
    struct message arrive = {.type = FRAME_ARRIVE,
                             .as.arrive = {.name = "",
                                           .tenant = "",
                                           .machine = identity_machine(machine),
                                           .version = PROFD_VERSION,
                                           .number = known->number,
                                           .segment_oldest = SEGMENT_VERSION,
                                           .segment_newest = SEGMENT_VERSION,
                                           .held = known->held,
                                           .oldest = known->oldest}};
    struct message admit;
    enum profd_status status = connect_centre(f->config, NULL, &f->centre.stream, e);

    if (!status) {
        status = talk_greet(&f->centre, e);
    }
    clock_gettime(CLOCK_REALTIME, &now);
    arrive.as.arrive.clock = (uint64_t)now.tv_sec * UINT64_C(1000000000) + (uint64_t)now.tv_nsec;
    if (!status) {
        status = talk_ask(&f->centre, &arrive, FRAME_ADMIT, &admit, e);
        f->out->renew = status == PROFD_UNAUTHORIZED; /* perhaps the certificate has expired by the centre's clock */
    }
    if (status) {
        return status;
    }
    status = flush_check_admit(&admit.as.admit, e);
    if (!status) {
        memcpy(f->incarnation, admit.as.admit.incarnation.data, sizeof f->incarnation);
        f->fetch = (struct message_fetch){.incarnation = {f->incarnation, sizeof f->incarnation},
                                          .backup = admit.as.admit.backup,
                                          .error = "",
                                          .went_back = admit.as.admit.went_back,
                                          .number = admit.as.admit.number};
        if (admit.as.admit.conflict.size) {
            memcpy(f->conflict, admit.as.admit.conflict.data, sizeof f->conflict);
            f->fetch.conflict = (struct message_bytes){f->conflict, sizeof f->conflict};
        }
        f->attests = admit.as.admit.attests;
        f->out->renew = admit.as.admit.renew;
        f->out->has_slot = true;
        f->out->wait_ms = admit.as.admit.wait_ms;
    }
    message_done(&admit);
    return status;
}

static enum profd_status flush_check_segment(const struct message_segment *m, struct profd_error *e)
{
    if (m->epoch.size != SEGMENT_EPOCH_SIZE) {
        return profd_error_set(e, PROFD_PROTOCOL, "profd: the epoch of a segment has %zu bytes, not %d", m->epoch.size,
                               SEGMENT_EPOCH_SIZE);
    }
    return PROFD_OK;
}

/* Delivers the next segment, if there is one. */
static enum profd_status flush_deliver(struct flush_run *f, struct profd_error *e)
{
    struct message segment, deliver = {.type = FRAME_DELIVER};
    enum profd_status status = flush_fetch(f, &f->fetch, &segment, e);

    if (status) {
        return status;
    }
    f->fetch.after = segment.as.segment.id;
    f->fetch.through = segment.as.segment.through;
    f->last = !segment.as.segment.id;
    if (!f->last) {
        status = flush_check_segment(&segment.as.segment, e);
    }
    if (!f->last && !status) {
        struct flush_key *key = &f->keys[f->out->delivered];

        key->sequence = segment.as.segment.sequence;
        memcpy(key->epoch, segment.as.segment.epoch.data, sizeof key->epoch);
        deliver.as.deliver.epoch = segment.as.segment.epoch;
        deliver.as.deliver.sequence = segment.as.segment.sequence;
        deliver.as.deliver.segment = segment.as.segment.segment;
        deliver.as.deliver.number = segment.as.segment.number;
        f->waiting++;
        f->out->delivered++;
        status = talk_send(&f->centre, &deliver, f->out->delivered, e);
    }
    message_done(&segment);
    return status;
}

/* Marks the segment that an answer is of as answered. PROTOCOL: no segment with this tag waits, or the answer states
 * another key. */
static enum profd_status flush_find_key(struct flush_run *f, const struct message *answer, uint32_t tag,
                                        struct profd_error *e)
{
    struct flush_key *key = tag - 1 < f->out->delivered ? &f->keys[tag - 1] : NULL;
    const struct message_acknowledge *a = &answer->as.acknowledge;

    if (!key || key->answered ||
        (answer->type == FRAME_ACKNOWLEDGE && (a->sequence != key->sequence || a->epoch.size != sizeof key->epoch ||
                                               memcmp(a->epoch.data, key->epoch, sizeof key->epoch) != 0))) {
        return profd_error_set(e, PROFD_PROTOCOL,
                               "the centre sent %s with tag %u, which is not of a segment that was delivered and waits",
                               frame_type_name(answer->type), tag);
    }
    key->answered = true;
    return PROFD_OK;
}

/* Takes one answer of the centre and passes an acknowledgement on to profd. */
static enum profd_status flush_take_answer(struct flush_run *f, struct profd_error *e)
{
    struct message answer, ack;
    uint32_t tag;
    enum profd_status status = talk_take(&f->centre, ACKNOWLEDGE_MS, &answer, &tag, e);

    if (status) {
        return status;
    }
    if (answer.type == FRAME_NACK && !tag) { /* it concerns the connection */
        status = talk_explain_nack(&f->centre, &answer, e);
    } else if (answer.type == FRAME_ACKNOWLEDGE || answer.type == FRAME_NACK) {
        status = flush_find_key(f, &answer, tag, e);
    } else {
        status =
            profd_error_set(e, PROFD_PROTOCOL, "the centre answered DELIVER with %s", frame_type_name(answer.type));
    }
    if (!status && answer.type == FRAME_ACKNOWLEDGE) {
        status = talk_ask(&f->profd, &answer, FRAME_ACK, &ack, e);
        if (!status) {
            message_done(&ack);
            f->out->acknowledged++;
        }
    } else if (!status) {
        f->refused = talk_explain_nack(&f->centre, &answer, &f->refusal);
        f->last = true;
        if (answer.as.nack.retry_after_ms > f->out->wait_ms) {
            f->out->wait_ms = answer.as.nack.retry_after_ms;
        }
    }
    f->waiting -= !status;
    message_done(&answer);
    return status;
}

/* Up to FLUSH_SEGMENTS: delivers what profd has, which is at most what it may have sealed at a time, then waits for the
 * answers; a segment that is acknowledged makes place for the next. */
static enum profd_status flush_exchange(struct flush_run *f, struct profd_error *e)
{
    enum profd_status status = PROFD_OK;
    unsigned before;

    do {
        before = f->out->acknowledged;
        f->last = false;
        while (!status && !f->last && f->out->delivered < FLUSH_SEGMENTS) {
            status = flush_deliver(f, e);
            while (!status && f->waiting && stream_is_readable(&f->centre.stream)) {
                status = flush_take_answer(f, e);
            }
        }
        while (!status && f->waiting) {
            status = flush_take_answer(f, e);
        }
        f->fetch.after = 0;
    } while (!status && !f->refused && f->out->acknowledged > before && f->out->delivered < FLUSH_SEGMENTS);
    return status;
}

enum profd_status flush_run(const struct config *c, const char *last_error, struct flush *out, struct profd_error *e)
{
    struct flush_run f = {.config = c,
                          .profd = talk_of("profd", LIMIT_FRAME_PAYLOAD),
                          .centre = talk_of("the centre", CENTRE_ANSWER_MAX),
                          .out = out};
    struct profd_error ignored;
    struct message_arrive known = {.number = 0};
    enum profd_status status;
    bool reached;

    *out = (struct flush){0};
    status = stream_open_unix(c->socket, &f.profd.stream, e);
    if (!status) {
        status = talk_greet(&f.profd, e);
    }
    if (!status) {
        status = flush_report(&f, last_error, &known, e);
    }
    reached = !status;
    if (!status) {
        status = flush_arrive(&f, &known, e);
    }
    if (!status) {
        status = flush_exchange(&f, e);
    }
    if (!status && !f.refused && f.attests) {
        (void)symbols_send(&f.profd, &f.centre, &out->symbols); /* asked for again */
    }
    if (!status && f.refused) {
        status = f.refused;
        *e = f.refusal;
    }
    if (status && reached) {
        (void)flush_report(&f, e->sentence, &known, &ignored); /* if profd has gone, there is no one to tell */
    }
    stream_close(&f.centre.stream);
    stream_close(&f.profd.stream);
    return status;
}
