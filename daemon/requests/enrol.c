#include "requests/enrol.h"

#include <nettle/sha2.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

#include "admin/revocations.h"
#include "core/container.h"
#include "log/log.h"
#include "net/loop.h"
#include "proto/enrolment.h"
#include "proto/label.h"
#include "requests/body.h"
#include "requests/session.h"
#include "requests/signing.h"
#include "requests/sync.h"
#include "store/store.h"
#include "writer/writer.h"

#define RETRY_MS 5000u
#define SILENT_MS 10000u /* until the signer is asked again */
#define DAY_NS (INT64_C(86400) * 1000000000)
#define GATE_SILENT_MS 5000u /* it tells its counts every second */
#define KEYS_MOST 1024u      /* of one answer */

struct enrol_service {
    struct enrol_config config;
    struct revocations *revocations;
    struct gate_counts gate;
    uint64_t told;         /* ms of loop_now: when */
    uint64_t silent_until; /* of the writer's thread, ms of loop_now: the signer did not answer */
};

/* One request, until it is answered. */
struct enrol {
    struct writer_job job;
    struct enrol_service *service;
    conn_id conn;
    uint32_t tag;
    uint64_t session_job;
    bool renews;
    struct message message; /* owns the texts */
    struct message_bytes public_key;
    struct store_enrolling wish;
    struct store_enrolment host;
    bool spent; /* the token was used for the last time */
    struct message issued;
    enum profd_status status;
    struct profd_error error;
};

static enum profd_status explain_verdict(enum store_enrol_verdict verdict, bool renews, struct profd_error *e)
{
    switch (verdict) {
    case STORE_ENROL_UNKNOWN:
        return profd_error_set(e, PROFD_UNAUTHORIZED,
                               renews ? "this key was not enrolled at this centre; enrol the host with a new token"
                                      : "the centre knows no such token");
    case STORE_ENROL_EXPIRED:
        return profd_error_set(e, PROFD_UNAUTHORIZED, "the token has expired; ask for a new one");
    case STORE_ENROL_USED_UP:
        return profd_error_set(e, PROFD_UNAUTHORIZED, "the token is used up; ask for a new one");
    case STORE_ENROL_OTHER:
        return profd_error_set(
            e, PROFD_UNAUTHORIZED,
            "this key was enrolled before with another token: its tenant stays; enrol with a new key");
    case STORE_ENROL_REVOKED:
        return profd_error_set(e, PROFD_UNAUTHORIZED, "the key of this host is revoked");
    default:
        return PROFD_OK;
    }
}

/* Stores, then asks for the certificate: a host that gets no answer asks again with the same key and token. */
static void enrol_one(struct enrol *a, struct store *store)
{
    const struct enrol_service *s = a->service;
    enum store_enrol_verdict verdict = STORE_ENROLLED;
    struct message_sign sign = {.key = a->public_key, .host = {a->host.host, sizeof a->host.host}};

    a->status = a->renews ? store_renew(store, &a->wish, &a->host, &verdict, &a->error)
                          : store_enrol(store, &a->wish, &a->host, &verdict, &a->spent, &a->error);
    if (!a->status) {
        a->status = explain_verdict(verdict, a->renews, &a->error);
    }
    if (!a->status && a->spent) {
        a->status = revocations_write(s->revocations, REVOCATIONS_TOKEN, a->wish.token, 1, a->wish.now, &a->error);
    }
    if (!a->status) {
        sign.name = a->host.name;
        sign.tenant = a->host.tenant;
        a->status = signing_ask(s->config.signer, &sign, &a->issued, &a->error);
    }
}

/* A signer that hangs must not hold up the writer, which stores segments, for longer than one question now and then. */
static void enrol_run(struct store *store, const struct profd_error *full, struct writer_job *const *jobs, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        struct enrol *a = container_of(jobs[i], struct enrol, job);

        if (full) {
            a->status = PROFD_FULL;
            a->error = *full;
        } else if (loop_now() < a->service->silent_until) {
            a->status = profd_error_set(&a->error, PROFD_UNAVAILABLE, "profd-signer does not answer; asked again soon");
        } else {
            enrol_one(a, store);
            a->service->silent_until = a->status == PROFD_UNAVAILABLE ? loop_now() + SILENT_MS : 0;
        }
    }
}

static void enrol_answer(struct enrol *a)
{
    struct enrol_service *s = a->service;
    struct conn *c = conn_find(s->config.conns, a->conn);
    const struct message_issued *issued = &a->issued.as.issued;
    const struct message m = {.type = FRAME_ENROLLED,
                              .as.enrolled = {.certificate = issued->certificate,
                                              .ca = issued->ca,
                                              .host = {a->host.host, sizeof a->host.host},
                                              .name = a->host.name,
                                              .tenant = a->host.tenant,
                                              .not_after = issued->not_after}};

    if (a->spent) {
        (void)revocations_note(s->revocations, REVOCATIONS_TOKEN, a->wish.token, a->wish.now); /* the database, too */
    }
    if (!a->status) {
        log_write(LOG_LEVEL_NOTICE, "enrolled", "host %s of tenant %s %s", a->host.name, a->host.tenant,
                  a->renews ? "renewed its certificate" : "was enrolled");
    } else {
        log_write(LOG_LEVEL_NOTICE, "enrolment refused", "%s: %s", a->wish.name, a->error.sentence);
    }
    if (c && !a->status) {
        conn_answer(c, &m, 0, a->tag);
    } else if (c) {
        sync_nack_job(c, a->tag, a->status, a->error.sentence, RETRY_MS);
    }
    if (c) {
        sync_end_job(s->config.sync, c, a->session_job);
    }
    message_done(&a->issued);
    message_done(&a->message);
    free(a);
}

static void enrol_done(struct writer_job *job)
{
    enrol_answer(container_of(job, struct enrol, job));
}

static void enrol_drop(struct writer_job *job)
{
    struct enrol *a = container_of(job, struct enrol, job);

    a->status = profd_error_set(&a->error, PROFD_STOPPING, "the daemon is stopping");
    enrol_answer(a);
}

static const struct writer_job_type enrol_type = {.run = enrol_run, .done = enrol_done, .drop = enrol_drop};

static void hash(const struct message_bytes *of, uint8_t out[STORE_HASH_SIZE])
{
    struct sha256_ctx sha;

    sha256_init(&sha);
    sha256_update(&sha, of->size, of->data);
    sha256_digest(&sha, STORE_HASH_SIZE, out);
}

static enum profd_status enrol_read(struct enrol *a, struct profd_error *e)
{
    const struct message_enroll *enroll = &a->message.as.enroll;
    const struct message_renew *again = &a->message.as.renew;
    struct store_enrolling *w = &a->wish;
    enum profd_status status = PROFD_OK;

    a->public_key = a->renews ? again->key : enroll->key;
    w->name = a->renews ? "a host" : enroll->name;
    w->machine = a->renews ? again->machine : enroll->machine;
    w->version = a->renews ? again->version : enroll->version;
    w->now = loop_clock();
    w->not_after = w->now + ENROLMENT_CERTIFICATE_DAYS * DAY_NS;
    hash(&a->public_key, w->key);
    if (!a->public_key.size) {
        return profd_error_set(e, PROFD_MALFORMED, "the public key is missing");
    }
    if (!a->renews && (!*w->name || label_judge("host", 4, w->name, strlen(w->name)) != LABEL_GOOD)) {
        return profd_error_set(e, PROFD_MALFORMED, "the name of the host must be the value of a label");
    }
    if (!a->renews) {
        status = body_check_text("the name of the host", w->name, STORE_NAME_SIZE, e);
        hash(&enroll->secret, w->token);
        w->spent = revocations_has(a->service->revocations, REVOCATIONS_TOKEN, w->token);
    }
    if (!status) {
        status = body_check_text("the machine-id", w->machine, STORE_MACHINE_SIZE, e);
    }
    if (!status) {
        status = body_check_text("the version", w->version, STORE_MACHINE_SIZE, e);
    }
    if (!status && revocations_has(a->service->revocations, REVOCATIONS_KEY, w->key)) {
        status = explain_verdict(STORE_ENROL_REVOKED, a->renews, e);
    }
    if (!status && getrandom(w->host, sizeof w->host, 0) != (ssize_t)sizeof w->host) {
        status = profd_error_set(e, PROFD_IO, "no random bytes for the identity of a host");
    }
    return status;
}

static enum profd_status enrol_check(const struct enrol_service *s, const struct conn *c, struct profd_error *e)
{
    const struct peer *peer = conn_get_peer(c);

    if (!peer->may_deliver) {
        return profd_error_set(e, PROFD_FORBIDDEN,
                               "user %u may not enrol hosts; only root, the daemon's user and profd-gate may",
                               peer->uid);
    }
    if (!s->config.active) {
        return profd_error_set(e, PROFD_CONFIG, "this daemon is no centre: gate is not configured");
    }
    return PROFD_OK;
}

static enum profd_status enrol_receive(struct enrol_service *s, struct conn *c, struct conn_frame *f, bool renews,
                                       struct profd_error *e)
{
    struct enrol *a;
    bool decoded;
    enum profd_status status = enrol_check(s, c, e);

    if (!status && !s->config.signer) {
        status = profd_error_set(e, PROFD_CONFIG, "no host can be enrolled: signer is not configured");
    }
    if (!status) {
        status = writer_check(s->config.writer, e);
    }
    a = status ? NULL : calloc(1, sizeof *a);
    if (!a) {
        return status ? status : profd_error_set(e, PROFD_NO_MEMORY, "no memory for a host");
    }
    a->service = s;
    a->renews = renews;
    a->conn = conn_get_id(c);
    a->tag = f->header.tag;
    status = body_decode(f, &a->message, e);
    decoded = !status;
    if (!status) {
        status = enrol_read(a, e);
    }
    if (!status) {
        status = writer_submit(s->config.writer, &a->job, &enrol_type, e);
    }
    if (!status) {
        a->session_job = session_begin(conn_get_user(c));
        return PROFD_OK;
    }
    if (decoded) {
        message_done(&a->message);
    }
    free(a);
    return status;
}

enum profd_status enrol_receive_enroll(void *context, struct conn *c, struct conn_frame *f, struct profd_error *e)
{
    return enrol_receive(context, c, f, false, e);
}

enum profd_status enrol_receive_renew(void *context, struct conn *c, struct conn_frame *f, struct profd_error *e)
{
    return enrol_receive(context, c, f, true, e);
}

static void enrol_take_counts(struct enrol_service *s, const struct message_list_revoked *m)
{
    s->told = loop_now();
    s->gate = (struct gate_counts){.told = true,
                                   .connections = m->connections,
                                   .handshakes = m->handshakes,
                                   .failed = m->failed,
                                   .untrusted = m->untrusted,
                                   .revoked = m->revoked,
                                   .late = m->late,
                                   .crowded = m->crowded};
}

struct gate_counts enrol_service_get_gate(const struct enrol_service *s)
{
    struct gate_counts n = s->gate;

    n.up = n.told && loop_now() - s->told < GATE_SILENT_MS;
    return n;
}

enum profd_status enrol_receive_list(void *context, struct conn *c, struct conn_frame *f, struct profd_error *e)
{
    struct enrol_service *s = context;
    struct message request, answer = {.type = FRAME_REVOKED};
    enum profd_status status = enrol_check(s, c, e);
    size_t n;

    if (!status) {
        status = body_decode(f, &request, e);
    }
    if (status) {
        return status;
    }
    enrol_take_counts(s, &request.as.list_revoked);
    answer.as.revoked.keys.data = revocations_keys(s->revocations, request.as.list_revoked.after, &n);
    n = n < KEYS_MOST ? n : KEYS_MOST;
    answer.as.revoked.keys.size = n * REVOCATIONS_HASH_SIZE;
    answer.as.revoked.next = request.as.list_revoked.after + n;
    conn_answer(c, &answer, 0, f->header.tag);
    message_done(&request);
    return PROFD_OK;
}

void enrol_service_free(struct enrol_service *s)
{
    if (s) {
        revocations_close(s->revocations);
    }
    free(s);
}

/* Keys that the file has and the database has not: it was restored from a backup. */
struct enrol_catch_up {
    struct writer_job job;
    struct enrol_service *service;
    enum profd_status status;
    struct profd_error error;
};

static void catch_up_run(struct store *store, const struct profd_error *full, struct writer_job *const *jobs, size_t n)
{
    (void)full; /* no row is added */
    for (size_t i = 0; i < n; i++) {
        struct enrol_catch_up *c = container_of(jobs[i], struct enrol_catch_up, job);
        const struct revocations *r = c->service->revocations;
        size_t count;
        const uint8_t *keys = revocations_keys(r, 0, &count);

        c->status = count ? store_revoke_keys(store, keys, revocations_times(r), count, &c->error) : PROFD_OK;
    }
}

static void catch_up_done(struct writer_job *job)
{
    struct enrol_catch_up *c = container_of(job, struct enrol_catch_up, job);

    if (c->status) {
        log_write(LOG_LEVEL_WARNING, "revocations", "the list of hosts does not say which are revoked: %s",
                  c->error.sentence);
    }
    free(c);
}

static const struct writer_job_type catch_up_type = {.run = catch_up_run, .done = catch_up_done, .drop = catch_up_done};

static enum profd_status enrol_catch_up(struct enrol_service *s, struct profd_error *e)
{
    struct enrol_catch_up *c = calloc(1, sizeof *c);

    if (!c) {
        return profd_error_set(e, PROFD_NO_MEMORY, "no memory for enrolment");
    }
    c->service = s;
    enum profd_status status = writer_submit(s->config.writer, &c->job, &catch_up_type, e);
    if (status) {
        free(c);
    }
    return status;
}

enum profd_status enrol_service_new(const struct enrol_config *config, struct enrol_service **out,
                                    struct profd_error *e)
{
    struct enrol_service *s = calloc(1, sizeof *s);
    enum profd_status status = PROFD_OK;

    if (!s) {
        return profd_error_set(e, PROFD_NO_MEMORY, "no memory for enrolment");
    }
    s->config = *config;
    if (config->active) {
        status = revocations_open(config->state_dir, &s->revocations, e);
    }
    if (!status && config->active) {
        status = enrol_catch_up(s, e);
    }
    if (status) {
        enrol_service_free(s);
        return status;
    }
    *out = s;
    return PROFD_OK;
}

struct revocations *enrol_service_get_revocations(const struct enrol_service *s)
{
    return s->revocations;
}
