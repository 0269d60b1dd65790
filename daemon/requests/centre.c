/* The service, and ARRIVE. */
#include "requests/centre.h"

#include <stdlib.h>
#include <string.h>

#include "admin/revocations.h"
#include "core/container.h"
#include "net/loop.h"
#include "proto/enrolment.h"
#include "proto/label.h"
#include "requests/body.h"
#include "requests/centre_internal.h"
#include "requests/session.h"
#include "requests/sync.h"

#define RETRY_MS 1000u
#define RENEW_NS (ENROLMENT_RENEW_DAYS * INT64_C(86400) * 1000000000)
#define CONFLICT_BYTES (1u << 20) /* of hosts with conflicts; beyond, all are forgotten */

/* One ARRIVE, until it is answered. */
struct arrive {
    struct writer_job job;
    struct centre_service *service;
    conn_id conn;
    uint32_t tag;
    uint64_t session_job;
    struct message message; /* owns the name */
    struct store_arrival arrival;
    struct store_admission admission;
    uint8_t key[STORE_HASH_SIZE]; /* of the certificate; zeros: the gate does not say */
    bool renew;
    struct store_centre centre;
    enum profd_status status;
    struct profd_error error;
};

static struct arrive *arrive_of(struct writer_job *job)
{
    return container_of(job, struct arrive, job);
}

/* Finds the tenant of the host. known: its enrolment, if it has one. UNAUTHORIZED: its certificate is no longer that of
 * its enrolment. */
static enum profd_status arrive_judge(struct arrive *a, bool found, const struct store_enrolment *known,
                                      struct profd_error *e)
{
    if (!found && *a->message.as.arrive.tenant) {
        return profd_error_set(
            e, PROFD_UNAUTHORIZED,
            "the centre does not know the enrolment of host %s: it was restored from an older backup; "
            "enrol the host again",
            a->arrival.name);
    }
    if (found && known->revoked) {
        return profd_error_set(e, PROFD_UNAUTHORIZED, "the key of this host is revoked");
    }
    if (found && memcmp(known->key, a->key, sizeof known->key) != 0) {
        return profd_error_set(e, PROFD_UNAUTHORIZED, "the identity of host %s was enrolled with another key",
                               a->arrival.name);
    }
    a->arrival.tenant = found ? known->uid : STORE_TENANT;
    a->renew = found && a->arrival.not_after - a->arrival.now < RENEW_NS;
    return PROFD_OK;
}

/* Judges each, by the enrolments of all. */
static enum profd_status arrive_judge_all(struct store *store, struct writer_job *const *jobs, size_t n,
                                          struct profd_error *e)
{
    uint8_t *hosts = calloc(n, STORE_HOST_SIZE);
    struct store_enrolment *known = calloc(n, sizeof *known);
    bool *found = calloc(n, sizeof *found);
    enum profd_status status =
        hosts && known && found ? PROFD_OK : profd_error_set(e, PROFD_NO_MEMORY, "no memory for %zu hosts", n);

    for (size_t i = 0; i < n && !status; i++) {
        memcpy(hosts + i * STORE_HOST_SIZE, arrive_of(jobs[i])->arrival.host, STORE_HOST_SIZE);
    }
    if (!status) {
        status = store_find_enrolments(store, hosts, n, known, found, e);
    }
    for (size_t i = 0; i < n && !status; i++) {
        struct arrive *a = arrive_of(jobs[i]);

        a->status = arrive_judge(a, found[i], &known[i], &a->error);
    }
    free(hosts);
    free(known);
    free(found);
    return status;
}

static void arrive_run(struct store *store, const struct profd_error *full, struct writer_job *const *jobs, size_t n)
{
    struct store_arrival *list = calloc(n, sizeof *list);
    struct store_admission *admissions = calloc(n, sizeof *admissions);
    struct store_centre centre = {.number = 0};
    struct profd_error e;
    size_t admitted = 0, at = 0;
    enum profd_status status =
        list && admissions ? PROFD_OK : profd_error_set(&e, PROFD_NO_MEMORY, "no memory for %zu hosts", n);

    if (!status && full) {
        status = PROFD_FULL;
        e = *full;
    }
    if (!status) {
        status = arrive_judge_all(store, jobs, n, &e);
    }
    for (size_t i = 0; i < n && !status; i++) {
        if (!arrive_of(jobs[i])->status) {
            list[admitted++] = arrive_of(jobs[i])->arrival;
        }
    }
    if (!status) {
        status = store_admit_hosts(store, list, admitted, admissions, &e);
    }
    if (!status) {
        status = store_get_greeting(store, &centre, &e);
    }
    for (size_t i = 0; i < n; i++) {
        struct arrive *a = arrive_of(jobs[i]);

        a->centre = centre;
        if (status) {
            a->status = status;
            a->error = e;
        } else if (!a->status) {
            a->admission = admissions[at++];
        }
    }
    free(list);
    free(admissions);
}

/* Frees the request. */
static void arrive_answer(struct arrive *a)
{
    struct centre_service *s = a->service;
    struct conn *c = conn_find(s->config.conns, a->conn);
    struct message m = {.type = FRAME_ADMIT};
    const uint8_t *conflict = hashmap_find(&s->conflicts, a->arrival.host, sizeof a->arrival.host);

    intake_arrived(s->config.intake, &(struct intake_arrival){.host = a->arrival.host,
                                                              .name = a->arrival.name,
                                                              .tenant = a->arrival.tenant,
                                                              .status = a->status,
                                                              .restored = a->admission.restored,
                                                              .clock = a->message.as.arrive.clock,
                                                              .oldest = a->message.as.arrive.oldest});
    if (c && a->status) {
        sync_nack_job(c, a->tag, a->status, a->error.sentence, RETRY_MS);
    } else if (c) {
        m.as.admit.incarnation = (struct message_bytes){a->centre.incarnation, sizeof a->centre.incarnation};
        m.as.admit.backup = a->centre.backup;
        m.as.admit.wait_ms = intake_get_wait(s->config.intake, a->arrival.host, a->arrival.now, a->centre.series);
        m.as.admit.conflict = (struct message_bytes){conflict, conflict ? SEGMENT_EPOCH_SIZE : 0};
        m.as.admit.attests = true;
        m.as.admit.went_back = a->arrival.held && a->admission.restored;
        m.as.admit.number = a->admission.number;
        m.as.admit.renew = a->renew;
        conn_answer(c, &m, 0, a->tag);
    }
    if (c) {
        sync_end_job(s->config.sync, c, a->session_job);
    }
    message_done(&a->message);
    free(a);
}

static void arrive_done(struct writer_job *job)
{
    arrive_answer(arrive_of(job));
}

static void arrive_drop(struct writer_job *job)
{
    struct arrive *a = arrive_of(job);

    a->status = profd_error_set(&a->error, PROFD_STOPPING, "the daemon is stopping");
    arrive_answer(a);
}

static const struct writer_job_type arrive_type = {.run = arrive_run, .done = arrive_done, .drop = arrive_drop};

static enum profd_status arrive_read(struct arrive *a, struct profd_error *e)
{
    const struct message_arrive *m = &a->message.as.arrive;
    struct store_arrival *to = &a->arrival;
    const size_t n = strlen(m->name);
    enum profd_status status = centre_copy(&m->host, "the host's identity", to->host, sizeof to->host, e);

    if (status) {
        return status;
    }
    if (n == 0 || label_judge("host", 4, m->name, n) != LABEL_GOOD) {
        return profd_error_set(e, PROFD_MALFORMED, "a host's name of %zu bytes: it must be the value of a label", n);
    }
    if (m->clock > INT64_MAX || m->number > CENTRE_NUMBER_MOST || m->held > CENTRE_NUMBER_MOST) {
        return profd_error_set(e, PROFD_MALFORMED,
                               "of ARRIVE, clock must be at most 2^63-1, number and held at most 2^62");
    }
    if (m->segment_oldest > SEGMENT_VERSION || m->segment_newest < SEGMENT_VERSION) {
        return profd_error_set(e, PROFD_UNKNOWN_VERSION,
                               "the host writes versions %u to %u of segments; the centre reads version %d: "
                               "update the %s",
                               m->segment_oldest, m->segment_newest, SEGMENT_VERSION,
                               m->segment_oldest > SEGMENT_VERSION ? "centre" : "host");
    }
    TRY(body_check_text("the machine-id", m->machine, STORE_MACHINE_SIZE, e));
    TRY(body_check_text("the version", m->version, STORE_MACHINE_SIZE, e));
    to->name = m->name;
    to->now = loop_clock();
    to->clock = (int64_t)m->clock - to->now;
    to->number = m->number;
    to->held = m->held;
    to->machine = m->machine;
    to->version = m->version;
    to->not_after = m->not_after <= INT64_MAX ? (int64_t)m->not_after : 0;
    if (m->key.size) { /* an older gate does not say it */
        status = centre_copy(&m->key, "the hash of the host's key", a->key, sizeof a->key, e);
    }
    if (!status && m->key.size && revocations_has(a->service->config.revocations, REVOCATIONS_KEY, a->key)) {
        status = profd_error_set(e, PROFD_UNAUTHORIZED, "the key of this host is revoked");
    }
    return status;
}

enum profd_status centre_receive_arrive(void *context, struct conn *c, struct conn_frame *f, struct profd_error *e)
{
    struct centre_service *s = context;
    struct arrive *a;
    enum profd_status status = centre_check(s, c, e);

    if (status) {
        return status;
    }
    a = calloc(1, sizeof *a);
    if (!a) {
        return profd_error_set(e, PROFD_NO_MEMORY, "no memory for a host");
    }
    a->service = s;
    a->conn = conn_get_id(c);
    a->tag = f->header.tag;
    status = body_decode(f, &a->message, e);
    if (status) {
        free(a);
        return status;
    }
    status = arrive_read(a, e);
    if (!status) {
        status = writer_submit(s->config.writer, &a->job, &arrive_type, e);
    }
    if (status) {
        message_done(&a->message);
        free(a);
        return status;
    }
    a->session_job = session_begin(conn_get_user(c));
    s->counts->arrived++;
    return PROFD_OK;
}

enum profd_status centre_service_new(const struct centre_config *config, struct centre_service **out,
                                     struct profd_error *e)
{
    struct centre_service *s = calloc(1, sizeof *s);

    if (s) {
        hashmap_init(&s->conflicts, CONFLICT_BYTES);
        centre_objects_init(&s->objects);
        s->config = *config;
        s->counts = intake_get_counts(config->intake);
    } else {
        return profd_error_set(e, PROFD_NO_MEMORY, "no memory for a centre");
    }
    *out = s;
    return PROFD_OK;
}

void centre_service_free(struct centre_service *s)
{
    if (!s) {
        return;
    }
    hashmap_clear(&s->conflicts);
    centre_objects_clear(&s->objects);
    free(s);
}
