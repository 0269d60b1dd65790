/* The one thread that writes: what is there goes into as few transactions as its memory allows. */
#include <stdlib.h>
#include <string.h>

#include "log.h"
#include "server_parts.h"

#define SLICE_BYTES (16u << 20) /* inflated payloads of one transaction, about */

/* Inflates if need be. The payload in item is valid until the upload's done. */
static void server_writer_unpack(struct server_upload *u)
{
    struct profd_error e = {""};
    size_t size;

    u->item.payload = u->body.data;
    u->item.size = u->body.size;
    if (!u->compressed)
        return;
    u->item.status = frame_inflate(u->body.data, u->body.size, LIMIT_FRAME_PAYLOAD, &u->inflated, &size, &e);
    if (u->item.status) {
        u->item.error = e;
        return;
    }
    u->item.payload = u->inflated;
    u->item.size = size;
}

static void server_writer_store_slice(struct store *store, struct ingest_item *items, struct server_upload **uploads,
                                      size_t n)
{
    if (n)
        ingest_batch(store, items, n);
    for (size_t i = 0; i < n; i++) {
        uploads[i]->item = items[i];
        free(uploads[i]->inflated);
        uploads[i]->inflated = NULL;
    }
}

/* Without memory for the batch every upload is answered so. */
static void server_writer_give_up(struct work_item *const *items, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        struct server_write *w = (struct server_write *)(void *)items[i];
        struct server_upload *u = (struct server_upload *)(void *)w;

        if (w->kind == SERVER_WRITE_UPLOAD)
            u->item.status =
                profd_error_set(&u->item.error, PROFD_NO_MEMORY, "no memory for a batch of %zu uploads", n);
    }
}

static void server_writer_uploads(struct store *store, struct work_item *const *items, size_t n)
{
    struct ingest_item *slice = malloc(n * sizeof *slice);
    struct server_upload **uploads = malloc(n * sizeof(struct server_upload *));
    size_t count = 0, bytes = 0;

    if (!slice || !uploads) {
        server_writer_give_up(items, n);
        n = 0;
    }
    for (size_t i = 0; i < n; i++) {
        struct server_write *w = (struct server_write *)(void *)items[i];
        struct server_upload *u = (struct server_upload *)(void *)w;

        if (w->kind != SERVER_WRITE_UPLOAD)
            continue;
        server_writer_unpack(u);
        if (u->item.status)
            continue;
        uploads[count] = u;
        slice[count++] = u->item;
        bytes += u->item.size;
        if (bytes >= SLICE_BYTES) {
            server_writer_store_slice(store, slice, uploads, count);
            count = bytes = 0;
        }
    }
    server_writer_store_slice(store, slice, uploads, count);
    free(slice);
    free(uploads);
}

void server_writer_run(void *context, struct work_item *const *items, size_t n)
{
    struct store *store = context;

    server_writer_uploads(store, items, n);
    for (size_t i = 0; i < n; i++) {
        struct server_write *w = (struct server_write *)(void *)items[i];

        if (w->kind == SERVER_WRITE_OBJECT)
            server_object_store(store, (struct server_object *)(void *)w);
        else if (w->kind == SERVER_WRITE_FORGET)
            store_forget_ids(store, server_clock() - LIMIT_ID_DAYS * INT64_C(86400000000000), NULL);
    }
}

void server_writer_done(void *context, struct work_item *item)
{
    struct server_write *w = (struct server_write *)(void *)item;
    struct server *s = context;

    switch (w->kind) {
    case SERVER_WRITE_UPLOAD:
        server_upload_done(s, (struct server_upload *)(void *)w);
        break;
    case SERVER_WRITE_OBJECT:
        server_object_stored(s, (struct server_object *)(void *)w);
        break;
    case SERVER_WRITE_FORGET:
        free(w);
        break;
    }
}

void server_writer_drop(void *context, struct work_item *item)
{
    struct server_write *w = (struct server_write *)(void *)item;

    if (w->kind == SERVER_WRITE_UPLOAD) {
        struct server_upload *u = (struct server_upload *)(void *)w;

        u->item.status = profd_error_set(&u->item.error, PROFD_STOPPING, "the daemon is stopping");
        server_upload_done(context, u);
    } else if (w->kind == SERVER_WRITE_OBJECT) {
        server_object_drop(context, item);
    } else {
        free(w);
    }
}

void server_writer_forget(void *context)
{
    struct server *s = context;
    struct server_write *w = calloc(1, sizeof *w);

    if (w) {
        w->kind = SERVER_WRITE_FORGET;
        if (s->write_failed || !work_put(s->writer, &w->item))
            free(w);
    }
    loop_timer_set(s->daily, 86400000u);
}

void server_note_store_status(struct server *s, enum profd_status status, const struct profd_error *e)
{
    if ((status != PROFD_IO && status != PROFD_DAMAGED) || s->write_failed)
        return;
    s->write_failed = true;
    profd_error_set(&s->write_error, PROFD_IO, "the store failed and nothing is written any more: %s", e->sentence);
    log_write(LOG_LEVEL_ERROR, NULL, "%s", s->write_error.sentence);
    /* A new process starts from what is on the disk; without a supervisor reads go on in this one. */
    if (s->managed)
        server_stop(s, profd_status_exit(PROFD_IO));
}
