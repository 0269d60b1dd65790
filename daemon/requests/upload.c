#include "requests/upload.h"

#include <stdlib.h>
#include <string.h>

#include "core/container.h"
#include "base/log.h"
#include "net/loop.h"
#include "requests/object.h"
#include "requests/requests.h"
#include "writer/writer.h"

#define BUSY_RETRY_MS 200

/* One upload, until it is answered. */
struct upload {
    struct writer_job job;
    struct upload_service *service;
    conn_id conn;
    uint32_t tag;
    uint64_t session_job;
    uint64_t began; /* ms of loop_now */
    struct conn_body body;
    bool compressed;
    struct ingest_item item;
};

static struct upload *upload_of(struct writer_job *job)
{
    return container_of(job, struct upload, job);
}

static void upload_prepare(struct writer_job *job)
{
    struct upload *u = upload_of(job);
    const struct upload_service *s = u->service;
    struct ingest_item *item = &u->item;
    uint8_t *inflated = NULL;

    item->payload = u->body.data;
    item->size = u->body.size;
    if (u->compressed) {
        item->status =
            frame_inflate(u->body.data, u->body.size, LIMIT_FRAME_PAYLOAD, &inflated, &item->size, &item->error);
        item->payload = inflated;
    }
    if (!item->status) {
        ingest_check(s->builds, writer_objects_generation(s->writer), item);
    }
    free(inflated); /* what is stored are copies */
}

/* What an upload holds is given back by ingest_batch, which also finds those that are stored already: they are
 * acknowledged even when nothing more can be stored. */
static void upload_run(struct store *store, const struct profd_error *full, struct writer_job *const *jobs, size_t n)
{
    struct ingest_item **items = malloc(n * sizeof(struct ingest_item *));
    enum profd_status refused = full ? PROFD_FULL : PROFD_OK;
    struct profd_error e;

    if (!items) {
        refused = profd_error_set(&e, PROFD_NO_MEMORY, "no memory for a batch of %zu uploads", n);
        full = &e;
    }
    for (size_t i = 0; i < n; i++) {
        struct ingest_item *item = &upload_of(jobs[i])->item;

        if (items) {
            items[i] = item;
        }
        if (refused && !item->status) {
            item->status = refused;
            item->error = *full;
        }
    }
    if (items) {
        ingest_batch(store, writer_objects_generation(upload_of(jobs[0])->service->writer), items, n);
    }
    free(items);
}

/* Answers the upload and frees it. */
static void upload_done(struct writer_job *job)
{
    struct upload *u = upload_of(job);
    struct upload_service *s = u->service;
    struct upload_counts *counts = &s->counts;
    const struct ingest_item *item = &u->item;
    struct conn *c = conn_find(s->conns, u->conn);
    struct message ack = {.type = FRAME_ACK};

    durations_add(&counts->seconds, (double)(loop_now() - u->began) / 1000.0);
    if (item->status) {
        refusals_add(&counts->refused, item->status);
        if (item->status == PROFD_FULL) {
            s->no_space(s->context);
        }
        log_write(LOG_LEVEL_INFO, "upload refused", "an upload of user %u was refused: %s", item->uid,
                  item->error.sentence);
        if (c) {
            sync_nack_job(c, u->tag, item->status, item->error.sentence,
                          item->retry_after_ms ? item->retry_after_ms : BUSY_RETRY_MS);
        }
    } else {
        counts->duplicate += item->duplicate;
        counts->stored += !item->duplicate;
        counts->samples += item->ticks;
        counts->calls += item->calls;
        if (c) { /* what is asked for comes before the ACK (DECISIONS 19) */
            object_request_missing(s->objects, c, item->missing, item->missing_count);
            ack.as.ack.duplicate = item->duplicate;
            conn_answer(c, &ack, 0, u->tag);
        }
    }
    if (c) {
        sync_end_job(s->sync, c, u->session_job);
    }
    ingest_item_done(&u->item);
    conn_body_free(s->conns, &u->body);
    free(u);
}

static void upload_drop(struct writer_job *job)
{
    struct upload *u = upload_of(job);

    u->item.status = profd_error_set(&u->item.error, PROFD_STOPPING, "the daemon is stopping");
    upload_done(job);
}

static const struct writer_job_type upload_type = {
    .prepare = upload_prepare, .run = upload_run, .done = upload_done, .drop = upload_drop};

enum profd_status upload_receive(void *context, struct conn *c, struct conn_frame *f, struct profd_error *e)
{
    struct upload_service *s = context;
    struct upload *u;

    s->counts.bytes += f->body.size;
    if (writer_check(s->writer, e)) {
        refusals_add(&s->counts.refused, PROFD_IO);
        return PROFD_IO;
    }
    u = calloc(1, sizeof *u);
    if (!u) {
        return profd_error_set(e, PROFD_NO_MEMORY, "no memory for an upload");
    }
    u->job.type = &upload_type;
    u->job.item.uid = conn_get_peer(c)->uid;
    /* Compressed twice it hides what it weighs. */
    u->job.item.weight =
        f->header.flags & FRAME_FLAG_COMPRESSED ? LIMIT_COUNTS_RAW : message_upload_weight(f->body.data, f->body.size);
    u->service = s;
    u->conn = conn_get_id(c);
    u->tag = f->header.tag;
    u->began = loop_now();
    u->compressed = f->header.flags & FRAME_FLAG_COMPRESSED;
    u->item.uid = conn_get_peer(c)->uid;
    u->item.may_claim = conn_get_peer(c)->may_claim;
    u->item.received = loop_clock();
    conn_frame_take_body(f, &u->body); /* before the put, because the writer may start immediately */
    if (!writer_put(s->writer, &u->job)) {
        conn_body_free(s->conns, &u->body);
        free(u);
        refusals_add(&s->counts.refused, PROFD_BUSY);
        return profd_error_set(e, PROFD_BUSY, "the queue of uploads to be stored is full");
    }
    u->session_job = session_begin(conn_get_user(c));
    return PROFD_OK;
}
