/* ADMIN backup: the copy grows in steps on the writer's connection, between batches of uploads; whole, it has no name
 * any more and is sent in pieces as the client takes them. */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "log.h"
#include "server_admin.h"

#define STEP_BYTES (4ull << 20)
#define PIECE_BYTES (12u << 10) /* below LIMIT_OUTPUT: the connection is read while the copy is sent */
#define AHEAD_BYTES (4u << 20)  /* read ahead of the pieces: the loop must not wait for the disk */
#define QUEUE_FULL_MS 50

struct server_backup_source {
    struct conn_source source; /* first */
    struct server_admin *admin;
    uint64_t sent;
    bool ended;
};

static bool server_backup_make(struct conn_source *source, uint8_t **block, size_t *size)
{
    struct server_backup_source *b = (struct server_backup_source *)(void *)source;
    const struct backup *backup = &b->admin->backup;
    struct message m = {.type = FRAME_REPLY};
    const uint64_t left = backup->total - b->sent;
    const size_t n = left < PIECE_BYTES ? (size_t)left : PIECE_BYTES;
    uint8_t piece[PIECE_BYTES];
    ssize_t got = 0;

    if (b->ended) {
        *size = 0;
        return true;
    }
    while (n && (got = pread(backup->fd, piece, n, (off_t)b->sent)) < 0 && errno == EINTR)
        ;
    if (got != (ssize_t)n) {
        log_write(LOG_LEVEL_ERROR, "administration", "backup of user %u: the copy cannot be read back", b->admin->uid);
        return false; /* the connection ends: a copy that is cut off cannot be taken for a whole one */
    }
    if (b->sent / AHEAD_BYTES != (b->sent + n) / AHEAD_BYTES || !b->sent)
        posix_fadvise(backup->fd, (off_t)(b->sent + AHEAD_BYTES), AHEAD_BYTES, POSIX_FADV_WILLNEED);
    m.as.reply.content_type = m.as.reply.etag = "";
    if (!b->sent) {
        m.as.reply.http_status = 200;
        m.as.reply.content_type = "application/vnd.sqlite3";
    }
    m.as.reply.body.data = piece;
    m.as.reply.body.size = n;
    b->sent += n;
    b->ended = b->sent == backup->total;
    m.as.reply.done = b->sent;
    m.as.reply.total = backup->total;
    return !message_encode(&m, b->ended ? FRAME_FLAG_LAST : 0, b->admin->tag, block, size, NULL);
}

static void server_backup_free(struct conn_source *source)
{
    struct server_backup_source *b = (struct server_backup_source *)(void *)source;

    server_admin_free(b->admin);
    free(b);
}

static void server_backup_send(struct server_admin *a, struct conn *c)
{
    struct server_backup_source *b = calloc(1, sizeof *b);

    if (!b) {
        server_admin_refuse(a, PROFD_NO_MEMORY, "no memory to send the copy");
        return;
    }
    b->source.make = server_backup_make;
    b->source.free = server_backup_free;
    b->source.size = sizeof *b;
    b->admin = a;
    log_write(LOG_LEVEL_NOTICE, "administration", "backup of user %u: %" PRIu64 " bytes are being sent", a->uid,
              a->backup.total);
    server_end_job(c, a->session_job);
    conn_stream(c, &b->source);
}

static void server_backup_put(struct server_admin *a)
{
    if (!work_put(a->server->writer, &a->job.write.item))
        loop_timer_set(a->timer, QUEUE_FULL_MS);
}

static void server_backup_on_timer(void *context)
{
    server_backup_put(context);
}

static void server_backup_run(struct server *s, struct server_job *job)
{
    struct server_admin *a = (struct server_admin *)(void *)job;
    const uint64_t began = loop_now();

    if (a->cancelled)
        backup_done(&a->backup);
    else
        a->status = backup_step(&a->backup, s->write_store, STEP_BYTES, &a->whole, &a->error);
    a->took_ms = loop_now() - began;
}

/* Uploads have three quarters of the writer's time. */
static void server_backup_go_on(struct server *s, struct server_admin *a)
{
    if (work_pending(s->writer) && a->took_ms)
        loop_timer_set(a->timer, 3 * a->took_ms);
    else
        server_backup_put(a);
}

static void server_backup_done(struct server *s, struct server_job *job)
{
    struct server_admin *a = (struct server_admin *)(void *)job;
    struct conn *c = server_admin_conn(a);

    if (a->cancelled) {
        server_admin_refuse(a, PROFD_STOPPING,
                            s->stopping ? "the daemon is stopping" : "nobody waits for the backup any more");
    } else if (a->status) {
        /* A full disk or a bad one under the copy says so only of the copy: the store judges its own writes. */
        server_admin_refuse(a, a->status, a->error.sentence);
    } else if (!c || s->stopping) {
        a->cancelled = true;
        server_backup_put(a); /* it ends on the thread that made it */
    } else if (a->whole) {
        server_backup_send(a, c);
    } else {
        server_admin_tell(a, a->backup.done, a->backup.total);
        server_backup_go_on(s, a);
    }
}

/* The writer may still be at work with the connection that the copy is made on: server_admin_end lets go of it. */
static void server_backup_drop(struct server *s, struct server_job *job)
{
    (void)s;
    (void)job;
}

void server_admin_end(struct server *s)
{
    if (s->backup)
        server_admin_free(s->backup);
}

enum profd_status server_admin_backup(struct server_admin *a, struct profd_error *e)
{
    struct server *s = a->server;
    enum profd_status status = backup_init(&a->backup, s->config->state_dir, ++s->backup_number, e);

    if (!status)
        status = backup_judge_space(s->config->state_dir, e);
    if (status)
        return status;
    a->timer = loop_timer_new(s->loop, server_backup_on_timer, a);
    if (!a->timer)
        return profd_error_set(e, PROFD_NO_MEMORY, "no memory for a backup");
    server_job_init(&a->job, server_backup_run, server_backup_done, server_backup_drop);
    return work_put(s->writer, &a->job.write.item) ? PROFD_OK
                                                   : profd_error_set(e, PROFD_BUSY, "too much waits to be written");
}
