#include "requests/centre_object.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "core/container.h"
#include "ingest/ingest.h"
#include "log/log.h"
#include "net/loop.h"
#include "requests/body.h"
#include "requests/centre_internal.h"
#include "requests/session.h"
#include "requests/sync.h"

#define RETRY_MS 1000u

/* One ATTEST, or the last OBJECT_BYTES of an object, until it is answered. */
struct centre_attest {
    struct writer_job job;
    struct message message; /* of ATTEST; owns the build-id */
    struct centre_service *service;
    conn_id conn;
    uint32_t tag;
    uint64_t session_job;
    struct store_attestation attestation;
    struct store_attested result;
    struct centre_object *object; /* of OBJECT_BYTES */
    enum profd_status status;
    struct profd_error error;
};

static struct centre_attest *attest_of(struct writer_job *job)
{
    return container_of(job, struct centre_attest, job);
}

static void attest_free(struct centre_attest *a)
{
    if (a->object) {
        centre_object_free(a->object);
    }
    message_done(&a->message);
    free(a);
}

/* Frees the request. */
static void attest_answer(struct centre_attest *a, bool wanted)
{
    struct centre_service *s = a->service;
    struct conn *c = conn_find(s->config.conns, a->conn);
    const struct message m = {.type = FRAME_ATTESTED, .as.attested = {wanted, a->result.next.text}};

    if (a->status == PROFD_FULL) {
        s->config.no_space(s->config.context);
    }
    if (c && a->status) {
        sync_nack_job(c, a->tag, a->status, a->error.sentence, RETRY_MS);
    } else if (c) {
        conn_answer(c, &m, 0, a->tag);
    }
    if (c) {
        sync_end_job(s->config.sync, c, a->session_job);
    }
    attest_free(a);
}

static void attest_run(struct store *store, const struct profd_error *full, struct writer_job *const *jobs, size_t n)
{
    struct store_attestation *list = calloc(n, sizeof *list);
    struct store_attested *results = calloc(n, sizeof *results);
    struct profd_error e;
    enum profd_status status =
        list && results ? PROFD_OK : profd_error_set(&e, PROFD_NO_MEMORY, "no memory for %zu attestations", n);

    for (size_t i = 0; i < n && !status; i++) {
        list[i] = attest_of(jobs[i])->attestation;
    }
    if (!status && full) {
        status = PROFD_FULL;
        e = *full;
    }
    if (!status) {
        status = store_attest(store, list, n, results, &e);
    }
    for (size_t i = 0; i < n; i++) {
        struct centre_attest *a = attest_of(jobs[i]);

        a->status = status;
        if (status) {
            a->error = e;
        } else {
            a->result = results[i];
        }
    }
    free(list);
    free(results);
}

/* Why an attestation that was read is refused. */
static void attest_judge(struct centre_attest *a)
{
    const char *build_id = a->attestation.build_id;

    if (a->attestation.refused) {
        a->status = profd_error_set(&a->error, PROFD_TOO_LARGE,
                                    "the parsed object of build %s has %" PRIu64 " bytes; one may have 1 to %u",
                                    build_id, a->attestation.size, LIMIT_ATTEST_OBJECT);
    } else if (a->result.verdict == STORE_ATTEST_UNASKED && *build_id) {
        a->status = profd_error_set(&a->error, PROFD_REFUSED, "no segment of this host names build %s", build_id);
    } else if (a->result.verdict == STORE_ATTEST_TOO_MANY) {
        a->status = profd_error_set(&a->error, PROFD_LIMIT,
                                    "the host attests %u parsed objects; that of build %s is one too many",
                                    STORE_ATTEST_MOST, build_id);
    } else if (a->result.verdict == STORE_ATTEST_TOO_LARGE) {
        a->status =
            profd_error_set(&a->error, PROFD_LIMIT,
                            "with the parsed object of build %s, the host's would have more than %" PRIu64 " bytes",
                            build_id, STORE_ATTEST_BYTES);
    }
}

static void attest_done(struct writer_job *job)
{
    struct centre_attest *a = attest_of(job);
    struct centre_service *s = a->service;
    bool wanted = false;

    if (!a->status) {
        attest_judge(a);
        s->counts->attestations_refused += a->status != PROFD_OK;
    }
    if (!a->status && a->attestation.has) {
        s->counts->attestations++;
        wanted = !a->result.stored && centre_await(&s->objects, &a->attestation, loop_now());
    }
    attest_answer(a, wanted);
}

static void attest_drop(struct writer_job *job)
{
    struct centre_attest *a = attest_of(job);

    a->status = profd_error_set(&a->error, PROFD_STOPPING, "the daemon is stopping");
    attest_answer(a, false);
}

/* What cannot be used is not asked for again soon. */
static void object_withdraw(struct centre_attest *a, struct store *store)
{
    struct store_attestation nothing = a->object->attestation;
    struct store_attested ignored;
    struct profd_error e;

    nothing.has = false;
    nothing.refused = true;
    nothing.now = loop_clock();
    (void)store_attest(store, &nothing, 1, &ignored, &e); /* if that fails, it is asked for again */
}

static void object_run(struct store *store, const struct profd_error *full, struct writer_job *const *jobs, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        struct centre_attest *a = attest_of(jobs[i]);
        const struct centre_object *o = a->object;
        const struct ingest_object given = {.uid = STORE_TENANT,
                                            .received = loop_clock(),
                                            .build_id = o->id.text,
                                            .name = "a build's functions",
                                            .answer = o->bytes,
                                            .answer_size = o->attestation.size,
                                            .hash = o->attestation.hash};

        if (full) {
            a->status = PROFD_FULL;
            a->error = *full;
            continue;
        }
        if (!a->status) {
            a->status = ingest_object_store(store, &given, &a->error);
        }
        if (a->status && !profd_status_retry(a->status)) {
            object_withdraw(a, store);
        }
    }
}

static void object_done(struct writer_job *job)
{
    struct centre_attest *a = attest_of(job);
    struct centre_service *s = a->service;

    s->counts->objects_stored += !a->status;
    s->counts->objects_refused += a->status != PROFD_OK;
    if (a->status) {
        log_write(LOG_LEVEL_WARNING, "parsed object refused", "a host's parsed object was refused: %s",
                  a->error.sentence);
    }
    attest_answer(a, false);
}

static const struct writer_job_type attest_type = {.run = attest_run, .done = attest_done, .drop = attest_drop};
static const struct writer_job_type object_type = {.run = object_run, .done = object_done, .drop = attest_drop};

/* A request of a connection; NULL when out of memory. */
static struct centre_attest *attest_new(struct centre_service *s, struct conn *c, const struct conn_frame *f)
{
    struct centre_attest *a = calloc(1, sizeof *a);

    if (a) {
        a->service = s;
        a->conn = conn_get_id(c);
        a->tag = f->header.tag;
    }
    return a;
}

/* Takes over the request. */
static enum profd_status attest_put(struct centre_attest *a, struct conn *c, const struct writer_job_type *type,
                                    struct profd_error *e)
{
    enum profd_status status = writer_submit(a->service->config.writer, &a->job, type, e);

    if (status) {
        attest_free(a);
        return status;
    }
    a->session_job = session_begin(conn_get_user(c));
    return PROFD_OK;
}

static enum profd_status attest_read(struct centre_attest *a, struct profd_error *e)
{
    const struct message_attest *m = &a->message.as.attest;
    struct store_attestation *to = &a->attestation;
    struct buildid id;
    enum profd_status status = centre_copy(&m->host, "the host's identity", to->host, sizeof to->host, e);

    if (!status && !m->ask) {
        status = buildid_parse(m->build_id, strlen(m->build_id), &id, e);
    }
    to->has = !m->ask && m->hash.size > 0;
    if (!status && to->has) {
        status = centre_copy(&m->hash, "the hash of a parsed object", to->hash, sizeof to->hash, e);
    }
    to->build_id = m->ask ? "" : m->build_id;
    to->size = m->size;
    to->now = loop_clock();
    if (to->has && (to->size < 1 || to->size > LIMIT_ATTEST_OBJECT)) {
        to->has = false;
        to->refused = true;
    }
    return status;
}

enum profd_status centre_receive_attest(void *context, struct conn *c, struct conn_frame *f, struct profd_error *e)
{
    struct centre_service *s = context;
    struct centre_attest *a;
    enum profd_status status = centre_check(s, c, e);

    if (status) {
        return status;
    }
    a = attest_new(s, c, f);
    if (!a) {
        return profd_error_set(e, PROFD_NO_MEMORY, "no memory for an attestation");
    }
    status = body_decode(f, &a->message, e);
    if (!status) {
        status = attest_read(a, e);
    }
    if (status) {
        attest_free(a);
        return status;
    }
    return attest_put(a, c, &attest_type, e);
}

/* The whole object, or one with another hash (status REFUSED), goes to the writer. Takes over the object. */
static enum profd_status object_put(struct centre_service *s, struct conn *c, const struct conn_frame *f,
                                    struct centre_object *o, enum profd_status status, struct profd_error *e)
{
    struct centre_attest *a = attest_new(s, c, f);

    if (!a) {
        centre_object_free(o);
        return profd_error_set(e, PROFD_NO_MEMORY, "no memory for a parsed object");
    }
    a->object = o;
    a->job.item.weight = o->attestation.size;
    a->status = status;
    if (status) {
        a->error = *e;
    }
    return attest_put(a, c, &object_type, e);
}

enum profd_status centre_receive_object_bytes(void *context, struct conn *c, struct conn_frame *f,
                                              struct profd_error *e)
{
    const struct message more = {.type = FRAME_ATTESTED, .as.attested = {true, ""}};
    struct centre_service *s = context;
    struct centre_object *whole;
    struct message m;
    TRY(centre_check(s, c, e));
    TRY(body_decode(f, &m, e));
    enum profd_status status = centre_add_piece(&s->objects, &m.as.object_bytes, loop_now(), &whole, e);
    message_done(&m);
    if (whole) {
        return object_put(s, c, f, whole, status, e);
    }
    if (!status) {
        conn_answer(c, &more, 0, f->header.tag);
    }
    return status;
}
