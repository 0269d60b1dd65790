/* Runs a query: params → route → handler → answer, or a problem document. */
#include <string.h>

#include "proto/limits.h"
#include "proto/message.h"
#include "query/answers.h"
#include "query/coded.h"
#include "query/handlers.h"
#include "query/job.h"
#include "query/params.h"
#include "query/query.h"
#include "query/route.h"
#include "query/when.h"
#include "render/render.h"

void query_code_body(enum coding wanted, bool must, struct buffer *body, enum coding *coding)
{
    if ((must || body->size >= LIMIT_CODING_LEAST) && coded_body(wanted, false, must, body)) {
        *coding = wanted;
    }
}

bool query_code_file(enum coding wanted, struct buffer *body)
{
    return coded_body(wanted, true, false, body);
}

void query_code_etag(const char *etag, enum coding coding, char out[80])
{
    etag_code(etag, coding, out);
}

bool query_match_etag(const char *if_none_match, const char *etag, enum coding wanted, char out[80])
{
    return etag_match_coded(if_none_match, etag, wanted, out);
}

/* Codes what was made, gives it the tag of that coding, and keeps it. */
static void finish(struct job *job)
{
    const struct query_request *r = job->request;
    struct query_answer *answer = job->answer;
    answer->negotiated = coded_suits(answer->content_type);
    if (job->kept) {
        return;
    }
    if (answer->http_status == 200 && (answer->negotiated || r->coded_only)) {
        query_code_body(r->coding, r->coded_only, &answer->body, &answer->coding);
    }
    if (answer->http_status == 200 && answer->coding != CODING_IDENTITY) {
        etag_code(answer->etag, answer->coding, answer->etag);
    }
    if (job->tag[0] != '\0' && job->answers != NULL) {
        answers_put(job->answers, r, job->tag, answer);
    }
}

static bool takes_partial(const struct route *route)
{
    return route->report || route->handler == builds_list;
}

static enum profd_status handle(struct job *job, const struct params *params, struct profd_error *e)
{
    const struct route *route;
    enum profd_status status = route_find(job->request->target, &route, e);
    /* The question means something else a moment later if one of its times is relative. */
    bool of_now = false;
    for (size_t i = 0; i < params->count; i++) {
        const struct param *item = &params->items[i];
        const char *name = item->name[0] != '\0' && item->name[1] == '.' ? item->name + 2 : item->name; /* a.since */
        of_now |= (strcmp(name, "since") == 0 || strcmp(name, "until") == 0) && when_is_relative(item->value);
    }
    if (!of_now) {
        job->answers = job->request->answers;
    }
    if (status == PROFD_OK) {
        status = params_check(params, route->allowed, takes_partial(route) ? "partial" : NULL, e);
    }
    if (status == PROFD_OK) { /* one database has all data: an answer is whole or fails */
        bool partial;
        status = params_parse_flag(params, "partial", &partial, e);
    }
    if (status != PROFD_OK) {
        return status;
    }
    job->answer->cache_control = route->report ? "private, no-cache" : "no-store";
    status = route->handler(job, e);
    arena_continue(job->arena);
    if (status == PROFD_OK && job->answer->body.failed) {
        return profd_error_set(e, PROFD_LIMIT,
                               "the answer is larger than %u bytes, or than memory; use limit=", LIMIT_REPORT_BYTES);
    }
    return status;
}

/* What the arena cannot allocate ends here. */
static enum profd_status handle_bounded(struct job *job, const struct params *params, struct profd_error *e)
{
    ARENA_BOUNDARY(job->arena, profd_error_set(e, PROFD_NO_MEMORY, "no memory for a query"));
    return handle(job, params, e);
}

void query_run(struct store *s, const struct query_request *request, struct query_answer *answer)
{
    struct params params;
    struct profd_error error = {""};
    *answer =
        (struct query_answer){.http_status = 200, .content_type = "application/json", .cache_control = "no-store"};
    buffer_init(&answer->body, LIMIT_REPORT_BYTES);
    struct job job = {.store = s, .request = request, .params = &params, .answer = answer};
    job.arena = arena_new(request->scope.all ? LIMIT_QUERY_MEMORY : LIMIT_QUERY_MEMORY_OWN);
    enum profd_status status = job.arena == NULL ? profd_error_set(&error, PROFD_NO_MEMORY, "no memory for a query")
                                                 : params_parse(request->target, &params, &error);
    if (status == PROFD_OK) {
        status = handle_bounded(&job, &params, &error);
    }
    if (status == PROFD_NO_MEMORY && job.arena != NULL && arena_hit_limit(job.arena)) {
        status = profd_error_set(
            &error, PROFD_LIMIT,
            "the query exceeds the memory limit of %llu MiB; narrow it with since=, until= or match=",
            (unsigned long long)((request->scope.all ? LIMIT_QUERY_MEMORY : LIMIT_QUERY_MEMORY_OWN) >> 20));
    }
    arena_free(job.arena);
    if (status != PROFD_OK) {
        answer->status = status;
        profd_error_set(&answer->why, status, "%s", error.sentence);
        answer->http_status = profd_status_http(status);
        answer->content_type = "application/problem+json";
        answer->cache_control = "no-store";
        answer->etag[0] = '\0';
        buffer_done(&answer->body);
        buffer_init(&answer->body, LIMIT_REPORT_BYTES);
        render_problem(status, answer->http_status, error.sentence, &answer->body);
    } else {
        finish(&job);
    }
}

void query_answer_done(struct query_answer *answer)
{
    buffer_done(&answer->body);
}
