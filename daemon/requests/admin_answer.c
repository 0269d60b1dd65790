/* Answers of operators' verbs, and how far they are. */
#include <stdlib.h>
#include <string.h>

#include "core/container.h"
#include "base/log.h"
#include "net/loop.h"
#include "requests/admin_internal.h"
#include "requests/sync.h"

struct conn *admin_get_conn(const struct admin *a)
{
    return conn_find(a->service->config.conns, a->conn);
}

void admin_free(struct admin *a)
{
    a->service->jobs--;
    LIST_REMOVE(a, of_all);
    if (a->service->backup == a) {
        a->service->backup = NULL;
    }
    verify_done(&a->check.verify);
    backup_done(&a->backup);
    json_decref(a->answer);
    explicit_bzero(a->token, sizeof a->token);
    loop_timer_free(a->timer);
    free(a);
}

void admin_report(struct admin *a, uint64_t done, uint64_t total)
{
    struct message m = {.type = FRAME_REPLY};
    struct conn *c = admin_get_conn(a);

    if (!c || loop_now() - a->told < ADMIN_PROGRESS_MS) {
        return;
    }
    a->told = loop_now();
    m.as.reply.content_type = m.as.reply.etag = "";
    m.as.reply.done = done;
    m.as.reply.total = total > done ? total : done;
    conn_send(c, &m, 0, a->tag);
}

void admin_refuse(struct admin *a, enum profd_status status, const char *sentence)
{
    struct conn *c = admin_get_conn(a);

    log_write(LOG_LEVEL_NOTICE, "administration", "%s of user %u: %s", request_verb_name(a->request.verb), a->uid,
              sentence);
    if (c) {
        conn_nack(c, a->tag, status, sentence, 1000);
        sync_end_job(a->service->config.sync, c, a->session_job);
    }
    admin_free(a);
}

void admin_answer(struct admin *a, struct page *page)
{
    struct conn *c = admin_get_conn(a);

    if (c) {
        reply_send(a->service->config.replies, c, a->tag, page);
        sync_end_job(a->service->config.sync, c, a->session_job);
    } else {
        buffer_done(&page->body);
    }
    admin_free(a);
}

void admin_drop(struct writer_job *job)
{
    admin_refuse(container_of(job, struct admin, job), PROFD_STOPPING, "the daemon is stopping");
}

#define ANSWER_MAX (64u << 20) /* bytes */

static void work_run(struct store *store, const struct profd_error *full, struct writer_job *const *jobs, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        struct admin *a = container_of(jobs[i], struct admin, job);

        a->status = atomic_load(&a->gone) ? profd_error_set(&a->error, PROFD_STOPPING, "not begun, because " ADMIN_GONE)
                                          : a->run(a, store, full, &a->error);
    }
}

void admin_end(struct admin *a)
{
    struct page page;

    if (a->status) {
        admin_refuse(a, a->status, a->error.sentence);
        return;
    }
    page_init(&page, 200, "application/json; charset=utf-8");
    page.body.limit = ANSWER_MAX;
    document_write(a->answer, &page.body);
    a->answer = NULL;
    admin_answer(a, &page);
}

static void work_done(struct writer_job *job)
{
    struct admin *a = container_of(job, struct admin, job);

    if (!a->status) {
        a->status = a->done(a, &a->error);
    }
    admin_end(a);
}

static const struct writer_job_type work_type = {.run = work_run, .done = work_done, .drop = admin_drop};
/* Symbols of a build that is deleted may go with it. */
static const struct writer_job_type delete_type = {
    .run = work_run, .done = work_done, .drop = admin_drop, .changes_objects = true};

enum profd_status admin_submit(struct admin *a, admin_run *run, admin_done *done, struct profd_error *e)
{
    a->run = run;
    a->done = done;
    return writer_submit(a->service->config.writer, &a->job,
                         a->request.verb == REQUEST_DELETE ? &delete_type : &work_type, e);
}
