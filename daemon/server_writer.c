/* The one thread that writes: what is there goes into as few transactions as its memory allows. */
#include <stdlib.h>
#include <string.h>

#include "log.h"
#include "server_attach.h"
#include "server_parts.h"
#include "server_upkeep.h"

/* Inflates if need be. The payload in item is valid until the upload's done. */
static void server_writer_unpack(struct server_upload *u)
{
    size_t size;

    u->item.payload = u->body.data;
    u->item.size = u->body.size;
    if (!u->compressed)
        return;
    u->item.status =
        frame_inflate(u->body.data, u->body.size, LIMIT_FRAME_PAYLOAD, &u->inflated, &size, &u->item.error);
    if (u->item.status)
        return;
    u->item.payload = u->inflated;
    u->item.size = size;
}

static struct server_upload *server_writer_upload(struct work_item *item)
{
    struct server_write *w = (struct server_write *)(void *)item;

    return w->kind == SERVER_WRITE_UPLOAD ? (struct server_upload *)(void *)w : NULL;
}

void server_writer_prepare(void *context, struct work_item *const *items, size_t n)
{
    struct server *s = context;

    for (size_t i = 0; i < n; i++) {
        struct server_upload *u = server_writer_upload(items[i]);

        if (!u)
            continue;
        server_writer_unpack(u);
        if (!u->item.status)
            ingest_check(s->checker, atomic_load(&s->objects_generation), &u->item);
        /* Only what is believed needs its bytes: its counts and strings are copies by now. */
        free(u->inflated);
        u->inflated = NULL;
    }
}

/* Without memory for the batch every upload is answered so. */
static void server_writer_give_up(struct work_item *const *items, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        struct server_upload *u = server_writer_upload(items[i]);

        if (u && !u->item.status)
            u->item.status =
                profd_error_set(&u->item.error, PROFD_NO_MEMORY, "no memory for a batch of %zu uploads", n);
    }
}

static void server_writer_uploads(struct store *store, struct work_item *const *items, size_t n)
{
    struct ingest_item **uploads = malloc(n * sizeof(struct ingest_item *));
    size_t count = 0;

    if (!uploads) {
        server_writer_give_up(items, n);
        return;
    }
    for (size_t i = 0; i < n; i++) {
        struct server_upload *u = server_writer_upload(items[i]);

        if (u)
            uploads[count++] = &u->item;
    }
    if (count)
        ingest_batch(store, uploads, count);
    free(uploads);
}

void server_writer_run(void *context, struct work_item *const *items, size_t n)
{
    struct server *s = context;

    atomic_fetch_add(&s->generation, 1);
    server_writer_uploads(s->write_store, items, n);
    server_attach_store(s->write_store, items, n);
    for (size_t i = 0; i < n; i++) {
        struct server_write *w = (struct server_write *)(void *)items[i];

        if (w->kind == SERVER_WRITE_UPLOAD || w->kind == SERVER_WRITE_HARVEST)
            continue;
        if (w->kind == SERVER_WRITE_JOB)
            ((struct server_job *)(void *)w)->run(s, (struct server_job *)(void *)w);
        else if (w->kind == SERVER_WRITE_OBJECT)
            server_object_store(s->write_store, (struct server_object *)(void *)w);
        /* Uploads that come from now on are checked against what is stored now. */
        atomic_fetch_add(&s->objects_generation, 1);
    }
    /* Before anybody is told: who asks behind an acknowledgement sees what was acknowledged. */
    atomic_fetch_add(&s->generation, 1);
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
    case SERVER_WRITE_JOB:
        ((struct server_job *)(void *)w)->done(s, (struct server_job *)(void *)w);
        break;
    case SERVER_WRITE_HARVEST:
        ((struct server_harvest *)(void *)w)->stored(s, (struct server_harvest *)(void *)w);
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
    } else if (w->kind == SERVER_WRITE_HARVEST) {
        struct server_harvest *h = (struct server_harvest *)(void *)w;

        h->status = profd_error_set(&h->error, PROFD_STOPPING, "the daemon is stopping");
        h->stored(context, h);
    } else {
        ((struct server_job *)(void *)w)->drop(context, (struct server_job *)(void *)w);
    }
}

void server_job_init(struct server_job *job, void (*run)(struct server *s, struct server_job *job),
                     void (*done)(struct server *s, struct server_job *job),
                     void (*drop)(struct server *s, struct server_job *job))
{
    *job = (struct server_job){.write = {.item = {.uid = UINT32_MAX, .weight = 1}, .kind = SERVER_WRITE_JOB},
                               .run = run,
                               .done = done,
                               .drop = drop};
}

void server_note_store_status(struct server *s, enum profd_status status, const struct profd_error *e)
{
    server_space_note(s, status, e);
    if ((status != PROFD_IO && status != PROFD_DAMAGED) || s->write_failed)
        return;
    s->write_failed = true;
    profd_error_set(&s->write_error, PROFD_IO, "the store failed and nothing is written any more: %s", e->sentence);
    log_write(LOG_LEVEL_ERROR, NULL, "%s", s->write_error.sentence);
    if (s->attach)
        server_attach_fail_syncs(s);
    /* A new process starts from what is on the disk; without a supervisor reads go on in this one. */
    if (s->managed)
        server_stop(s, profd_status_exit(PROFD_IO));
}
