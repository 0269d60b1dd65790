#include <stdlib.h>
#include <unistd.h>

#include "net/closer.h"
#include "net/net_internal.h"

#define HTTP_HANDLE_MS 60000u

static void server_default(unsigned *value, unsigned otherwise)
{
    if (*value == 0) {
        *value = otherwise;
    }
}

struct http_server *http_server_new(struct event_base *base, const struct http_server_config *config,
                                    http_handler handler, void *context)
{
    struct http_server *server = calloc(1, sizeof *server);
    if (!server) {
        return NULL;
    }
    TAILQ_INIT(&server->conns);
    server->base = base;
    server->config = *config;
    server->handler = handler;
    server->context = context;
    if (server->config.connections_max == 0) {
        server->config.connections_max = LIMIT_HTTP_CONNECTIONS;
    }
    server_default(&server->config.header_ms, LIMIT_HTTP_HEADER_SECONDS * 1000u);
    server_default(&server->config.handle_ms, HTTP_HANDLE_MS);
    server_default(&server->config.write_ms, LIMIT_WRITE_SECONDS * 1000u);
    server_default(&server->config.life_ms, LIMIT_HTTP_SECONDS * 1000u);
    server_default(&server->config.requests_max, LIMIT_HTTP_REQUESTS);
    return server;
}

/* Returns a connection that may be closed: the longest unused one that never made an admitted request, or else one that
 * is not being served. Returns NULL if all are being served. */
static struct http_conn *server_find_replaceable(const struct http_server *server)
{
    struct http_conn *c;
    TAILQ_FOREACH(c, &server->conns, next)
    {
        if (!c->proven && c->state != HTTP_HANDLING && c->state != HTTP_RECEIVING) {
            return c;
        }
    }
    TAILQ_FOREACH(c, &server->conns, next)
    {
        if (c->state != HTTP_HANDLING && c->state != HTTP_WRITING && c->state != HTTP_RECEIVING) {
            return c;
        }
    }
    return NULL;
}

/* Returns the number of answered requests, without the one that is being served. */
static unsigned server_count_answered(const struct http_conn *c)
{
    return c->requests - (c->state == HTTP_WRITING);
}

/* Returns the connection with the most answered requests. One whose answer has not begun is preferred, because its
 * client can ask again on a new connection. Returns NULL if each is being served for the first time. */
static struct http_conn *server_find_busiest(const struct http_server *server)
{
    struct http_conn *c, *busiest = NULL;
    TAILQ_FOREACH(c, &server->conns, next)
    {
        const unsigned answered = server_count_answered(c);
        const bool waits = c->state == HTTP_HANDLING, best_waits = busiest && busiest->state == HTTP_HANDLING;
        if (answered > 0 && (!busiest || (waits && !best_waits) ||
                             (waits == best_waits && answered > server_count_answered(busiest)))) {
            busiest = c;
        }
    }
    return busiest;
}

/* Makes a place for a new connection. Clients that hold incomplete requests, or none, must not keep others out. Returns
 * false if every client is being served for the first time. */
static bool server_make_place(struct http_server *server)
{
    struct http_conn *c;
    if (server->counts.connections < server->config.connections_max) {
        return true;
    }
    for (size_t looks = 0; looks < server->config.connections_max && (c = server_find_replaceable(server)) != NULL;
         looks++) {
        if (http_conn_give_way(c)) {
            return true;
        }
    }
    c = server_find_busiest(server);
    if (c) {
        http_conn_close(c);
    }
    return c;
}

void http_server_accept(struct http_server *server, int fd, const struct http_peer *peer)
{
    if (server->stopping) {
        closer_close_connection(server->config.closer, peer->uid, fd);
        return;
    }
    if (!server_make_place(server)) {
        http_server_say_busy(server, fd);
        closer_close_connection(server->config.closer, peer->uid, fd);
        return;
    }
    struct http_conn *c = http_conn_new(server, fd, peer);
    if (!c) {
        closer_close_connection(server->config.closer, peer->uid, fd);
    } else {
        TAILQ_INSERT_TAIL(&server->conns, c, next);
        server->counts.connections++;
    }
}

void http_server_refuse(struct http_server *server, int fd, uint32_t uid, enum profd_status status, int http_status,
                        const char *sentence)
{
    http_conn_say(server, fd, status, http_status, sentence);
    closer_close_connection(server->config.closer, uid, fd);
}

void http_server_get_counts(const struct http_server *server, struct http_server_counts *out)
{
    *out = server->counts;
}

void http_server_stop(struct http_server *server)
{
    server->stopping = true;
    for (struct http_conn *c = TAILQ_FIRST(&server->conns), *next; c; c = next) {
        next = TAILQ_NEXT(c, next);
        c->last = true;
        if (c->state == HTTP_IDLE) {
            http_conn_close(c);
        }
    }
}

void http_server_set_access(struct http_server *server, bool open, const char *origin)
{
    server->config.open = open;
    server->config.origin = origin;
}

void http_server_end_token(struct http_server *server, uint64_t token)
{
    for (struct http_conn *c = TAILQ_FIRST(&server->conns), *next; c; c = next) {
        next = TAILQ_NEXT(c, next);
        if (c->token == token) {
            http_conn_end_token(c);
        }
    }
}

void http_server_free(struct http_server *server)
{
    if (!server) {
        return;
    }
    while (!TAILQ_EMPTY(&server->conns)) {
        http_conn_close(TAILQ_FIRST(&server->conns));
    }
    free(server);
}

void http_answer(struct http_exchange *x, const struct http_answer *answer)
{
    struct http_conn *c = x->conn;
    bool head_only = x->request.head;
    if (c) {
        c->exchange = NULL;
    }
    http_body_free(x->body);
    free(x);
    if (c) {
        http_conn_answer(c, answer, head_only);
    } else if (answer->body) {
        buffer_done(answer->body);
    }
}
