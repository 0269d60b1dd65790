#include "requests/centre_object.h"

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
    struct store_offer offer;
    struct store_offered result;
    struct buildid next;          /* that the host shall offer now; "": none */
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
    const struct message m = {.type = FRAME_ATTESTED, .as.attested = {wanted, a->next.text}};

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
    for (size_t i = 0; i < n; i++) {
        struct centre_attest *a = attest_of(jobs[i]);
        size_t count;

        if (full) {
            a->error = *full;
        }
        a->status = full                 ? PROFD_FULL
                    : *a->offer.build_id ? store_offer(store, &a->offer, 1, &a->result, &a->error)
                                         : PROFD_OK;
        if (!a->status) {
            a->status = store_wanted(store, a->offer.host, loop_clock(), &a->next, 1, &count, &a->error);
        }
    }
}

static void attest_done(struct writer_job *job)
{
    struct centre_attest *a = attest_of(job);

    attest_answer(a, !a->status && a->result.wanted && centre_await(&a->service->objects, &a->offer, loop_now()));
}

static void attest_drop(struct writer_job *job)
{
    struct centre_attest *a = attest_of(job);

    a->status = profd_error_set(&a->error, PROFD_STOPPING, "the daemon is stopping");
    attest_answer(a, false);
}

static void object_run(struct store *store, const struct profd_error *full, struct writer_job *const *jobs, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        struct centre_attest *a = attest_of(jobs[i]);
        const struct centre_object *o = a->object;
        const struct ingest_object given = {.received = loop_clock(),
                                            .build_id = o->id.text,
                                            .name = "a build's functions",
                                            .answer = o->bytes,
                                            .answer_size = o->offer.size,
                                            .host = o->offer.host};

        if (full) {
            a->status = PROFD_FULL;
            a->error = *full;
        } else {
            a->status = ingest_object_store(store, &given, &a->error);
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
    struct store_offer *to = &a->offer;
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
        return profd_error_set(e, PROFD_NO_MEMORY, "no memory for an offer of symbols");
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

/* The whole object goes to the writer. Takes it over. */
static enum profd_status object_put(struct centre_service *s, struct conn *c, const struct conn_frame *f,
                                    struct centre_object *o, struct profd_error *e)
{
    struct centre_attest *a = attest_new(s, c, f);

    if (!a) {
        centre_object_free(o);
        return profd_error_set(e, PROFD_NO_MEMORY, "no memory for a parsed object");
    }
    a->object = o;
    a->job.item.weight = o->offer.size;
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
        return object_put(s, c, f, whole, e);
    }
    if (!status) {
        conn_answer(c, &more, 0, f->header.tag);
    }
    return status;
}
