/* The corridor itself: params → route → handler → answer, or a problem document. */
#include <string.h>

#include "proto/limits.h"
#include "query/job.h"
#include "query/params.h"
#include "query/query.h"
#include "query/route.h"
#include "render/render.h"

bool query_owns(const char *target)
{
    size_t n = strcspn(target, "?");
    return strncmp(target, "/api/", 5) == 0 || (n == strlen("/openapi.json") && strncmp(target, "/openapi.json", n) == 0);
}

static void answer_problem(struct query_answer *answer, enum profd_status status, const char *sentence)
{
    answer->status = status;
    answer->http_status = profd_status_http(status);
    answer->content_type = "application/problem+json";
    answer->cache_control = "no-store";
    answer->etag[0] = '\0';
    buffer_done(&answer->body);
    buffer_init(&answer->body, LIMIT_REPORT_BYTES);
    render_problem(status, answer->http_status, sentence, &answer->body);
}

static enum profd_status handle(struct job *job, const struct params *params, struct profd_error *e)
{
    const struct route *route;
    enum profd_status status = route_find(params, &route, e);
    if (status == PROFD_OK) {
        status = params_check(params, route->allowed, e);
    }
    if (status != PROFD_OK) {
        return status;
    }
    job->answer->cache_control = route->report ? "private, no-cache" : "no-store";
    status = route->handler(job, e);
    if (status == PROFD_OK && job->answer->body.failed) {
        return profd_error_set(e, PROFD_LIMIT, "the answer is larger than %u bytes, or than memory: ask with limit=",
                               LIMIT_REPORT_BYTES);
    }
    return status;
}

void query_run(struct store *s, const struct query_request *request, struct query_answer *answer)
{
    struct params params;
    struct profd_error error = {""};
    *answer = (struct query_answer){.http_status = 200, .content_type = "application/json", .cache_control = "no-store"};
    buffer_init(&answer->body, LIMIT_REPORT_BYTES);
    struct job job = {s, request, &params, arena_new(request->scope.all ? LIMIT_QUERY_MEMORY : LIMIT_QUERY_MEMORY_OWN), answer};
    enum profd_status status = job.arena == NULL ? profd_error_set(&error, PROFD_NO_MEMORY, "no memory for a query")
                                                 : params_parse(request->target, &params, &error);
    if (status == PROFD_OK) {
        status = handle(&job, &params, &error);
    }
    if (status == PROFD_NO_MEMORY && job.arena != NULL && arena_hit_limit(job.arena)) {
        status = profd_error_set(&error, PROFD_LIMIT, "the answer needs more than the %llu MiB one query may compute with: narrow it "
                                                      "with since=, until= or match=",
                                 (unsigned long long)((request->scope.all ? LIMIT_QUERY_MEMORY : LIMIT_QUERY_MEMORY_OWN) >> 20));
    }
    arena_free(job.arena);
    if (status != PROFD_OK) {
        answer_problem(answer, status, error.sentence);
    }
}

void query_answer_done(struct query_answer *answer)
{
    buffer_done(&answer->body);
}
