#include "requests/relay.h"

#include <inttypes.h>
#include <nettle/sha2.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/random.h>

#include "base/log.h"
#include "core/container.h"
#include "net/loop.h"
#include "requests/requests.h"

#define NUMBER_MOST (UINT64_C(1) << 62) /* a centre cannot use up the numbers of the database */

/* One FETCH, ACKNOWLEDGE or FETCH_OBJECT, until it is answered. */
struct relay_request {
    struct writer_job job;
    struct relay_service *service;
    struct caller caller;

    bool met; /* the centre has answered: the next members are known */
    bool has_centre;
    uint8_t centre[STORE_CENTRE_SIZE], incarnation[STORE_INCARNATION_SIZE];
    uint64_t moves; /* since the start: as FETCH states it, then the actual number */
    uint64_t backup, after, through;
    bool renewed;                 /* the epoch was the current one, and was replaced */
    struct store_verdict verdict; /* of the centre, about the database */
    uint64_t sealed;
    bool apart;                 /* the held counts count on this host only */
    struct store_relay ledger;  /* after store_relay_resolve, before anything is sealed */
    uint64_t again;             /* uploads that a restored centre gets again */
    struct store_segment found; /* bytes: owned; id 0: none */

    struct store_acknowledgement acknowledgement;

    struct relay_object object; /* bytes NULL: there is none */
    uint64_t offset;            /* of the piece that the relay asks for */
};

static enum profd_status relay_object_run(struct writer_job *job, struct store *store, struct profd_error *e)
{
    struct relay_object *o = &container_of(job, struct relay_request, job)->object;
    const enum profd_status status = store_get_shared_object(store, o->id.text, &o->bytes, &o->size, e);
    struct sha256_ctx digest;
    uint8_t *bytes;
    size_t size;

    if (status || !o->bytes) {
        return status == PROFD_NOT_FOUND ? PROFD_OK : status;
    }
    /* An object that is too large with its instructions may be offered without them. */
    if (o->size > LIMIT_PARSED_OBJECT && !object_instructions_remove(o->bytes, o->size, &bytes, &size, NULL)) {
        free(o->bytes);
        o->bytes = bytes;
        o->size = size;
    }
    sha256_init(&digest);
    sha256_update(&digest, o->size, o->bytes);
    sha256_digest(&digest, sizeof o->hash, o->hash);
    return PROFD_OK;
}

/* Makes the answer with the piece at this offset. */
static struct message make_piece(const struct relay_object *o, uint64_t offset)
{
    struct message m = {.type = FRAME_PARSED, .as.parsed = {.size = o->size}};
    const uint64_t at = offset < o->size ? offset : o->size, rest = o->size - at;

    if (o->bytes) {
        m.as.parsed.hash = (struct message_bytes){o->hash, sizeof o->hash};
        m.as.parsed.piece =
            (struct message_bytes){o->bytes + at, rest < LIMIT_PARSED_PIECE ? (size_t)rest : LIMIT_PARSED_PIECE};
    }
    return m;
}

/* Keeps the object if the relay may fetch more of it. */
static void keep_object(struct relay_service *s, struct relay_object *o, uint64_t offset)
{
    if (o->bytes != s->object.bytes) {
        free(s->object.bytes);
    }
    if (o->size > LIMIT_PARSED_OBJECT || o->size <= LIMIT_PARSED_PIECE || offset >= o->size - LIMIT_PARSED_PIECE) {
        free(o->bytes);
        *o = (struct relay_object){.bytes = NULL};
    }
    s->object = *o;
}

enum profd_status relay_begin_epoch(struct store *store, uint8_t epoch[SEGMENT_EPOCH_SIZE], struct profd_error *e)
{
    const int64_t now = loop_clock();
    const uint64_t seconds = (uint64_t)now / 1000000000u;
    uint8_t drawn[SEGMENT_EPOCH_SIZE];

    for (unsigned i = 0; i < 4; i++) {
        drawn[i] = (uint8_t)(seconds >> (24 - 8 * i));
    }
    FAIL_IF(getrandom(drawn + 4, sizeof drawn - 4, 0) != (ssize_t)sizeof drawn - 4, e, PROFD_IO,
            "there are no random numbers for an epoch");
    enum profd_status status = store_relay_begin(store, drawn, now, e);
    if (!status) {
        memcpy(epoch, drawn, sizeof drawn);
    }
    return status;
}

enum profd_status relay_move(struct relay_service *s, struct store *store, uint64_t *withdrawn, struct profd_error *e)
{
    TRY(store_relay_move(store, withdrawn, e));
    s->moves++;
    return s->active ? relay_begin_epoch(store, s->epoch, e) : PROFD_OK;
}

static bool relay_take(void *context, const struct store_segment *segment)
{
    struct relay_request *r = context;
    uint8_t *bytes = malloc(segment->size + 1);

    if (!bytes) {
        r->job.status = profd_error_set(&r->job.error, PROFD_NO_MEMORY, "no memory for an upload");
        return false;
    }
    memcpy(bytes, segment->bytes, segment->size);
    r->found = *segment;
    r->found.bytes = bytes;
    return false;
}

/* A full disk does not stop it: sealing folds parts, which frees space. */
static enum profd_status relay_fetch_run(struct writer_job *job, struct store *store, struct profd_error *e)
{
    struct relay_request *r = container_of(job, struct relay_request, job);
    const uint64_t moves = r->moves;

    r->moves = r->service->moves;
    if (!r->met) { /* the relay cannot send anything, so nothing is sealed */
        return store_get_relay(store, &r->ledger, e);
    }
    /* the relay may have asked the old centre */
    FAIL_IF(moves != r->moves, e, PROFD_BUSY, "this host was moved to another centre: connect to that centre first");
    TRY(store_relay_resolve(store, &r->verdict, &r->apart, e));
    TRY(store_relay_meet(store, r->has_centre ? r->centre : NULL, r->incarnation, r->backup, &r->again, e));
    /* Held counts may have been released. All outgoing uploads are counted once in a round. */
    TRY(r->through ? store_get_relay_head(store, &r->ledger, e) : store_get_relay(store, &r->ledger, e));
    r->through = r->through ? r->through : r->ledger.newest;
    TRY(store_seal_segments(store, r->through, loop_clock(), &r->sealed, e));
    TRY(store_each_segment(store, r->after, relay_take, r, e));
    return job->status; /* of relay_take */
}

/* Acknowledges all uploads in one transaction. */
static void relay_acknowledge_run(struct store *store, struct writer_job *const *jobs, size_t n)
{
    struct store_acknowledgement *list = calloc(n, sizeof *list);
    struct profd_error e = {""};
    enum profd_status status = list ? PROFD_OK : profd_no_memory(&e);

    for (size_t i = 0; i < n && list; i++) {
        list[i] = container_of(jobs[i], struct relay_request, job)->acknowledgement;
    }
    status = status ? status : store_acknowledge_segments(store, list, n, loop_clock(), &e);
    for (size_t i = 0; i < n; i++) {
        struct relay_request *r = container_of(jobs[i], struct relay_request, job);
        struct relay_service *s = r->service;

        jobs[i]->status = status;
        jobs[i]->error = e;
        /* Two machines have made uploads of the current epoch. */
        if (!status && list[i].outcome == STORE_SEGMENT_CONFLICT && !memcmp(list[i].epoch, s->epoch, sizeof s->epoch)) {
            jobs[i]->status = relay_begin_epoch(store, s->epoch, &jobs[i]->error);
            r->renewed = !jobs[i]->status;
        }
    }
    free(list);
}

static void relay_log_renewed(const struct relay_request *r)
{
    if (r->renewed) {
        log_write(
            LOG_LEVEL_ERROR, NULL,
            "another machine has sent uploads as this host: further uploads get a new epoch; give each machine its "
            "own token");
    }
}

/* Frees the request; m is its answer if it succeeded. */
static void relay_answer(struct relay_request *r, const struct message *m)
{
    caller_answer(r->service->shared, &r->caller, m, caller_status(r->job.status), r->job.error.sentence, 1000);
    free((void *)(uintptr_t)r->found.bytes);
    free(r);
}

static void relay_fetch_done(struct writer_job *job)
{
    struct relay_request *r = container_of(job, struct relay_request, job);
    struct message m = {.type = FRAME_SEGMENT};
    struct message_segment *out = &m.as.segment;

    if (!r->job.status && r->again) {
        log_write(LOG_LEVEL_NOTICE, NULL,
                  "the centre was restored from a backup: %" PRIu64 " acknowledged uploads are sent again", r->again);
    }
    if (!r->job.status && r->apart) {
        log_write(
            LOG_LEVEL_NOTICE, NULL,
            "this host was restored from a backup, and the centre has a later state: counts of live processes until "
            "the start count on this host only");
    }
    relay_log_renewed(r);
    r->service->counts.fetched += !r->job.status && r->found.id;
    out->id = r->found.id;
    out->sequence = r->found.sequence;
    out->segment = (struct message_bytes){r->found.bytes, r->found.size};
    out->epoch = (struct message_bytes){r->found.epoch, r->found.id ? sizeof r->found.epoch : 0};
    out->through = r->through;
    out->number = r->ledger.number;
    out->held = r->ledger.held;
    out->oldest = (uint64_t)(r->ledger.oldest ? r->ledger.oldest : loop_clock());
    out->centre = (struct message_bytes){r->ledger.centre, r->ledger.has_centre ? sizeof r->ledger.centre : 0};
    out->incarnation = (struct message_bytes){r->ledger.incarnation, r->ledger.met ? sizeof r->ledger.incarnation : 0};
    out->moves = r->moves;
    relay_answer(r, &m);
}

static void relay_acknowledge_done(struct writer_job *job)
{
    struct relay_request *r = container_of(job, struct relay_request, job);
    const struct message ack = {.type = FRAME_ACK};

    relay_log_renewed(r);
    if (!r->job.status && r->acknowledgement.outcome != STORE_SEGMENT_COUNTED) {
        log_write(LOG_LEVEL_ERROR, NULL, "the centre did not count upload %" PRIu64 ": %s", r->acknowledgement.sequence,
                  r->acknowledgement.outcome == STORE_SEGMENT_CONFLICT
                      ? "another machine with this host's identity sent another upload with this key"
                      : "the centre could not read the upload, and put it aside");
    }
    relay_answer(r, &ack);
}

static void relay_object_done(struct writer_job *job)
{
    struct relay_request *r = container_of(job, struct relay_request, job);
    struct relay_service *s = r->service;
    struct relay_object fetched = r->object;
    const uint64_t offset = r->offset;
    const struct message m = make_piece(&fetched, offset);

    relay_answer(r, &m);
    keep_object(s, &fetched, offset);
}

static const struct writer_job_type relay_fetch_type = {.run = relay_fetch_run, .done = relay_fetch_done};
static const struct writer_job_type relay_acknowledge_type = {.run_all = relay_acknowledge_run,
                                                              .done = relay_acknowledge_done};
static const struct writer_job_type relay_object_type = {.run = relay_object_run, .done = relay_object_done};

/* Copies bytes that must have this size. */
static enum profd_status relay_copy(const struct message_bytes *from, const char *what, uint8_t *to, size_t size,
                                    struct profd_error *e)
{
    FAIL_IF(from->size != size, e, PROFD_MALFORMED, "%s has %zu bytes, not %zu", what, from->size, size);
    memcpy(to, from->data, size);
    return PROFD_OK;
}

static enum profd_status relay_read_fetch(struct relay_request *r, const struct message_fetch *m, struct profd_error *e)
{
    r->met = m->incarnation.size > 0;
    r->backup = m->backup;
    r->after = m->after;
    r->through = m->through;
    r->moves = m->moves;
    r->verdict = (struct store_verdict){.went_back = m->went_back, .number = m->number};
    FAIL_IF(m->number > NUMBER_MOST, e, PROFD_MALFORMED, "number of FETCH is above 2^62");
    FAIL_IF(m->backup > INT64_MAX || m->after > INT64_MAX || m->through > INT64_MAX, e, PROFD_MALFORMED,
            "a number of FETCH is above 2^63-1");
    r->has_centre = m->centre.size > 0;
    if (r->has_centre && relay_copy(&m->centre, "the centre's name", r->centre, sizeof r->centre, e)) {
        return PROFD_MALFORMED;
    }
    return r->met ? relay_copy(&m->incarnation, "the centre's incarnation", r->incarnation, sizeof r->incarnation, e)
                  : PROFD_OK;
}

static enum profd_status relay_read_acknowledge(struct relay_request *r, const struct message_acknowledge *m,
                                                struct profd_error *e)
{
    struct store_acknowledgement *a = &r->acknowledgement;
    TRY(relay_copy(&m->epoch, "the epoch", a->epoch, sizeof a->epoch, e));
    TRY(relay_copy(&m->incarnation, "the centre's incarnation", a->incarnation, sizeof a->incarnation, e));
    FAIL_IF(m->sequence < 1 || m->sequence > INT64_MAX || m->number < 1 || m->number > INT64_MAX, e, PROFD_MALFORMED,
            "sequence and number of ACKNOWLEDGE must be 1 to 2^63-1");
    FAIL_IF(m->outcome >= STORE_SEGMENT_OUTCOMES, e, PROFD_MALFORMED, "outcome %u of ACKNOWLEDGE: there are %u",
            m->outcome, STORE_SEGMENT_OUTCOMES);
    a->sequence = m->sequence;
    a->number = m->number;
    a->outcome = (enum store_segment_outcome)m->outcome;
    return PROFD_OK;
}

/* Checks the permission, and makes a request from any of the three messages. FORBIDDEN: this peer may not fetch.
 * CONFIG: nothing is forwarded. */
static enum profd_status relay_receive(struct relay_service *s, struct conn *c, struct conn_frame *f,
                                       const struct writer_job_type *type, struct profd_error *e)
{
    const struct peer *peer = conn_get_peer(c);
    struct relay_request *r;
    struct message m;
    enum profd_status status = PROFD_OK;

    FAIL_IF(!peer->may_relay, e, PROFD_FORBIDDEN,
            "user %u may not fetch uploads; only root, the daemon's user and profd-relay may", peer->uid);
    FAIL_IF(!s->active, e, PROFD_CONFIG, "nothing is forwarded: relay is not configured");
    TRY(writer_check(s->shared->writer, e));
    TRY(body_decode(f, &m, e));
    r = calloc(1, sizeof *r);
    if (!r) {
        status = profd_no_memory(e);
    } else if (type == &relay_fetch_type) {
        status = relay_read_fetch(r, &m.as.fetch, e);
        s->counts.heard = loop_clock();
        free(s->object.bytes); /* fetched on an earlier connection */
        s->object.bytes = NULL;
        (void)snprintf(s->counts.error, sizeof s->counts.error, "%s", m.as.fetch.error);
    } else if (type == &relay_object_type) {
        const char *id = m.as.fetch_object.build_id;

        status = buildid_parse(id, strlen(id), &r->object.id, e);
        r->offset = m.as.fetch_object.offset;
    } else {
        status = relay_read_acknowledge(r, &m.as.acknowledge, e);
    }
    message_done(&m);
    if (status) {
        free(r);
        return status;
    }
    if (r->offset && s->object.bytes && strcmp(s->object.id.text, r->object.id.text) == 0) {
        struct relay_object kept = s->object;

        m = make_piece(&kept, r->offset);
        conn_answer(c, &m, 0, f->header.tag);
        keep_object(s, &kept, r->offset);
        free(r);
        return PROFD_OK;
    }
    r->service = s;
    status = writer_submit(s->shared->writer, &r->job, type, e);
    if (status) {
        free(r);
        return status;
    }
    caller_begin(&r->caller, c, f->header.tag);
    return PROFD_OK;
}

enum profd_status relay_receive_fetch(void *context, struct conn *c, struct conn_frame *f, struct profd_error *e)
{
    return relay_receive(context, c, f, &relay_fetch_type, e);
}

enum profd_status relay_receive_acknowledge(void *context, struct conn *c, struct conn_frame *f, struct profd_error *e)
{
    return relay_receive(context, c, f, &relay_acknowledge_type, e);
}

enum profd_status relay_receive_fetch_object(void *context, struct conn *c, struct conn_frame *f, struct profd_error *e)
{
    return relay_receive(context, c, f, &relay_object_type, e);
}

void relay_service_done(struct relay_service *s)
{
    free(s->object.bytes);
}
