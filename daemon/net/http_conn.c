#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "net/closer.h"
#include "net/loop.h"
#include "net/net_internal.h"

#define HTTP_LINGER_MS 1000
#define HTTP_LINGER_BODY_MS 10000 /* a client that sends a body reads the answer afterwards */
#define HTTP_LINGER_BYTES (256u << 10)
#define HTTP_LOOK_MS 500             /* for clients that have gone while their answer is made */
#define HTTP_WRITE_PIECE (256 << 10) /* at once, so that a large report does not hold up the loop */

static void conn_arm(struct http_conn *c, int64_t end)
{
    int64_t left = end - (int64_t)loop_now();
    left = left < 0 ? 0 : left;
    struct timeval wait = {.tv_sec = left / 1000, .tv_usec = (left % 1000) * 1000};
    event_add(c->timer, &wait);
}

static void exchange_leave(struct http_conn *c)
{
    if (c->exchange) {
        c->exchange->conn = NULL;
        if (c->exchange->gone) {
            atomic_store(c->exchange->gone, true);
        }
    }
    c->exchange = NULL;
}

void http_conn_close(struct http_conn *c)
{
    if (c->server->current == c) {
        c->server->current = NULL;
    }
    TAILQ_REMOVE(&c->server->conns, c, next);
    c->server->counts.connections--;
    exchange_leave(c);
    event_free(c->readable);
    event_free(c->writable);
    event_free(c->timer);
    evbuffer_free(c->output);
    free(c->input);
    http_body_free(c->body);
    closer_close_connection(c->server->config.closer, c->peer.uid, c->fd);
    free(c);
}

/* Reads what has arrived. Returns 0 if nothing has, or if the client has closed the connection, which is freed then. */
static size_t bytes_read(struct http_conn *c, void *to, size_t size)
{
    const ssize_t n = closer_receive(c->server->config.closer, c->peer.uid, c->fd, to, size);
    if (n == 0 || (n < 0 && errno != EAGAIN && errno != EINTR)) {
        http_conn_close(c);
    }
    return n > 0 ? (size_t)n : 0;
}

/* Returns the most bytes that a client may still send after its last answer. */
static size_t conn_count_late(const struct http_conn *c)
{
    switch (c->parser.head.method) {
    case HTTP_METHOD_PUT:
        return LIMIT_HTTP_PUT;
    case HTTP_METHOD_POST:
        return LIMIT_HTTP_POST;
    default:
        return HTTP_LINGER_BYTES;
    }
}

/* Writes what the socket takes, and then prepares for the next request. May free the connection. */
static void conn_flush(struct http_conn *c)
{
    int n = evbuffer_write_atmost(c->output, c->fd, HTTP_WRITE_PIECE);
    if (n < 0 && errno != EAGAIN && errno != EINTR) {
        http_conn_close(c);
        return;
    }
    c->server->counts.bytes += n > 0 ? (uint64_t)n : 0;
    if (evbuffer_get_length(c->output) > 0) {
        event_del(c->readable); /* only now: most answers go at once, and the next request is waited for as before */
        event_add(c->writable, NULL);
    } else if (c->last) {
        c->state = HTTP_LINGERING;
        c->lingered = 0;
        shutdown(c->fd, SHUT_WR);
        event_del(c->writable);
        event_add(c->readable, NULL);
        conn_arm(c,
                 (int64_t)loop_now() + (conn_count_late(c) > HTTP_LINGER_BYTES ? HTTP_LINGER_BODY_MS : HTTP_LINGER_MS));
    } else {
        const size_t behind = c->input_size - c->parser.at; /* a body, or bytes of the next request that came with it */
        if (behind > 0) {
            memmove(c->input, c->input + c->parser.at, behind);
        } else {
            free(c->input);
            c->input = NULL;
        }
        c->input_size = behind;
        c->parser = (struct http_parser){0};
        c->state = behind > 0 ? HTTP_READING : HTTP_IDLE;
        c->from_origin = false;
        TAILQ_REMOVE(&c->server->conns, c, next);
        TAILQ_INSERT_TAIL(&c->server->conns, c, next);
        event_del(c->writable);
        event_add(c->readable, NULL);
        if (behind > 0) {
            conn_arm(c, (int64_t)loop_now() + c->server->config.header_ms);
            event_active(c->readable, EV_READ, 0);
        } else {
            conn_arm(c, c->born + c->server->config.life_ms);
        }
    }
}

/* Begins to write the answer in c->output. */
static void conn_start_writing(struct http_conn *c, int status)
{
    const struct http_server_config *config = &c->server->config;
    int64_t now = (int64_t)loop_now();
    c->state = HTTP_WRITING;
    c->unwritten = evbuffer_get_length(c->output);
    c->write_end = now + config->write_ms + (int64_t)(c->unwritten / (LIMIT_FRAME_RATE / 1000));
    conn_arm(c, now + config->write_ms);
    if (status >= 100 && status < 600) {
        c->server->counts.answered[status / 100]++;
    }
    conn_flush(c);
}

static struct http_manner conn_make_manner(const struct http_conn *c)
{
    return (struct http_manner){.head_only = c->parser.head.method == HTTP_METHOD_HEAD,
                                .last = c->last,
                                .origin = c->server->config.origin,
                                .from_origin = c->from_origin,
                                .timed = c->parser.head.connect_timeout.at != 0,
                                .write_problem = c->server->config.write_problem,
                                .preflight = c->parser.head.method == HTTP_METHOD_OPTIONS};
}

void http_conn_answer(struct http_conn *c, const struct http_answer *answer, bool head_only)
{
    c->last = c->last || c->server->stopping || ++c->requests >= c->server->config.requests_max ||
              (int64_t)loop_now() - c->born >= c->server->config.life_ms;
    struct http_manner manner = conn_make_manner(c);
    manner.head_only = head_only;
    if (!http_write_answer(c->output, answer, &manner)) {
        http_conn_close(c);
    } else {
        conn_start_writing(c, answer->status);
    }
}

/* After a refusal, bytes from this client are discarded. */
static void conn_refuse(struct http_conn *c, const struct http_refusal *refusal)
{
    c->last = true;
    if (!http_write_refusal(c->output, refusal, conn_make_manner(c))) {
        http_conn_close(c);
    } else {
        conn_start_writing(c, refusal->status);
    }
}

static char *conn_copy(struct http_conn *c, struct http_span s, char *to)
{
    memcpy(to, c->input + s.at, s.size);
    to[s.size] = '\0';
    return to + s.size + 1;
}

void http_tell_gone(struct http_exchange *x, atomic_bool *gone)
{
    x->gone = gone;
}

/* Waits for the answer until c->handle_end. If the handler wants to know whether the client has gone (http_tell_gone),
 * looks for it every HTTP_LOOK_MS. */
static void conn_judge_client(struct http_conn *c)
{
    struct pollfd p = {.fd = c->fd, .events = c->server->config.tcp ? POLLRDHUP : 0};
    const int64_t look = (int64_t)loop_now() + HTTP_LOOK_MS;

    if (c->exchange->gone && poll(&p, 1, 0) > 0) {
        atomic_store(c->exchange->gone, true);
    }
    conn_arm(c, c->exchange->gone && look < c->handle_end ? look : c->handle_end);
}

/* Calls the handler of a request that passed every check. The handler may answer at once, which may free the
 * connection. */
static void conn_handle(struct http_conn *c)
{
    const struct http_head *h = &c->parser.head;
    struct http_exchange *x = calloc(1, sizeof *x + h->target.size + h->if_none_match.size + h->content_type.size + 3u);
    if (!x) {
        http_conn_close(c);
        return;
    }
    char *etag = conn_copy(c, h->target, x->text);
    char *type = conn_copy(c, h->if_none_match, etag);
    conn_copy(c, h->content_type, type);
    x->conn = c;
    x->body = c->body;
    x->request = (struct http_request){.target = x->text,
                                       .if_none_match = etag,
                                       .head = h->method == HTTP_METHOD_HEAD,
                                       .peer = c->peer,
                                       .token = c->token,
                                       .body = -1,
                                       .content_type = type,
                                       .tcp = c->server->config.tcp};
    if (x->body) {
        x->request.body = x->body->file;
        x->request.bytes = x->body->bytes;
        x->request.size = x->body->size;
        x->body->file = -1; /* the handler's */
    }
    x->request.coding = coding_choose(&h->codings);
    x->request.coded_only = coding_refuses_identity(&h->codings);
    struct http_server *server = c->server;
    c->body = NULL;
    c->exchange = x;
    c->state = HTTP_HANDLING;
    server->current = c;
    server->handler(server->context, x, &x->request);
    if (server->current == c && c->state == HTTP_HANDLING) { /* the answer comes later */
        event_del(c->readable);
        const bool timed = h->connect_timeout.at != 0 && h->timeout < server->config.handle_ms;
        c->handle_end = (int64_t)loop_now() + (timed ? (int64_t)h->timeout : server->config.handle_ms);
        conn_judge_client(c);
    }
    server->current = NULL;
}

/* Ends the request with an error. A later answer of the handler is dropped. */
static void conn_give_up(struct http_conn *c, enum profd_status why, int status, const char *sentence)
{
    struct http_refusal refusal = {.status = status};
    profd_error_set(&refusal.error, why, "%s", sentence);
    http_body_free(c->body);
    c->body = NULL;
    exchange_leave(c);
    conn_refuse(c, &refusal);
}

/* Takes bytes of the body: those behind the head in c->input, otherwise new ones. May free the connection. */
static void conn_receive(struct http_conn *c)
{
    char *there = c->input + c->parser.at;
    size_t n = c->input_size - c->parser.at, took = 0;
    struct profd_error e;
    if (n == 0 && c->body->part != HTTP_BODY_WHOLE) {
        n = bytes_read(c, there, http_body_wants(c->body, HTTP_INPUT_MAX - c->parser.at));
        if (n == 0) {
            return;
        }
    }
    const enum profd_status status = http_body_take(c->body, there, n, &took, &e);
    memmove(there, there + took, n - took);
    c->input_size = c->parser.at + n - took;
    if (status) {
        conn_give_up(c, status, profd_status_http(status), e.sentence);
    } else if (c->body->part == HTTP_BODY_WHOLE) {
        conn_handle(c);
    }
}

/* Returns when the body must be complete. Received bytes give it more time. */
static int64_t conn_find_body_end(const struct http_conn *c)
{
    return c->body_begin + c->server->config.write_ms + (int64_t)(c->body->got / (LIMIT_FRAME_RATE / 1000));
}

/* Begins the body of a PUT or POST that was admitted. */
static void conn_take_body(struct http_conn *c)
{
    static const char go_on[] = "HTTP/1.1 100 Continue\r\n\r\n";
    const struct http_head *h = &c->parser.head;
    struct profd_error e;
    const enum profd_status status = http_body_new(h, c->token ? c->token : UINT64_MAX - c->peer.uid, &c->body, &e);
    if (status) {
        conn_give_up(c, status, profd_status_http(status), e.sentence);
        return;
    }
    c->last = c->last || h->method == HTTP_METHOD_PUT; /* what follows a file is never read */
    c->state = HTTP_RECEIVING;
    c->body_begin = (int64_t)loop_now();
    conn_arm(c, conn_find_body_end(c));
    if (h->expect.at != 0 && h->minor > 0 && c->input_size == c->parser.at) {
        evbuffer_add(c->output, go_on, sizeof go_on - 1); /* what is not written now goes before the answer */
        const int n = evbuffer_write(c->output, c->fd);
        c->server->counts.bytes += n > 0 ? (uint64_t)n : 0;
    }
    conn_receive(c);
}

static void conn_parse(struct http_conn *c)
{
    struct http_refusal refusal = {0};
    enum http_parse_result result = http_parse(&c->parser, c->input, c->input_size);
    if (result == HTTP_PARSE_MORE) {
        return;
    }
    if (result == HTTP_PARSE_BAD) {
        refusal.status = c->parser.status;
        profd_error_set(&refusal.error, PROFD_REFUSED, "%s (byte %zu of the request)", c->parser.reason, c->parser.at);
    } else {
        c->from_origin = http_check_from_origin(&c->server->config, &c->parser.head, c->input);
        http_check(&c->server->config, &c->peer, &c->parser.head, c->input, &refusal);
        c->token = refusal.token;
        c->proven = c->proven || (refusal.status == 0 && !refusal.anonymous);
    }
    /* Bytes after a request without a body could be a smuggled second one: they are never read. */
    const bool bodied = c->parser.head.method == HTTP_METHOD_PUT || c->parser.head.method == HTTP_METHOD_POST;
    c->last = c->last || c->parser.head.close || (!bodied && c->input_size > c->parser.at);
    if (refusal.status != 0) {
        conn_refuse(c, &refusal);
    } else if (c->parser.head.method == HTTP_METHOD_OPTIONS) {
        http_conn_answer(c, &(struct http_answer){.status = 204}, false);
    } else if (bodied) {
        conn_take_body(c);
    } else {
        conn_handle(c);
    }
}

static void conn_read_on(struct http_conn *c)
{
    if (!c->input) {
        c->input = malloc(HTTP_INPUT_MAX);
    }
    if (!c->input) {
        http_conn_close(c);
        return;
    }
    const size_t n = bytes_read(c, c->input + c->input_size, HTTP_INPUT_MAX - c->input_size);
    if (n == 0) {
        return;
    }
    if (c->state == HTTP_IDLE) {
        c->state = HTTP_READING;
        conn_arm(c, (int64_t)loop_now() + c->server->config.header_ms);
    }
    c->input_size += n;
    conn_parse(c);
}

void http_conn_say(struct http_server *server, int fd, enum profd_status status, int http_status, const char *sentence)
{
    struct http_refusal refusal = {.status = http_status};
    profd_error_set(&refusal.error, status, "%s", sentence);
    struct http_manner manner = {.origin = server->config.origin, .write_problem = server->config.write_problem};
    struct evbuffer *out = evbuffer_new();
    if (out && http_write_refusal(out, &refusal, manner)) {
        int n = evbuffer_write(out, fd);
        server->counts.bytes += n > 0 ? (uint64_t)n : 0;
        server->counts.answered[http_status / 100]++;
    }
    if (out) {
        evbuffer_free(out);
    }
}

void http_server_say_busy(struct http_server *server, int fd)
{
    struct profd_error e;
    profd_error_set(&e, PROFD_BUSY, "all %zu connections are in use", server->config.connections_max);
    http_conn_say(server, fd, PROFD_BUSY, 503, e.sentence);
}

bool http_conn_give_way(struct http_conn *c)
{
    struct http_server *server = c->server;
    const size_t connections = server->counts.connections;
    const unsigned requests = c->requests;
    if (c->state == HTTP_IDLE || c->state == HTTP_READING) {
        conn_read_on(c);
        if (server->counts.connections < connections) {
            return true;
        }
        if (c->requests != requests || (c->state != HTTP_IDLE && c->state != HTTP_READING)) {
            return false;
        }
    }
    if (c->state == HTTP_READING) {
        http_server_say_busy(server, c->fd);
    }
    http_conn_close(c);
    return true;
}

static void conn_on_readable(evutil_socket_t fd, short what, void *context)
{
    struct http_conn *c = context;
    (void)fd;
    (void)what;
    if (c->state == HTTP_LINGERING) {
        char waste[65536];
        const size_t n = bytes_read(c, waste, sizeof waste);
        if (n == 0) {
            return;
        }
        c->lingered += n;
        if (c->lingered > conn_count_late(c)) {
            http_conn_close(c);
        }
    } else if (c->state == HTTP_RECEIVING) {
        conn_receive(c);
    } else if (c->state == HTTP_READING && c->input_size > c->parser.at) {
        conn_parse(c); /* what came with a body */
    } else if (c->state == HTTP_IDLE || c->state == HTTP_READING) {
        conn_read_on(c);
    }
}

static void conn_on_writable(evutil_socket_t fd, short what, void *context)
{
    (void)fd;
    (void)what;
    conn_flush(context);
}

void http_conn_end_token(struct http_conn *c)
{
    if (c->state == HTTP_RECEIVING || c->state == HTTP_HANDLING) {
        conn_give_up(c, PROFD_UNAUTHORIZED, 401, "the token was removed meanwhile");
    } else if (c->state == HTTP_WRITING) {
        http_conn_close(c);
    }
}

static void conn_on_timer(evutil_socket_t fd, short what, void *context)
{
    struct http_conn *c = context;
    (void)fd;
    (void)what;
    if (c->state == HTTP_READING) {
        conn_give_up(c, PROFD_TIMEOUT, 408, "the request was not complete in time");
    } else if (c->state == HTTP_RECEIVING) {
        const int64_t now = (int64_t)loop_now(), end = conn_find_body_end(c);
        struct profd_error e;
        if (now < end) {
            conn_arm(c, end);
            return;
        }
        profd_error_set(
            &e, PROFD_TIMEOUT,
            "%llu bytes of the body have come in %lld ms; a body may take %u ms, and a second more for each %u "
            "bytes",
            (unsigned long long)c->body->got, (long long)(now - c->body_begin), c->server->config.write_ms,
            LIMIT_FRAME_RATE);
        conn_give_up(c, PROFD_TIMEOUT, 408, e.sentence);
    } else if (c->state == HTTP_HANDLING && (int64_t)loop_now() < c->handle_end) {
        conn_judge_client(c);
    } else if (c->state == HTTP_HANDLING) {
        conn_give_up(c, PROFD_TIMEOUT, 504, "the answer was not ready in time");
    } else if (c->state == HTTP_WRITING) {
        /* Close it if it took nothing since the last look, or is too slow in all. */
        int64_t now = (int64_t)loop_now();
        size_t unwritten = evbuffer_get_length(c->output);
        if (unwritten >= c->unwritten || now >= c->write_end) {
            http_conn_close(c);
            return;
        }
        c->unwritten = unwritten;
        conn_arm(c, now + c->server->config.write_ms);
    } else {
        http_conn_close(c);
    }
}

struct http_conn *http_conn_new(struct http_server *server, int fd, const struct http_peer *peer)
{
    struct http_conn *c = calloc(1, sizeof *c);
    if (!c) {
        return NULL;
    }
    c->server = server;
    c->fd = fd;
    c->born = (int64_t)loop_now();
    if (peer) {
        c->peer = *peer;
    }
    if (server->config.tcp) {
        (void)setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &(int){1}, sizeof(int)); /* only slower without */
    }
    c->readable = event_new(server->base, fd, EV_READ | EV_PERSIST, conn_on_readable, c);
    c->writable = event_new(server->base, fd, EV_WRITE, conn_on_writable, c);
    c->timer = evtimer_new(server->base, conn_on_timer, c);
    c->output = evbuffer_new();
    if (c->readable && c->writable && c->timer && c->output && event_add(c->readable, NULL) == 0) {
        conn_arm(c, c->born + server->config.life_ms);
        return c;
    }
    if (c->readable) {
        event_free(c->readable);
    }
    if (c->writable) {
        event_free(c->writable);
    }
    if (c->timer) {
        event_free(c->timer);
    }
    if (c->output) {
        evbuffer_free(c->output);
    }
    free(c);
    return NULL;
}
