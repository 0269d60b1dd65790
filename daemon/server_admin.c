/* ADMIN: an operator's verbs. Who may is decided by the kernel's word about the peer; what was asked for is judged by
 * admin/. */
#include "server_admin.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "log.h"
#include "server_attach.h"

static const char *const server_admin_names[] = {[REQUEST_DELETE] = "delete",
                                                 [REQUEST_VERIFY] = "verify",
                                                 [REQUEST_BACKUP] = "backup",
                                                 [REQUEST_PAUSE] = "pause",
                                                 [REQUEST_RESUME] = "resume"};

struct conn *server_admin_conn(const struct server_admin *a)
{
    return conn_find(a->server->conns, a->conn);
}

void server_admin_free(struct server_admin *a)
{
    a->server->admin_jobs--;
    if (a->server->backup == a)
        a->server->backup = NULL;
    verify_done(&a->check.verify);
    backup_done(&a->backup);
    loop_timer_free(a->timer);
    free(a);
}

void server_admin_tell(struct server_admin *a, uint64_t done, uint64_t total)
{
    struct message m = {.type = FRAME_REPLY};
    struct conn *c = server_admin_conn(a);

    if (!c || loop_now() - a->told < SERVER_PROGRESS_MS)
        return;
    a->told = loop_now();
    m.as.reply.content_type = m.as.reply.etag = "";
    m.as.reply.done = done;
    m.as.reply.total = total > done ? total : done;
    conn_send(c, &m, 0, a->tag);
}

void server_admin_refuse(struct server_admin *a, enum profd_status status, const char *sentence)
{
    struct conn *c = server_admin_conn(a);

    log_write(LOG_LEVEL_NOTICE, "administration", "%s of user %u: %s", server_admin_names[a->request.verb], a->uid,
              sentence);
    if (c) {
        conn_nack(c, a->tag, status, sentence, 1000);
        server_end_job(c, a->session_job);
    }
    server_admin_free(a);
}

void server_admin_answer(struct server_admin *a, struct server_page *page)
{
    struct conn *c = server_admin_conn(a);

    if (c) {
        server_reply(a->server, c, a->tag, page);
        server_end_job(c, a->session_job);
    } else {
        buffer_done(&page->body);
    }
    server_admin_free(a);
}

static void server_admin_delete_run(struct server *s, struct server_job *job)
{
    struct server_admin *a = (struct server_admin *)(void *)job;
    const struct store_scope everybody = {.all = true};

    a->status = store_find_build(s->write_store, &everybody, a->request.build, &a->build, &a->error);
    if (!a->status)
        a->status = store_delete_build(s->write_store, &everybody, a->build.text, &a->uploads, &a->error);
    /* Its symbols may have gone with it: uploads that come from now on are checked against what is stored now. */
    atomic_fetch_add(&s->objects_generation, 1);
}

static void server_admin_delete_done(struct server *s, struct server_job *job)
{
    struct server_admin *a = (struct server_admin *)(void *)job;
    struct server_page page;

    server_note_store_status(s, a->status, &a->error);
    if (a->status) {
        server_admin_refuse(a, a->status, a->error.sentence);
        return;
    }
    log_write(LOG_LEVEL_NOTICE, NULL, "user %u deleted build %s: %" PRIu64 " uploads", a->uid, a->build.text,
              a->uploads);
    server_upkeep_hurry(s);
    server_page_init(&page, 200, "application/json; charset=utf-8");
    buffer_add_format(&page.body, "{\"build_id\":\"%s\",\"uploads\":%" PRIu64 "}\n", a->build.text, a->uploads);
    server_admin_answer(a, &page);
}

static void server_admin_delete_drop(struct server *s, struct server_job *job)
{
    (void)s;
    server_admin_refuse((struct server_admin *)(void *)job, PROFD_STOPPING, "the daemon is stopping");
}

static enum profd_status server_admin_delete(struct server_admin *a, struct profd_error *e)
{
    server_job_init(&a->job, server_admin_delete_run, server_admin_delete_done, server_admin_delete_drop);
    return work_put(a->server->writer, &a->job.write.item)
               ? PROFD_OK
               : profd_error_set(e, PROFD_BUSY, "too much waits to be written");
}

static enum profd_status server_admin_judge(struct server *s, const struct conn *c, const struct message_admin *m,
                                            struct request *request, struct profd_error *e)
{
    const struct peer *peer = conn_get_peer(c);
    const bool everybodys = !strcmp(m->verb, "pause") || !strcmp(m->verb, "resume"); /* for processes of one's own */
    enum profd_status status = PROFD_OK;

    if (!peer->may_admin && !everybodys)
        return profd_error_set(e, PROFD_FORBIDDEN,
                               "user %u may not %.100s: root, the daemon's user and members of the admin group may",
                               peer->uid, m->verb);
    status = request_parse(m->verb, m->arguments, m->argument_count, request, e);
    if (status || everybodys)
        return status;
    if (request->verb != REQUEST_VERIFY && s->write_failed) {
        *e = s->write_error;
        return PROFD_IO;
    }
    if (request->verb == REQUEST_BACKUP && s->backup)
        return profd_error_set(e, PROFD_BUSY, "another backup is being made");
    if (s->admin_jobs >= LIMIT_ADMIN_JOBS)
        return profd_error_set(e, PROFD_BUSY, "%zu verbs of operators wait or run, at most %u may", s->admin_jobs,
                               LIMIT_ADMIN_JOBS);
    return PROFD_OK;
}

static enum profd_status server_admin_begin(struct server_admin *a, struct profd_error *e)
{
    switch (a->request.verb) {
    case REQUEST_DELETE:
        return server_admin_delete(a, e);
    case REQUEST_VERIFY:
        return server_admin_verify(a, e);
    default:
        return server_admin_backup(a, e);
    }
}

/* A word to live processes is said at once. */
static enum profd_status server_admin_switch(struct server *s, struct conn *c, uint32_t tag,
                                             const struct request *request, struct profd_error *e)
{
    struct server_page page;
    enum profd_status status = server_attach_switch(s, conn_get_peer(c), request, &page, e);

    if (!status)
        server_reply(s, c, tag, &page);
    return status;
}

enum profd_status server_take_admin(void *context, struct conn *c, struct conn_frame *f, struct profd_error *e)
{
    struct server *s = context;
    struct server_admin *a;
    struct request request;
    struct message m;
    enum profd_status status = server_decode(f, &m, e);

    if (status)
        return status;
    status = server_admin_judge(s, c, &m.as.admin, &request, e);
    if (!status && (request.verb == REQUEST_PAUSE || request.verb == REQUEST_RESUME)) {
        status = server_admin_switch(s, c, f->header.tag, &request, e);
        message_done(&m);
        return status;
    }
    message_done(&m);
    if (status)
        return status;
    a = calloc(1, sizeof *a);
    if (!a)
        return profd_error_set(e, PROFD_NO_MEMORY, "no memory for an operator's verb");
    a->server = s;
    a->conn = conn_get_id(c);
    a->tag = f->header.tag;
    a->uid = conn_get_peer(c)->uid;
    a->request = request;
    a->backup.fd = -1;
    verify_init(&a->check.verify, LIMIT_MISMATCHES);
    s->admin_jobs++;
    if (request.verb == REQUEST_BACKUP)
        s->backup = a;
    status = server_admin_begin(a, e);
    if (status) {
        server_admin_free(a);
        return status;
    }
    a->session_job = session_begin(conn_get_user(c));
    log_write(LOG_LEVEL_NOTICE, "administration", "user %u asks for %s %s", a->uid, server_admin_names[request.verb],
              request.build);
    return PROFD_OK;
}
