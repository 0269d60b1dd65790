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

static void answer_problem(struct query_answer *answer, enum profd_status status, const char *sentence)
{
    answer->status = status;
    profd_error_set(&answer->why, status, "%s", sentence);
    answer->http_status = profd_status_http(status);
    answer->content_type = "application/problem+json";
    answer->cache_control = "no-store";
    answer->etag[0] = '\0';
    buffer_done(&answer->body);
    buffer_init(&answer->body, LIMIT_REPORT_BYTES);
    render_problem(status, answer->http_status, sentence, &answer->body);
}

#define PARTIAL "partial" /* parameter of all reports */

/* Does the question mean something else a moment later? */
static bool is_of_now(const struct params *p)
{
    bool of_now = false;
    for (size_t i = 0; i < p->count; i++) {
        const struct param *item = &p->items[i];
        const char *name = item->name[0] != '\0' && item->name[1] == '.' ? item->name + 2 : item->name; /* a.since */
        of_now |= (strcmp(name, "since") == 0 || strcmp(name, "until") == 0) && when_is_relative(item->value);
    }
    return of_now;
}

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
        answers_put(job->answers, r, job->tag, job_get_date(job), answer);
    }
}

static bool takes_partial(const struct route *route)
{
    return route->report || route->handler == builds_list;
}

/* Asks whether servers are missing; once they were, every later answer to that is yes, until the next request. */
static enum profd_status find_missing(struct job *job, bool *missing, struct profd_error *e)
{
    static const struct store_scope all = {.all = true};
    static const struct store_filter none = {.build_id = NULL};
    uint32_t reasons = 0;
    const enum profd_status status = store_get_marks(job->store, &all, &none, &reasons, e);
    *missing = (reasons & (uint32_t)INEXACT_SHARDS_MISSING) != 0;
    return status;
}

/* A format that has no place for the reason, or a list without rows, must not look like the answer of all servers. */
static enum profd_status check_said(const struct job *job, const struct route *route, struct profd_error *e)
{
    const char *name = message_inexact_name(INEXACT_SHARDS_MISSING);
    const struct buffer *body = &job->answer->body;
    if (route->handler == verdicts_list || /* every server has all of them */
        (body->size > 0 && memmem(body->data, body->size, name, strlen(name)) != NULL)) {
        return PROFD_OK;
    }
    return profd_error_set(e, PROFD_BUSY,
                           "store: servers of ClickHouse cannot be asked, and this answer has no place to say so; "
                           "format=json and format=text of a report have");
}

/* Of what the servers have that can be asked. What is cached was made of all. */
static enum profd_status handle_partial(struct job *job, const struct route *route, struct profd_error *e)
{
    const struct query_request *whole = job->request;
    struct query_request request = *whole;
    request.cache = NULL;
    job->request = &request;
    job->answers = NULL;
    bool missing = false;
    store_set_partial(job->store, true);
    enum profd_status status = find_missing(job, &missing, e); /* a server may be back when the answer is made */
    if (status == PROFD_OK) {
        status = route->handler(job, e);
    }
    if (status == PROFD_OK && route->report) {
        status = find_missing(job, &missing, e);
    }
    store_set_partial(job->store, false);
    if (status == PROFD_OK && route->report && missing) {
        status = check_said(job, route, e);
    }
    job->request = whole;
    struct buffer *body = &job->answer->body;
    if (status == PROFD_OK && !route->report && body->size > 0) { /* it has no reasons */
        while (body->data[--body->size] != '}') {
        }
        buffer_add_text(body, ",\"partial\":true}\n");
    }
    return status;
}

/* Looks for the answer by one question to a store that others write to, too: has anything changed since it was made? */
static bool find_dated(struct job *job)
{
    const struct query_request *r = job->request;
    job->dated = r->shared && !job->partial && job->answers != NULL &&
                 store_epoch_all(job->store, &r->scope, &job->epoch, NULL) == PROFD_OK;
    job->kept = job->dated && answers_find_dated(job->answers, r, &job->epoch, job->answer);
    return job->kept;
}

static enum profd_status handle(struct job *job, const struct params *params, struct profd_error *e)
{
    const struct route *route;
    enum profd_status status = route_find(params, &route, e);
    if (!is_of_now(params)) {
        job->answers = job->request->answers;
    }
    if (status == PROFD_OK) {
        status = params_check(params, route->allowed, takes_partial(route) ? PARTIAL : NULL, e);
    }
    if (status == PROFD_OK) {
        status = params_parse_flag(params, PARTIAL, &job->partial, e);
    }
    if (status != PROFD_OK) {
        return status;
    }
    if (find_dated(job)) {
        return PROFD_OK;
    }
    job->answer->cache_control = route->report && !job->partial ? "private, no-cache" : "no-store";
    status = job->partial ? handle_partial(job, route, e) : route->handler(job, e);
    if (status == PROFD_OK && job->answer->body.failed) {
        return profd_error_set(e, PROFD_LIMIT,
                               "the answer is larger than %u bytes, or than memory; use limit=", LIMIT_REPORT_BYTES);
    }
    return status;
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
        status = handle(&job, &params, &error);
    }
    if (status == PROFD_NO_MEMORY && job.arena != NULL && arena_hit_limit(job.arena)) {
        status = profd_error_set(
            &error, PROFD_LIMIT,
            "the query exceeds the memory limit of %llu MiB; narrow it with since=, until= or match=",
            (unsigned long long)((request->scope.all ? LIMIT_QUERY_MEMORY : LIMIT_QUERY_MEMORY_OWN) >> 20));
    }
    arena_free(job.arena);
    if (status != PROFD_OK) {
        answer_problem(answer, status, error.sentence);
    } else {
        finish(&job);
    }
}

void query_answer_done(struct query_answer *answer)
{
    buffer_done(&answer->body);
}
