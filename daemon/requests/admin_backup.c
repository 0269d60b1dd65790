/* ADMIN backup: the copy is made in steps on the writer's connection, between batches of uploads. The complete copy is
 * unlinked and sent in pieces as the client reads them. */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "core/container.h"
#include "base/log.h"
#include "net/loop.h"
#include "requests/page.h"
#include "render/document.h"
#include "requests/admin_internal.h"
#include "requests/sync.h"

#define PAUSE_MS 40

static struct admin *admin_of(struct verification *round)
{
    return container_of(round, struct admin, check);
}

static void admin_verify_answer(struct admin *a)
{
    const struct verify *v = &a->check.verify;
    const char *at = v->sentences.data, *end = at ? at + v->sentences.size : at;
    json_t *rows = json_array();
    struct page page;

    while (at < end) {
        const char *line = at, *stop = memchr(at, '\n', (size_t)(end - at));

        json_array_append_new(rows, json_pack("{s:o}", "mismatch", document_text_of(line, (size_t)(stop - line))));
        at = stop + 1;
    }
    page_init(&page, 200, "application/json; charset=utf-8");
    page.body.limit = 8u << 20; /* what is escaped grows */
    document_write(json_pack("{s:I, s:I, s:o}", "uploads", (json_int_t)v->uploads, "mismatches",
                             (json_int_t)v->mismatches, "rows", rows),
                   &page.body);
    admin_answer(a, &page);
}

static void admin_verify_put(struct admin *a)
{
    if (!verifier_put(a->service->config.verifier, &a->check)) {
        admin_refuse(a, verifier_is_stopped(a->service->config.verifier) ? PROFD_STOPPING : PROFD_BUSY,
                     verifier_is_stopped(a->service->config.verifier) ? "the daemon is stopping"
                                                                      : "the queue of verifications is full");
    }
}

static void admin_verify_on_timer(void *context)
{
    admin_verify_put(context);
}

static void admin_verify_done(struct verification *c)
{
    struct admin *a = admin_of(c);

    verifier_note(a->service->config.verifier, c);
    if (c->status) {
        admin_refuse(a, c->status, c->error.sentence);
    } else if (atomic_load(&a->gone) || !admin_get_conn(a)) {
        admin_refuse(a, PROFD_STOPPING, "ended, because " ADMIN_GONE);
    } else if (c->verify.cursor.done) {
        admin_verify_answer(a);
    } else {
        admin_report(a, c->verify.uploads, c->verify.total);
        /* A permanent reader would prevent the write-ahead log from being reset, so that it would grow with every
         * upload. */
        if (writer_pending(a->service->config.writer)) {
            loop_timer_set(a->timer, PAUSE_MS);
        } else {
            admin_verify_put(a);
        }
    }
}

static void admin_verify_drop(struct verification *c)
{
    admin_refuse(admin_of(c), PROFD_STOPPING, "the daemon is stopping");
}

enum profd_status admin_begin_verify(struct admin *a, struct profd_error *e)
{
    a->timer = loop_timer_new(a->service->config.loop, admin_verify_on_timer, a);
    if (!a->timer) {
        return profd_error_set(e, PROFD_NO_MEMORY, "no memory for a verification");
    }
    a->check.item.uid = a->uid;
    a->check.done = admin_verify_done;
    a->check.drop = admin_verify_drop;
    return verifier_put(a->service->config.verifier, &a->check)
               ? PROFD_OK
               : profd_error_set(e, PROFD_BUSY, "the queue of verifications is full");
}

#define STEP_BYTES (4ull << 20)
#define PIECE_BYTES (12u << 10) /* below LIMIT_OUTPUT, so that requests are still read while the copy is sent */
#define AHEAD_BYTES (4u << 20)  /* read ahead, because the loop must not wait for the disk */
#define QUEUE_FULL_MS 50

struct admin_backup_source {
    struct conn_source source;
    struct admin *admin;
    uint64_t sent;
    bool ended;
};

static bool admin_backup_make(struct conn_source *source, uint8_t **block, size_t *size)
{
    struct admin_backup_source *b = container_of(source, struct admin_backup_source, source);
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
    while (n && (got = pread(backup->fd, piece, n, (off_t)b->sent)) < 0 && errno == EINTR) {
    }
    if (got != (ssize_t)n) {
        log_write(LOG_LEVEL_ERROR, "administration", "backup of user %u: the copy cannot be read back", b->admin->uid);
        return false; /* closes the connection, so that the client cannot take a truncated copy for a complete one */
    }
    if (b->sent / AHEAD_BYTES != (b->sent + n) / AHEAD_BYTES || !b->sent) {
        posix_fadvise(backup->fd, (off_t)(b->sent + AHEAD_BYTES), AHEAD_BYTES, POSIX_FADV_WILLNEED);
    }
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

static void admin_backup_free(struct conn_source *source)
{
    struct admin_backup_source *b = container_of(source, struct admin_backup_source, source);

    admin_free(b->admin);
    free(b);
}

static void admin_backup_send(struct admin *a, struct conn *c)
{
    struct admin_backup_source *b = calloc(1, sizeof *b);

    if (!b) {
        admin_refuse(a, PROFD_NO_MEMORY, "no memory to send the copy");
        return;
    }
    b->source.make = admin_backup_make;
    b->source.free = admin_backup_free;
    b->source.size = sizeof *b;
    b->admin = a;
    log_write(LOG_LEVEL_NOTICE, "administration", "backup of user %u: %" PRIu64 " bytes are being sent", a->uid,
              a->backup.total);
    sync_end_job(a->service->config.sync, c, a->session_job);
    conn_stream(c, &b->source);
}

static void admin_backup_put(struct admin *a)
{
    if (!writer_put(a->service->config.writer, &a->job)) {
        loop_timer_set(a->timer, QUEUE_FULL_MS);
    }
}

static void admin_backup_on_timer(void *context)
{
    admin_backup_put(context);
}

static void admin_backup_step_one(struct admin *a, struct store *store, const struct profd_error *full)
{
    const uint64_t began = loop_now();

    if (a->cancelled || atomic_load(&a->gone)) {
        a->cancelled = true;
        backup_done(&a->backup);
    } else if (full) { /* the copy must not use space that was freed for removals */
        a->status = PROFD_FULL;
        a->error = *full;
    } else {
        a->status = backup_step(&a->backup, store, STEP_BYTES, &a->whole, &a->error);
    }
    a->took_ms = loop_now() - began;
}

static void admin_backup_run(struct store *store, const struct profd_error *full, struct writer_job *const *jobs,
                             size_t n)
{
    for (size_t i = 0; i < n; i++) {
        admin_backup_step_one(container_of(jobs[i], struct admin, job), store, full);
    }
}

static void admin_backup_step_done(struct writer_job *job)
{
    struct admin *a = container_of(job, struct admin, job);
    const struct admin_service *s = a->service;
    struct conn *c = admin_get_conn(a);

    if (a->cancelled) {
        admin_refuse(a, PROFD_STOPPING, s->stopped ? "the daemon is stopping" : "ended, because " ADMIN_GONE);
    } else if (a->status) {
        /* An error of the copy concerns only the copy: the store detects its own errors. */
        admin_refuse(a, a->status, a->error.sentence);
    } else if (!c || s->stopped) {
        a->cancelled = true;
        admin_backup_put(a); /* it ends on the thread that made it */
    } else if (a->whole) {
        admin_backup_send(a, c);
    } else {
        admin_report(a, a->backup.done, a->backup.total);
        /* Uploads have three quarters of the writer's time. */
        if (writer_pending(s->config.writer) && a->took_ms) {
            loop_timer_set(a->timer, 3 * a->took_ms);
        } else {
            admin_backup_put(a);
        }
    }
}

/* The writer may still use the connection that makes the copy: admin_end frees it. */
static void admin_backup_drop(struct writer_job *job)
{
    (void)job;
}

static const struct writer_job_type admin_backup_type = {
    .run = admin_backup_run, .done = admin_backup_step_done, .drop = admin_backup_drop};

enum profd_status admin_begin_backup(struct admin *a, struct profd_error *e)
{
    struct admin_service *s = a->service;
    TRY(backup_init(&a->backup, s->config.state_dir, ++s->backup_number, e));
    TRY(backup_judge_space(s->config.state_dir, e));
    a->timer = loop_timer_new(s->config.loop, admin_backup_on_timer, a);
    if (!a->timer) {
        return profd_error_set(e, PROFD_NO_MEMORY, "no memory for a backup");
    }
    return writer_submit(s->config.writer, &a->job, &admin_backup_type, e);
}
