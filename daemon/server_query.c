/* Questions, from whichever door, to a reading thread and back. */
#include <stdlib.h>
#include <string.h>

#include "log.h"
#include "server_attach.h"
#include "server_parts.h"

static void server_query_free(struct server_query *q)
{
    free(q->target);
    free(q->if_none_match);
    free(q);
}

/* True if who asks has left too much unread to be given more. */
static bool server_query_unread(struct server *s, const struct server_query *q, struct profd_error *e)
{
    const struct conn *c = q->conn ? conn_find(s->conns, q->conn) : NULL;

    return c && conn_judge_answers(c, e);
}

static void server_query_tell(struct http_exchange *x, struct server_page *page)
{
    struct http_answer answer = {.status = page->status, .content_type = page->content_type};

    answer.cache_control = page->cache_control;
    answer.etag = page->etag ? page->etag : "";
    answer.csp = page->csp;
    answer.coding = page->coding;
    answer.negotiated = page->negotiated;
    answer.retry_after_ms = page->retry_after_ms;
    answer.body = &page->body;
    http_answer(x, &answer);
    buffer_done(&page->body);
}

/* Gives the page to who asked, and frees the question. The body is taken over. */
static void server_query_answer(struct server *s, struct server_query *q, struct server_page *page)
{
    struct profd_error e;

    if (page->body.failed) {
        buffer_done(&page->body);
        server_page_problem(page, 503, PROFD_NO_MEMORY, "the answer does not fit into memory or its limit");
    } else if (server_query_unread(s, q, &e)) {
        buffer_done(&page->body);
        server_page_problem(page, 503, PROFD_BUSY, e.sentence);
    }
    metrics_add_seconds(&s->metrics.query_seconds[metrics_find_endpoint(q->target)],
                        (double)(loop_now() - q->began) / 1000.0);
    if (q->conn) {
        struct conn *c = conn_find(s->conns, q->conn);

        if (c) {
            server_reply(s, c, q->tag, page);
            server_end_job(c, q->job);
        } else {
            buffer_done(&page->body);
        }
    } else {
        s->http_pending--;
        server_query_tell(q->exchange, page);
    }
    server_query_free(q);
}

void server_query_run(void *context, struct work_item *const *items, size_t n)
{
    struct store *store = context;

    for (size_t i = 0; i < n; i++) {
        struct server_query *q = (struct server_query *)(void *)items[i];

        if (q->made) {
            query_code_body(q->request.coding, q->request.coded_only, &q->page.body, &q->page.coding);
        } else if (q->metrics || q->summary) {
            q->totals_status = store_get_totals(store, &q->totals, NULL);
            q->cache_use =
                query_cache_measure(q->server->cache); /* may wait for a reader, so not on the loop's thread */
        } else {
            q->request.generation = atomic_load(&q->server->generation);
            query_run(store, &q->request, &q->answer);
        }
    }
}

/* Sends a page made here back to a reading thread, if it is worth coding. */
static bool server_query_code(struct server *s, struct server_query *q, struct server_page *page)
{
    const struct query_request *r = &q->request;

    page->negotiated = page->status == 200;
    if (page->status != 200 || r->coding == CODING_IDENTITY || (page->body.size < LIMIT_CODING_LEAST && !r->coded_only))
        return false;
    q->made = true;
    q->page = *page;
    return work_put(s->readers, &q->item);
}

static void server_query_take(struct query_answer *answer, struct server_page *page)
{
    page->status = answer->http_status;
    page->content_type = answer->content_type;
    page->cache_control = answer->cache_control;
    page->etag = answer->etag;
    page->coding = answer->coding;
    page->negotiated = answer->negotiated;
    page->body = answer->body;
    buffer_init(&answer->body, 0); /* moved */
    query_answer_done(answer);
}

void server_query_done(void *context, struct work_item *item)
{
    struct server_query *q = (struct server_query *)(void *)item;
    struct server *s = context;
    struct server_page page = {.status = 0};

    if (q->made) {
        page = q->page;
        server_query_answer(s, q, &page);
        return;
    }
    if (q->metrics || q->summary) {
        if (q->totals_status)
            server_page_problem(&page, 500, PROFD_IO, "the store could not be read");
        else if (q->summary)
            server_page_status(s, &q->totals, &page);
        else
            server_page_metrics(s, &q->totals, &q->cache_use, &page);
        if (!server_query_code(s, q, &page))
            server_query_answer(s, q, &page);
        return;
    }
    server_query_take(&q->answer, &page);
    server_query_answer(s, q, &page);
}

void server_query_drop(void *context, struct work_item *item)
{
    struct server_query *q = (struct server_query *)(void *)item;
    struct server_page page;

    if (q->made)
        buffer_done(&q->page.body);
    server_page_problem(&page, 503, PROFD_STOPPING, "the daemon is stopping");
    server_query_answer(context, q, &page);
}

/* Is it this path, whatever its parameters? */
static bool server_query_is(const char *target, const char *path)
{
    const size_t n = strlen(path);

    return !strncmp(target, path, n) && (!target[n] || target[n] == '?');
}

/* Which way a question goes: a page at once, or a reading thread. */
static void server_query_route(struct server *s, struct server_query *q)
{
    struct server_page page = {.status = 0};
    struct profd_error e;

    q->metrics = server_query_is(q->target, "/metrics");
    q->summary = server_query_is(q->target, "/api/v1/status");
    if (server_query_unread(s, q, &e)) {
        server_page_problem(&page, 503, PROFD_BUSY, e.sentence);
    } else if (server_page_find(s, &q->request, &page) || server_attach_list(s, &q->request, &page)) {
        /* found */
    } else if ((q->metrics || q->summary) && !q->request.scope.all) {
        server_page_problem(&page, 403, PROFD_FORBIDDEN, "totals are for those who may read everybody's profiles");
    } else if (!q->metrics && !q->summary && !query_owns(q->target)) {
        server_page_problem(&page, 404, PROFD_NOT_FOUND, "there is no such path; see /openapi.json");
    } else if (s->answer_bytes > SERVER_ANSWERS_MAX || !work_put(s->readers, &q->item)) {
        server_page_problem(&page, 503, PROFD_BUSY, "too many questions wait for their answers");
    } else {
        return;
    }
    server_query_answer(s, q, &page);
}

/* A question with copies of its texts; NULL when out of memory. */
static struct server_query *server_query_new(struct server *s, const char *target, const char *if_none_match)
{
    struct server_query *q = calloc(1, sizeof *q);

    if (!q)
        return NULL;
    q->target = strdup(target);
    q->if_none_match = strdup(if_none_match);
    if (!q->target || !q->if_none_match) {
        server_query_free(q);
        return NULL;
    }
    q->server = s;
    q->began = loop_now();
    q->request.target = q->target;
    q->request.if_none_match = q->if_none_match;
    q->request.now = server_clock();
    q->request.cache = s->cache;
    q->request.answers = s->answers;
    return q;
}

/* An answer that is known to be true still, at once. etag points into answer. */
static bool server_query_find(struct server *s, struct query_request *r, struct query_answer *answer,
                              struct server_page *page)
{
    r->generation = atomic_load(&s->generation);
    if (s->stopping || !query_answers_find(s->answers, r, answer))
        return false;
    *page = (struct server_page){.status = 0};
    server_query_take(answer, page);
    metrics_add_seconds(&s->metrics.query_seconds[metrics_find_endpoint(r->target)], 0);
    return true;
}

static enum profd_status server_query_judge(const struct message_query *m, struct profd_error *e)
{
    const size_t n = strlen(m->target), tag = strlen(m->if_none_match);

    if (n > LIMIT_QUERY_BYTES || tag > LIMIT_QUERY_BYTES)
        return profd_error_set(e, PROFD_TOO_LARGE, "a query of %zu bytes, at most %u", n > tag ? n : tag,
                               LIMIT_QUERY_BYTES);
    if (*m->target != '/')
        return profd_error_set(e, PROFD_BAD_QUERY, "the target of a query begins with \"/\", this is \"%.100s\"",
                               m->target);
    for (const char *p = m->target; *p; p++)
        if (*p <= ' ' || *p > '~' || *p == '#')
            return profd_error_set(e, PROFD_BAD_QUERY, "byte %zu of the target is not allowed there: percent-encode it",
                                   (size_t)(p - m->target) + 1);
    return PROFD_OK;
}

enum profd_status server_take_query(void *context, struct conn *c, struct conn_frame *f, struct profd_error *e)
{
    const struct peer *peer = conn_get_peer(c);
    struct server *s = context;
    struct server_query *q = NULL;
    struct query_request request = {.scope = {.uid = peer->uid, .all = peer->may_read_all}};
    struct query_answer answer;
    struct server_page page;
    struct message m;
    enum profd_status status = server_decode(f, &m, e);

    if (status)
        return status;
    status = server_query_judge(&m.as.query, e);
    request.target = m.as.query.target;
    request.if_none_match = m.as.query.if_none_match;
    if (!status && !conn_judge_answers(c, NULL) && server_query_find(s, &request, &answer, &page)) {
        server_reply(s, c, f->header.tag, &page);
        message_done(&m);
        return PROFD_OK;
    }
    if (!status) {
        q = server_query_new(s, m.as.query.target, m.as.query.if_none_match);
        if (!q)
            status = profd_error_set(e, PROFD_NO_MEMORY, "no memory for a query");
    }
    message_done(&m);
    if (status)
        return status;
    q->item.uid = q->request.scope.uid = peer->uid;
    q->request.scope.all = peer->may_read_all;
    q->conn = conn_get_id(c);
    q->tag = f->header.tag;
    q->job = session_begin(conn_get_user(c));
    server_query_route(s, q);
    return PROFD_OK;
}

void server_http_request(void *context, struct http_exchange *x, const struct http_request *request)
{
    struct server *s = context;
    /* Whoever passed the TCP door's token, or the operator's word that it is open, may read all. */
    struct query_request r = {.target = request->target,
                              .if_none_match = request->if_none_match,
                              .http = true,
                              .coding = request->coding,
                              .coded_only = request->coded_only};
    struct query_answer found;
    struct server_page page;
    struct server_query *q;

    r.scope = (struct store_scope){.all = request->tcp || request->peer.may_read_all,
                                   .uid = request->tcp ? UINT32_MAX : request->peer.uid};
    if (server_query_find(s, &r, &found, &page)) {
        server_query_tell(x, &page);
        return;
    }
    q = server_query_new(s, request->target, request->if_none_match);
    s->http_pending++;
    if (!q) {
        struct buffer empty;
        struct http_answer answer = {
            .status = 503, .content_type = "text/plain", .cache_control = "no-store", .etag = ""};

        buffer_init(&empty, 0);
        answer.retry_after_ms = 1000;
        answer.body = &empty;
        s->http_pending--;
        http_answer(x, &answer);
        return;
    }
    q->request.scope = r.scope;
    q->item.uid = r.scope.uid;
    q->request.http = true;
    q->request.coding = r.coding;
    q->request.coded_only = r.coded_only;
    q->exchange = x;
    server_query_route(s, q);
}
