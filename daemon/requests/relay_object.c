#include "requests/relay_object.h"

#include <nettle/sha2.h>
#include <stdlib.h>
#include <string.h>

#include "core/container.h"
#include "core/object_instructions.h"
#include "requests/body.h"
#include "requests/relay_internal.h"
#include "requests/session.h"
#include "requests/sync.h"
#include "writer/writer.h"

/* One FETCH_OBJECT, until it is answered. */
struct fetch_object {
    struct writer_job job;
    struct relay_service *service;
    conn_id conn;
    uint32_t tag;
    uint64_t session_job;
    uint64_t offset;
    struct relay_object object; /* bytes NULL: there is none */
    enum profd_status status;
    struct profd_error error;
};

static struct fetch_object *fetch_of(struct writer_job *job)
{
    return container_of(job, struct fetch_object, job);
}

/* An object that is too large with its instructions may be offered without them. */
static void fetch_shrink(struct relay_object *o)
{
    uint8_t *bytes;
    size_t size;

    if (o->size > LIMIT_PARSED_OBJECT && !object_instructions_remove(o->bytes, o->size, &bytes, &size, NULL)) {
        free(o->bytes);
        o->bytes = bytes;
        o->size = size;
    }
}

static void fetch_one(struct fetch_object *o, struct store *store)
{
    struct sha256_ctx digest;

    o->status = store_get_shared_object(store, o->object.id.text, &o->object.bytes, &o->object.size, &o->error);
    if (o->status == PROFD_NOT_FOUND) {
        o->status = PROFD_OK;
    }
    if (!o->status && o->object.bytes) {
        fetch_shrink(&o->object);
        sha256_init(&digest);
        sha256_update(&digest, o->object.size, o->object.bytes);
        sha256_digest(&digest, sizeof o->object.hash, o->object.hash);
    }
}

static void fetch_run(struct store *store, const struct profd_error *full, struct writer_job *const *jobs, size_t n)
{
    (void)full;
    for (size_t i = 0; i < n; i++) {
        fetch_one(fetch_of(jobs[i]), store);
    }
}

/* Answers with a piece of the object. */
static void send_piece(struct conn *c, uint32_t tag, const struct relay_object *o, uint64_t offset)
{
    struct message m = {.type = FRAME_PARSED, .as.parsed = {.size = o->size}};
    const uint64_t at = offset < o->size ? offset : o->size, rest = o->size - at;

    if (o->bytes) {
        m.as.parsed.hash = (struct message_bytes){o->hash, sizeof o->hash};
        m.as.parsed.piece =
            (struct message_bytes){o->bytes + at, rest < LIMIT_PARSED_PIECE ? (size_t)rest : LIMIT_PARSED_PIECE};
    }
    conn_answer(c, &m, 0, tag);
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

static void fetch_answer(struct fetch_object *o)
{
    struct relay_service *s = o->service;
    struct conn *c = conn_find(s->config.conns, o->conn);

    if (c && o->status) {
        sync_nack_job(c, o->tag, o->status, o->error.sentence, 1000);
    } else if (c) {
        send_piece(c, o->tag, &o->object, o->offset);
    }
    if (c) {
        sync_end_job(s->config.sync, c, o->session_job);
    }
    keep_object(s, &o->object, o->offset);
    free(o);
}

static void fetch_done(struct writer_job *job)
{
    fetch_answer(fetch_of(job));
}

static void fetch_drop(struct writer_job *job)
{
    struct fetch_object *o = fetch_of(job);

    o->status = profd_error_set(&o->error, PROFD_STOPPING, "the daemon is stopping");
    fetch_answer(o);
}

static const struct writer_job_type fetch_type = {.run = fetch_run, .done = fetch_done, .drop = fetch_drop};

static enum profd_status fetch_put(struct relay_service *s, struct conn *c, uint32_t tag, const struct buildid *id,
                                   uint64_t offset, struct profd_error *e)
{
    struct fetch_object *o = calloc(1, sizeof *o);

    if (!o) {
        return profd_error_set(e, PROFD_NO_MEMORY, "no memory for a request of the relay");
    }
    o->service = s;
    o->conn = conn_get_id(c);
    o->tag = tag;
    o->offset = offset;
    o->object.id = *id;
    enum profd_status status = writer_submit(s->config.writer, &o->job, &fetch_type, e);
    if (status) {
        free(o);
        return status;
    }
    o->session_job = session_begin(conn_get_user(c));
    return PROFD_OK;
}

enum profd_status relay_receive_fetch_object(void *context, struct conn *c, struct conn_frame *f, struct profd_error *e)
{
    struct relay_service *s = context;
    struct buildid id;
    struct message m;
    uint64_t offset;
    TRY(relay_check(s, c, e));
    TRY(body_decode(f, &m, e));
    enum profd_status status = buildid_parse(m.as.fetch_object.build_id, strlen(m.as.fetch_object.build_id), &id, e);
    offset = m.as.fetch_object.offset;
    message_done(&m);
    if (status) {
        return status;
    }
    if (offset && s->object.bytes && strcmp(s->object.id.text, id.text) == 0) {
        struct relay_object kept = s->object;

        send_piece(c, f->header.tag, &kept, offset);
        keep_object(s, &kept, offset);
        return PROFD_OK;
    }
    return fetch_put(s, c, f->header.tag, &id, offset, e);
}
