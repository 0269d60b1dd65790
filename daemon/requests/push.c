#include "requests/push.h"

#include <stdlib.h>

#include "base/log.h"
#include "core/container.h"
#include "ingest/otlp.h"
#include "ingest/pyroscope.h"
#include "net/loop.h"
#include "proto/http_text.h"
#include "render/render.h"
#include "requests/requests.h"
#include "requests/tokens.h"
#include "requests/uploads.h"

#define PUSH_RETRY_MS 1000

/* A request until it is answered. */
struct push {
    struct writer_job job; /* its status: of reading; then of the first profile that was not stored */
    struct push_service *service;
    struct http_exchange *exchange;
    struct foreign_request from;
    struct store_token token; /* a copy: it may be removed meanwhile. id 0: none */
    uint64_t began;           /* ms of loop_now */
    size_t bytes;
    bool connect, otlp, json; /* how it is answered */
    struct otlp_rejected rejected;
    struct foreign_list profiles;
    size_t count;
};

static enum profd_status push_find_host(void *context, const char *stated, char name[256], struct profd_error *e)
{
    const struct push *p = context;
    struct tokens_host host;

    /* A resource of OTLP has the host's own name for itself, which becomes the label host_name. */
    TRY(tokens_find_host(&p->token, p->otlp && !*p->token.hosts ? "" : stated, &host, e));
    memcpy(name, host.name, sizeof host.name);
    return PROFD_OK;
}

static void push_prepare(struct writer_job *job)
{
    struct push *p = container_of(job, struct push, job);
    struct foreign *f;

    p->job.status = p->otlp ? otlp_read(&p->from, &p->profiles, &p->rejected, &p->job.error)
                            : pyroscope_read(&p->from, &p->profiles, &p->job.error);
    TAILQ_FOREACH(f, &p->profiles, next)
    {
        if (!p->job.status) {
            foreign_check(f, p->service->builds, writer_objects_generation(p->service->shared->writer));
        }
        p->count++;
    }
}

static void push_run(struct store *store, struct writer_job *const *jobs, size_t n)
{
    const struct push_service *s = container_of(jobs[0], struct push, job)->service;
    struct foreign *f;
    size_t count = 0, at = 0;

    for (size_t i = 0; i < n; i++) {
        count += container_of(jobs[i], struct push, job)->count;
    }
    struct foreign **list = calloc(count + 1, sizeof(struct foreign *));
    for (size_t i = 0; i < n; i++) {
        struct push *p = container_of(jobs[i], struct push, job);

        if (!list && !p->job.status) {
            p->job.status = profd_no_memory(&p->job.error);
        }
        TAILQ_FOREACH(f, &p->profiles, next)
        {
            if (!p->job.status) {
                list[at++] = f;
            }
        }
    }
    if (at > 0) {
        foreign_batch(s->names, store, writer_objects_generation(s->shared->writer), jobs[0]->full, list, at);
    }
    free(list);
}

static void push_answer(struct push *p)
{
    struct page page;

    if (p->job.status && p->connect) {
        page_init(&page, 500, "application/json");
        page.status = render_connect_problem(p->job.status, p->job.error.sentence, &page.body);
    } else if (p->otlp) {
        page_init(&page,
                  !p->job.status                      ? 200
                  : profd_status_retry(p->job.status) ? 503
                                                      : profd_status_http(p->job.status),
                  p->json ? "application/json" : "application/x-protobuf");
        otlp_answer(p->json, p->job.status, p->job.error.sentence, &p->rejected, &page.body);
    } else if (p->job.status) {
        page_problem(&page, profd_status_http(p->job.status), p->job.status, p->job.error.sentence);
    } else {
        page_init(&page, 200,
                  p->json      ? "application/json"
                  : p->connect ? "application/proto"
                               : "text/plain; charset=utf-8");
        buffer_add_text(&page.body, p->json ? "{}" : "");
    }
    page.retry_after_ms = page.status == 503 ? PUSH_RETRY_MS : 0;
    reply_tell(p->exchange, &page);
}

/* Counts the profiles, answers and frees the request. */
static void push_done(struct writer_job *job)
{
    struct push *p = container_of(job, struct push, job);
    struct upload_counts *counts = p->service->counts;
    const bool read = !p->job.status; /* or nothing was stored */
    struct foreign *f;

    durations_add(&counts->seconds, (double)(loop_now() - p->began) / 1000.0);
    counts->bytes += p->bytes;
    if (!read) {
        refusals_add(&counts->refused, p->job.status);
    }
    while ((f = TAILQ_FIRST(&p->profiles))) {
        const struct ingest_item *item = &f->item;

        if (read && item->status) {
            refusals_add(&counts->refused, item->status);
            if (p->otlp && !profd_status_retry(item->status)) {
                if (p->rejected.count++ == 0) {
                    p->rejected.why = item->error;
                }
            } else if (!p->job.status) {
                p->job.status = item->status;
                p->job.error = item->error;
            }
        } else if (read) {
            upload_count(counts, item);
        }
        TAILQ_REMOVE(&p->profiles, f, next);
        foreign_free(f);
    }
    if (p->job.status) {
        log_write(LOG_LEVEL_INFO, "profile refused", "a pushed profile of user %u was refused: %s", p->from.uid,
                  p->job.error.sentence);
    }
    if (p->job.status == PROFD_FULL) {
        p->service->shared->no_space(p->service->shared->context);
    }
    push_answer(p);
    free(p);
}

static const struct writer_job_type push_type = {.prepare = push_prepare, .run_all = push_run, .done = push_done};

static bool path_is(const char *path, size_t n, const char *wanted)
{
    return n == strlen(wanted) && memcmp(path, wanted, n) == 0;
}

int push_judge(void *context, const struct http_body_head *head, struct profd_error *e)
{
    const struct push_service *s = context;
    const struct store_token *t = tokens_find(s->shared->tokens, head->token);
    const bool push = path_is(head->path, head->n, PYROSCOPE_PUSH), otlp = path_is(head->path, head->n, OTLP_PATH);
    const char *const type = push ? "application/proto" : "application/x-protobuf";

    if (head->tcp && !t) {
        profd_error_set(e, PROFD_UNAUTHORIZED,
                        "profiles need a token with the right write; make one with profctl token add NAME --write");
        return 401;
    }
    if (t && tokens_check_write(t, e)) {
        return 403;
    }
    if (*s->relay) {
        profd_error_set(e, PROFD_CONFLICT,
                        "this daemon forwards its uploads (relay is configured): send profiles to %.200s", *s->relay);
        return 409;
    }
    if ((push || otlp) && !http_type_is(head->type, head->type_size, type) &&
        !http_type_is(head->type, head->type_size, "application/json")) {
        profd_error_set(e, PROFD_REFUSED, "%s takes %s and application/json, not '%.*s'", push ? "Push" : "OTLP", type,
                        (int)(head->type_size < 100 ? head->type_size : 100), head->type);
        return 415;
    }
    return 0;
}

void push_receive(void *context, struct http_exchange *x, const struct http_request *request)
{
    struct push_service *s = context;
    const struct store_token *token = tokens_find(s->shared->tokens, request->token);
    const size_t path = strcspn(request->target, "?");
    struct push *p = calloc(1, sizeof *p), none = {.exchange = x};

    none.connect = path_is(request->target, path, PYROSCOPE_PUSH);
    none.otlp = path_is(request->target, path, OTLP_PATH);
    none.json = (none.connect || none.otlp) &&
                http_type_is(request->content_type, strlen(request->content_type), "application/json");
    if (!p || (request->token && !token)) {
        none.job.status = p ? profd_error_set(&none.job.error, PROFD_UNAUTHORIZED, "the token was removed")
                            : profd_no_memory(&none.job.error);
        push_answer(&none);
        free(p);
        return;
    }
    *p = none;
    TAILQ_INIT(&p->profiles);
    p->service = s;
    p->began = loop_now();
    p->bytes = request->size;
    p->token = token ? *token : (struct store_token){.id = 0};
    p->from = (struct foreign_request){.names = s->names,
                                       .uid = token ? token->uid : request->peer.uid,
                                       .received = loop_clock(),
                                       .find_host = token ? push_find_host : NULL,
                                       .context = p,
                                       .target = request->target,
                                       .content_type = request->content_type,
                                       .body = request->bytes,
                                       .size = request->size};
    p->job.type = &push_type;
    p->job.item.uid = p->from.uid;
    p->job.item.weight = PYROSCOPE_PROFILE_MOST; /* compression hides it */
    none.job.status = writer_check(s->shared->writer, &none.job.error);
    if (!none.job.status && !writer_put(s->shared->writer, &p->job)) { /* from here on, p is the writer's */
        none.job.status = profd_error_set(&none.job.error, PROFD_BUSY, "the queue of uploads to be stored is full");
    }
    if (none.job.status) {
        refusals_add(&s->counts->refused, none.job.status);
        push_answer(&none);
        free(p);
    }
}
