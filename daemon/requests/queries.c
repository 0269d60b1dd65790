#include "requests/queries.h"

#include <stdlib.h>

#include "core/container.h"
#include "live/live.h"
#include "net/loop.h"
#include "requests/metrics.h"
#include "requests/requests.h"
#include "requests/tokens.h"
#include "requests/uploads.h"
#include "tier/fetch.h"

#define READERS 3 /* one user occupies two of them at most */
#define QUEUE 1024u
#define RETRY_MS 5000              /* after a status 503: a day that cannot be read from ClickHouse, for example */
#define NICE 10                    /* reports may be slow, acknowledgements may not */
#define ANSWERS_MAX (512ull << 20) /* bytes of answers that readers have not taken; then BUSY */
#define PAUSED_MOST 64u            /* queries that wait for counts (/debug/pprof/profile) */
#define PAUSED_BYTES (64u << 20)   /* of their baselines */
#define PAUSED_LOOK_MS 100u
#define PROCESSES_MAX (64u << 20) /* bytes of a list of live processes */

struct query_service {
    struct query_service_config config;
    struct store *stores[READERS];
    struct lock *cache_lock, *answers_lock;
    struct query_cache *cache;     /* of sums, for all readers */
    struct query_answers *answers; /* finished ones, for readers and the loop */
    struct work *work;
    size_t http_pending;        /* requests not answered yet */
    LIST_HEAD(, query) waiting; /* those of connections that are queued or run */
    LIST_HEAD(, query) paused;  /* those that run again later: neither queued nor run */
    size_t paused_count, paused_bytes;
    struct loop_timer *timer; /* of these */
    bool stopped;
    struct durations durations[QUERY_KINDS];
};

/* One request, until it is answered. */
struct query {
    struct work_item item;
    struct query_service *service;
    LIST_ENTRY(query) of_waiting, of_paused;
    struct buffer baseline; /* of a query that runs again, at `due` (ms of loop_now) */
    uint64_t due;
    atomic_bool cancelled; /* its client has hung up: it need not be run */
    bool skipped;          /* it was not run; set by the reader */
    conn_id conn;          /* 0: asked by HTTP */
    uint32_t tag;
    uint64_t session_job;
    struct http_exchange *exchange;
    enum query_source source;
    enum query_kind kind;
    bool made; /* the page is complete, and a reader compresses it, for which the loop has no time */
    struct page page;
    uint64_t began; /* ms of loop_now */
    char *target, *if_none_match;
    struct arena *arena; /* of the processes; NULL: none were asked for */
    struct query_request request;
    struct query_answer answer;
    struct pages_store store; /* for status and metrics */
    struct metrics_hosts hosts;
    struct buffer watch_text; /* of metrics */
    struct query_cache_use cache_use;
    enum profd_status totals_status;
    struct profd_error totals_error;
};

static void query_free(struct query *q)
{
    if (q->conn) {
        LIST_REMOVE(q, of_waiting);
    }
    arena_free(q->arena);
    metrics_hosts_done(&q->hosts);
    buffer_done(&q->watch_text);
    buffer_done(&q->baseline);
    free(q->target);
    free(q->if_none_match);
    free(q);
}

/* Returns whether the client has too many unread answers. */
static bool query_unread(const struct query_service *s, const struct query *q, struct profd_error *e)
{
    const struct conn *c = q->conn ? conn_find(s->config.shared->conns, q->conn) : NULL;

    return c && conn_judge_answers(c, e);
}

/* Sends the page to the client and frees the query. The body is taken over. */
static void query_answer(struct query_service *s, struct query *q, struct page *page)
{
    struct profd_error e;

    if (page->body.failed) {
        buffer_done(&page->body);
        page_problem(page, 503, PROFD_NO_MEMORY, "the answer exceeds memory or its limit");
    } else if (query_unread(s, q, &e)) {
        buffer_done(&page->body);
        page_problem(page, 503, PROFD_BUSY, e.sentence);
    }
    if (!q->skipped) {
        durations_add(&s->durations[q->kind], (double)(loop_now() - q->began) / 1000.0);
    }
    if (q->conn) {
        struct conn *c = conn_find(s->config.shared->conns, q->conn);

        if (c) {
            reply_send(s->config.shared, c, q->tag, page);
            sync_end_job(s->config.shared, c, q->session_job);
        } else {
            buffer_done(&page->body);
        }
    } else {
        s->http_pending--;
        reply_tell(q->exchange, page);
    }
    query_free(q);
}

static enum profd_status query_read_totals(struct query *q, struct store *store, struct profd_error *e)
{
    q->cache_use = query_cache_measure(q->service->cache); /* may block, so it is not done on the loop's thread */
    TRY(store_get_totals(store, &q->store.totals, e));
    TRY(store_get_relay(store, &q->store.relay, e));
    TRY(store_get_centre(store, &q->store.centre, e));
    TRY(metrics_hosts_format(&q->hosts, store, &q->request.scope, e));
    return q->source == QUERY_METRICS && q->request.scope.all ? metrics_watch_format(store, &q->watch_text, e)
                                                              : PROFD_OK;
}

static void query_run_all(void *context, struct work_item *const *items, size_t n)
{
    struct store *store = context;

    for (size_t i = 0; i < n; i++) {
        struct query *q = container_of(items[i], struct query, item);

        q->skipped = atomic_load(&q->cancelled);
        if (q->skipped) {
            continue;
        }
        if (q->made) {
            query_code_body(q->request.coding, q->request.coded_only, &q->page.body, &q->page.coding);
        } else if (q->source == QUERY_METRICS || q->source == QUERY_STATUS) {
            q->totals_status = query_read_totals(q, store, &q->totals_error);
        } else {
            /* A day may be removed from ClickHouse after the query has read the database. Then the query is run again:
             * the database no longer has that day. */
            for (int left = 2; left > 0; left = fetcher_lacked() ? left - 1 : 0) {
                if (left == 1) {
                    query_answer_done(&q->answer);
                }
                q->request.generation = writer_generation(q->service->config.shared->writer);
                fetcher_set_cancelled(&q->cancelled);
                query_run(store, &q->request, &q->answer);
            }
            fetcher_set_cancelled(NULL);
        }
    }
}

/* Passes a page made on the loop to a reader thread, if it is worth compressing. */
static bool query_code(struct query_service *s, struct query *q, struct page *page)
{
    const struct query_request *r = &q->request;

    page->negotiated = page->status == 200;
    if (page->status != 200 || r->coding == CODING_IDENTITY ||
        (page->body.size < LIMIT_CODING_LEAST && !r->coded_only)) {
        return false;
    }
    q->made = true;
    q->page = *page;
    return work_put(s->work, &q->item);
}

static void query_take(struct query_answer *answer, struct page *page)
{
    page->status = answer->http_status;
    page->content_type = answer->content_type;
    page->cache_control = answer->cache_control;
    page->etag = answer->etag;
    page->coding = answer->coding;
    page->negotiated = answer->negotiated;
    page->exact = answer->exact;
    page->retry_after_ms = answer->http_status == 503 ? RETRY_MS : 0;
    page->body = answer->body;
    buffer_init(&answer->body, 0); /* moved */
    query_answer_done(answer);
}

static void query_note_failure(struct query_service *s, enum profd_status status, const struct profd_error *why)
{
    if (status == PROFD_DAMAGED || status == PROFD_IO) {
        s->config.failed(s->config.context, why->sentence);
    }
}

/* Lets a query wait that has made its baseline. BUSY; then nothing has changed. */
static enum profd_status query_pause(struct query_service *s, struct query *q, struct profd_error *e)
{
    const size_t size = q->answer.body.size;

    FAIL_IF(s->stopped, e, PROFD_STOPPING, "the daemon is stopping");
    FAIL_IF(s->paused_count == PAUSED_MOST || s->paused_bytes + size > PAUSED_BYTES, e, PROFD_BUSY,
            "%zu requests with %zu bytes of counts are waiting; the limits are %u and %u: try again later",
            s->paused_count, s->paused_bytes, PAUSED_MOST, PAUSED_BYTES);
    q->baseline = q->answer.body;
    q->request.baseline = &q->baseline;
    q->due = loop_now() + q->answer.wait_ms;
    buffer_init(&q->answer.body, 0); /* moved */
    query_answer_done(&q->answer);
    LIST_INSERT_HEAD(&s->paused, q, of_paused);
    s->paused_count++;
    s->paused_bytes += size;
    loop_timer_set(s->timer, PAUSED_LOOK_MS);
    return PROFD_OK;
}

/* Runs the queries that have waited long enough, and ends those whose clients have gone. */
static void query_on_timer(void *context)
{
    struct query_service *s = context;

    for (struct query *q = LIST_FIRST(&s->paused), *next; q; q = next) {
        const bool cancelled = atomic_load(&q->cancelled) || s->stopped;
        struct page page;

        next = LIST_NEXT(q, of_paused);
        if (!cancelled && loop_now() < q->due) {
            continue;
        }
        LIST_REMOVE(q, of_paused);
        s->paused_count--;
        s->paused_bytes -= q->baseline.size;
        q->began = loop_now(); /* waiting is no work */
        if (cancelled || !work_put(s->work, &q->item)) {
            page_problem(&page, 503, cancelled ? PROFD_STOPPING : PROFD_BUSY,
                         cancelled ? "the client has gone, or the daemon is stopping" : "the queue of queries is full");
            query_answer(s, q, &page);
        }
    }
    if (!LIST_EMPTY(&s->paused)) {
        loop_timer_set(s->timer, PAUSED_LOOK_MS);
    }
}

static void query_done(void *context, struct work_item *item)
{
    struct query *q = container_of(item, struct query, item);
    struct query_service *s = context;
    struct page page = {.status = 0};
    struct profd_error failure = q->totals_error;
    const bool failed = writer_check(s->config.shared->writer, &failure);

    if (q->made) {
        page = q->page;
    } else if (q->skipped) { /* the answer has no reader */
        page_problem(&page, 503, PROFD_STOPPING, "the client has closed the connection");
    } else if (q->source == QUERY_STATUS || q->source == QUERY_METRICS) {
        query_note_failure(s, failed ? PROFD_OK : q->totals_status, &failure);
        if (q->totals_status) {
            page_problem(&page, 500, PROFD_IO, failure.sentence);
        } else if (q->source == QUERY_STATUS) {
            pages_make_status(s->config.pages, &q->store, &page);
        } else {
            pages_make_metrics(s->config.pages, q->request.scope.all ? &q->store : NULL, &q->cache_use, &q->hosts,
                               &page);
            buffer_add(&page.body, q->watch_text.data, q->watch_text.size);
        }
        if (query_code(s, q, &page)) {
            return;
        }
    } else if (q->answer.http_status == 500 && failed) { /* that is the reason, and says what to do */
        query_answer_done(&q->answer);
        page_problem(&page, 500, PROFD_IO, failure.sentence);
    } else if (!q->answer.status && q->answer.wait_ms) {
        const enum profd_status paused = query_pause(s, q, &failure);

        if (!paused) {
            return;
        }
        query_answer_done(&q->answer);
        page_problem(&page, 503, paused, failure.sentence);
    } else {
        query_note_failure(s, q->answer.status, &q->answer.why);
        query_take(&q->answer, &page);
    }
    query_answer(s, q, &page);
}

static void query_drop(void *context, struct work_item *item)
{
    struct query *q = container_of(item, struct query, item);
    struct page page;

    if (q->made) {
        buffer_done(&q->page.body);
    }
    page_problem(&page, 503, PROFD_STOPPING, "the daemon is stopping");
    query_answer(context, q, &page);
}

/* Lists the live processes that the client may see. */
static enum profd_status query_take_processes(struct query_service *s, struct query *q, struct profd_error *e)
{
    struct process_row *rows;
    enum profd_status status;

    q->arena = arena_new(PROCESSES_MAX);
    TRY(q->arena ? PROFD_OK : profd_no_memory(e));
    status = live_list(s->config.shared->live, &q->request.scope, q->request.now, q->arena, &rows,
                       &q->request.process_count, e);
    q->request.processes = status ? NULL : rows;
    return status;
}

/* Answers a request at once, or queues it for a reader thread. */
static void query_route(struct query_service *s, struct query *q)
{
    const bool totals = q->source == QUERY_STATUS || q->source == QUERY_METRICS;
    /* At a centre, readers of some tenants get the metrics of their hosts. */
    const bool may_read_totals =
        q->request.scope.all || (q->source == QUERY_METRICS && pages_tells_hosts(s->config.pages) &&
                                 store_scope_has_tenants(&q->request.scope));
    struct page page = {.status = 0};
    struct profd_error e;

    if (query_unread(s, q, &e)) {
        page_problem(&page, 503, PROFD_BUSY, e.sentence);
    } else if (pages_find(s->config.pages, q->source, &q->request, &page)) {
        /* found */
    } else if (totals && !may_read_totals) {
        page_problem(&page, 403, PROFD_FORBIDDEN, "only users who may read all profiles may read the totals");
    } else if (q->source == QUERY_NONE && strncmp(q->target, "/api/", 5) != 0) {
        page_problem(&page, 404, PROFD_NOT_FOUND, "there is no such path; see /openapi.json");
    } else if (q->source == QUERY_PROCESSES && query_take_processes(s, q, &e)) {
        page_problem(&page, 503, PROFD_NO_MEMORY, e.sentence);
    } else if (q->source == QUERY_METRICS && pages_begin_hosts(s->config.pages, q->request.now, &q->hosts, &e)) {
        page_problem(&page, 503, PROFD_NO_MEMORY, e.sentence);
    } else if (s->config.shared->reply_bytes > ANSWERS_MAX || !work_put(s->work, &q->item)) {
        page_problem(&page, 503, PROFD_BUSY, "the queue of queries is full");
    } else {
        return;
    }
    query_answer(s, q, &page);
}

/* Makes a query with copies of the request's texts. Returns NULL if out of memory. */
static struct query *query_make(struct query_service *s, const struct query_request *r)
{
    struct query *q = calloc(1, sizeof *q);

    if (!q) {
        return NULL;
    }
    q->target = strdup(r->target);
    q->if_none_match = strdup(r->if_none_match);
    if (!q->target || !q->if_none_match) {
        query_free(q);
        return NULL;
    }
    q->service = s;
    q->item.uid = r->scope.uid;
    buffer_init(&q->watch_text, METRICS_WATCH_BYTES);
    q->source = query_find_source(r->target, &q->kind);
    q->began = loop_now();
    q->request = *r;
    q->request.target = q->target;
    q->request.if_none_match = q->if_none_match;
    q->request.now = loop_clock();
    q->request.cache = s->cache;
    q->request.downtime = s->config.downtime;
    q->request.answers = s->answers;
    return q;
}

/* Sends a cached answer that is still valid. etag points into answer. */
static bool query_find(struct query_service *s, struct query_request *r, struct query_answer *answer, struct page *page)
{
    enum query_kind kind;

    r->generation = writer_generation(s->config.shared->writer);
    if (s->stopped || !query_answers_find(s->answers, r, answer)) {
        return false;
    }
    *page = (struct page){.status = 0};
    query_take(answer, page);
    query_find_source(r->target, &kind);
    durations_add(&s->durations[kind], 0);
    return true;
}

static enum profd_status query_check(const struct message_query *m, struct profd_error *e)
{
    const size_t n = strlen(m->target), tag = strlen(m->if_none_match);

    FAIL_IF(n > LIMIT_QUERY_BYTES || tag > LIMIT_QUERY_BYTES, e, PROFD_TOO_LARGE, "a query of %zu bytes, at most %u",
            n > tag ? n : tag, LIMIT_QUERY_BYTES);
    FAIL_IF(*m->target != '/', e, PROFD_BAD_QUERY, "the target of a query begins with \"/\", this is \"%.100s\"",
            m->target);
    for (const char *p = m->target; *p; p++) {
        FAIL_IF(*p <= ' ' || *p > '~' || *p == '#', e, PROFD_BAD_QUERY,
                "byte %zu of the target is not allowed there: percent-encode it", (size_t)(p - m->target) + 1);
    }
    return PROFD_OK;
}

enum profd_status query_receive(void *context, struct conn *c, struct conn_frame *f, struct profd_error *e)
{
    const struct peer *peer = conn_get_peer(c);
    struct query_service *s = context;
    struct query *q = NULL;
    struct query_request request = {.scope = {.uid = peer->uid, .all = peer->may_read_all}};
    struct query_answer answer;
    struct page page;
    struct message m;
    TRY(body_decode(f, &m, e));
    enum profd_status status = query_check(&m.as.query, e);
    request.target = m.as.query.target;
    if (strncmp(request.target, QUERY_OUTGOING "?", strlen(QUERY_OUTGOING "?")) == 0) {
        request.scope = (struct store_scope){.uid = peer->uid, .all = true};
        status =
            status ? status
            : peer->may_relay
                ? PROFD_OK
                : profd_error_set(e, PROFD_FORBIDDEN,
                                  "user %u may not fetch uploads; only root, the daemon's user and profd-relay may",
                                  peer->uid);
    }
    request.if_none_match = m.as.query.if_none_match;
    if (!status && !conn_judge_answers(c, NULL) && query_find(s, &request, &answer, &page)) {
        reply_send(s->config.shared, c, f->header.tag, &page);
        message_done(&m);
        return PROFD_OK;
    }
    if (!status) {
        q = query_make(s, &request);
        if (!q) {
            status = profd_no_memory(e);
        }
    }
    message_done(&m);
    if (status) {
        return status;
    }
    q->conn = conn_get_id(c);
    LIST_INSERT_HEAD(&s->waiting, q, of_waiting);
    q->tag = f->header.tag;
    q->session_job = session_begin(conn_get_user(c));
    query_route(s, q);
    return PROFD_OK;
}

/* Finds the route of a path that query_find_methods has with POST. NULL: there is none. */
static const struct post_route *post_find(const struct query_service *s, const char *path, size_t n)
{
    for (size_t i = 0; i < s->config.post_count; i++) {
        const struct post_route *r = &s->config.posts[i];
        const size_t size = strlen(r->path);

        if (n >= size && !memcmp(path, r->path, size) && (n == size || path[size - 1] == '/')) {
            return r;
        }
    }
    return NULL;
}

/* Judges a question that is asked by POST. */
static int judge_question(const struct query_service *s, const struct http_body_head *head, struct profd_error *e)
{
    static const char *const types[] = {"application/json", "application/proto"};
    const struct store_token *t = tokens_find(s->config.shared->tokens, head->token);
    bool known = false;

    if (t && !(t->rights & STORE_MAY_READ)) {
        profd_error_set(e, PROFD_FORBIDDEN, "token %s does not have the right read", t->name);
        return 403;
    }
    for (size_t i = 0; i < sizeof types / sizeof *types; i++) {
        const size_t n = strlen(types[i]);

        known |= head->type_size >= n && memcmp(head->type, types[i], n) == 0 &&
                 (head->type_size == n || head->type[n] == ';');
    }
    if (!known) {
        profd_error_set(e, PROFD_REFUSED, "this path takes application/proto and application/json, not '%.*s'",
                        (int)(head->type_size < 100 ? head->type_size : 100), head->type);
        return 415;
    }
    if (head->size > LIMIT_QUERY_BODY) {
        profd_error_set(e, PROFD_TOO_LARGE, "the body has %llu bytes, at most %u are taken",
                        (unsigned long long)head->size, LIMIT_QUERY_BODY);
        return 413;
    }
    return 0;
}

int query_judge_body(void *context, const struct http_body_head *head, struct profd_error *e)
{
    const struct query_service *s = context;
    const struct post_route *r = head->post ? post_find(s, head->path, head->n) : NULL;

    if (head->post && query_reads_body(head->path, head->n)) {
        return judge_question(s, head, e);
    }
    if (r) {
        return r->judge(r->context, head, e);
    }
    if (head->post) {
        profd_error_set(e, PROFD_NOT_FOUND, "not found: %.*s; see /openapi.json", (int)head->n, head->path);
        return 404;
    }
    return symbols_judge(s->config.symbols, head, e);
}

void query_receive_http(void *context, struct http_exchange *x, const struct http_request *request)
{
    struct query_service *s = context;
    /* Without a token, the administrator has opened TCP to all users. */
    struct query_request r = {.target = request->target,
                              .if_none_match = request->if_none_match,
                              .http = true,
                              .coding = request->coding,
                              .coded_only = request->coded_only};
    char named[LIMIT_QUERY_BYTES];
    struct query_answer found;
    struct page page;

    if (request->body >= 0) {
        symbols_receive(s->config.symbols, x, request);
        return;
    }
    if (request->bytes && query_reads_body(request->target, strcspn(request->target, "?"))) {
        r.body = request->bytes;
        r.body_size = request->size;
        r.content_type = request->content_type;
        query_name_body(request->target, request->content_type, request->bytes, request->size, named);
        r.target = named;
    } else if (request->bytes) {
        const struct post_route *route = post_find(s, request->target, strcspn(request->target, "?"));

        route->receive(route->context, x, request); /* query_judge_body has found it */
        return;
    }
    r.scope = (struct store_scope){.all = request->tcp || request->peer.may_read_all,
                                   .uid = request->tcp ? UINT32_MAX : request->peer.uid};
    if (request->token) { /* it was found just now */
        const struct store_token *t = tokens_find(s->config.shared->tokens, request->token);

        r.scope = (struct store_scope){.all = t->all, .uid = t->uid};
    }
    if (request->bytes && r.body_size > LIMIT_QUERY_BODY) {
        page_problem(&page, 413, PROFD_TOO_LARGE, "the decoded body is larger than 1 MiB");
        reply_tell(x, &page);
        return;
    }
    if (query_find(s, &r, &found, &page)) {
        reply_tell(x, &page);
        return;
    }
    struct query *q = query_make(s, &r);
    if (!q) {
        page_problem(&page, 503, PROFD_NO_MEMORY, "no memory for a query");
        reply_tell(x, &page);
        return;
    }
    s->http_pending++;
    q->exchange = x;
    http_tell_gone(x, &q->cancelled);
    query_route(s, q);
}

enum profd_status query_service_start(const struct query_service_config *config, struct query_service **out,
                                      struct profd_error *e)
{
    struct query_service *s = calloc(1, sizeof *s);
    void *contexts[READERS];
    const struct work_config work = {
        .name = "profd-reader",
        .threads = READERS,
        .contexts = contexts,
        .queue_max = QUEUE,
        .queue_max_uid = QUEUE / 2,
        .batch_max = 1,
        .threads_max_uid = READERS - 1,
        .nice = NICE,
        .run = query_run_all,
        .done = query_done,
        .done_context = s,
    };
    enum profd_status status = PROFD_OK;

    TRY(s ? PROFD_OK : profd_no_memory(e));
    s->config = *config;
    s->timer = loop_timer_new(config->shared->loop, query_on_timer, s);
    s->cache_lock = lock_new();
    s->answers_lock = lock_new();
    const struct query_lock cache = {lock_take, lock_give, s->cache_lock};
    const struct query_lock answers = {lock_take, lock_give, s->answers_lock};

    s->cache = s->cache_lock ? query_cache_new(LIMIT_ROLLUP_CACHE, &cache) : NULL;
    s->answers = s->answers_lock ? query_answers_new(LIMIT_ANSWER_CACHE, &answers) : NULL;
    if (!s->cache || !s->answers || !s->timer) {
        status = profd_no_memory(e);
    }
    for (unsigned i = 0; i < READERS && !status; i++) {
        status = store_sqlite_open_reader(config->shared->database, &s->stores[i], e);
        if (!status) {
            store_set_run(s->stores[i], config->run);
            store_set_salt(s->stores[i], config->salt);
            store_set_archive(s->stores[i], config->archive);
        }
        contexts[i] = s->stores[i];
    }
    status = status ? status : work_new(config->shared->loop, &work, &s->work, e);
    if (status) {
        query_service_free(s);
        return status;
    }
    *out = s;
    return PROFD_OK;
}

void query_service_stop(struct query_service *s)
{
    s->stopped = true;
    query_on_timer(s); /* none waits any longer */
}

void query_service_cancel(struct query_service *s, conn_id conn)
{
    struct query *q;

    LIST_FOREACH(q, &s->waiting, of_waiting)
    {
        if (q->conn == conn) {
            atomic_store(&q->cancelled, true);
        }
    }
}

size_t query_service_pending(const struct query_service *s)
{
    return work_pending(s->work);
}

size_t query_service_pending_http(const struct query_service *s)
{
    return s->http_pending;
}

void query_service_drop_waiting(struct query_service *s)
{
    work_drop(s->work, query_drop, s);
}

void query_service_join(struct query_service *s)
{
    work_free(s->work);
    s->work = NULL;
}

void query_service_free(struct query_service *s)
{
    if (!s) {
        return;
    }
    work_free(s->work);
    loop_timer_free(s->timer);
    for (unsigned i = 0; i < READERS; i++) {
        store_close(s->stores[i]);
    }
    query_cache_free(s->cache);
    lock_free(s->cache_lock);
    query_answers_free(s->answers);
    lock_free(s->answers_lock);
    free(s);
}

const struct durations *query_service_get_durations(const struct query_service *s)
{
    return s->durations;
}

struct query_answers_use query_service_measure_answers(const struct query_service *s)
{
    return query_answers_measure(s->answers);
}

struct query_cache *query_service_get_cache(const struct query_service *s)
{
    return s->cache;
}
