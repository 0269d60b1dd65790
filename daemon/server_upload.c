/* UPLOAD: queued, stored with others in one transaction, answered when that is durable. */
#include <stdlib.h>
#include <string.h>

#include "log.h"
#include "server_parts.h"

#define BUSY_RETRY_MS 200

enum profd_status server_take_upload(void *context, struct conn *c, struct conn_frame *f, struct profd_error *e)
{
    struct server *s = context;
    struct server_upload *u;

    s->metrics.upload_bytes += f->body.size;
    if (s->write_failed) {
        *e = s->write_error;
        s->metrics.uploads_rejected[PROFD_IO]++;
        return PROFD_IO;
    }
    u = calloc(1, sizeof *u);
    if (!u)
        return profd_error_set(e, PROFD_NO_MEMORY, "no memory for an upload");
    u->write.kind = SERVER_WRITE_UPLOAD;
    u->write.item.uid = conn_get_peer(c)->uid;
    /* Compressed twice it hides what it weighs. */
    u->write.item.weight =
        f->header.flags & FRAME_FLAG_COMPRESSED ? LIMIT_COUNTS_RAW : message_upload_weight(f->body.data, f->body.size);
    u->conn = conn_get_id(c);
    u->tag = f->header.tag;
    u->began = loop_now();
    u->compressed = f->header.flags & FRAME_FLAG_COMPRESSED;
    u->item.uid = conn_get_peer(c)->uid;
    u->item.received = server_clock();
    conn_frame_take_body(f, &u->body); /* before the put: the writer may begin at once */
    if (!work_put(s->writer, &u->write.item)) {
        conn_body_free(s->conns, &u->body);
        free(u);
        s->metrics.uploads_rejected[PROFD_BUSY]++;
        return profd_error_set(e, PROFD_BUSY, "too many uploads wait to be stored");
    }
    u->job = session_begin(conn_get_user(c));
    return PROFD_OK;
}

void server_want_objects(struct server *s, struct conn *c, const struct wanted_build *wanted, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        struct message m = {.type = FRAME_WANT_OBJECT};

        if (!session_ask(conn_get_user(c), &wanted[i].id))
            continue;
        m.as.object.build_id = wanted[i].id.text;
        m.as.object.name = wanted[i].name;
        conn_send(c, &m, 0, 0);
        s->metrics.objects_wanted++;
    }
}

static void server_upload_count(struct server *s, const struct server_upload *u)
{
    struct metrics *m = &s->metrics;

    metrics_add_seconds(&m->upload_seconds, (double)(loop_now() - u->began) / 1000.0);
    if (u->item.status) {
        m->uploads_rejected[u->item.status < METRICS_STATUSES ? u->item.status : 0]++;
    } else if (u->item.duplicate) {
        m->uploads_duplicate++;
    } else {
        m->uploads_ok++;
        m->samples += u->item.ticks;
        m->calls += u->item.calls;
    }
}

void server_upload_done(struct server *s, struct server_upload *u)
{
    struct conn *c = conn_find(s->conns, u->conn);

    server_upload_count(s, u);
    if (u->item.status)
        log_write(LOG_LEVEL_INFO, "upload refused", "an upload of user %u was refused: %s", u->item.uid,
                  u->item.error.sentence);
    if (c && u->item.status) {
        /* That the store is damaged is no fault of the upload: its sender must keep it. */
        conn_nack(c, u->tag, u->item.status == PROFD_DAMAGED ? PROFD_IO : u->item.status, u->item.error.sentence,
                  u->item.retry_after_ms ? u->item.retry_after_ms : BUSY_RETRY_MS);
    } else if (c) {
        struct message ack = {.type = FRAME_ACK};

        server_want_objects(s, c, u->item.wanted, u->item.wanted_count); /* before the ACK (DECISIONS 19) */
        ack.as.ack.duplicate = u->item.duplicate;
        conn_answer(c, &ack, 0, u->tag);
    }
    if (c)
        server_end_job(c, u->job);
    server_note_store_status(s, u->item.status, &u->item.error); /* may end connections */
    ingest_item_done(&u->item);
    conn_body_free(s->conns, &u->body);
    free(u->inflated);
    free(u);
}
