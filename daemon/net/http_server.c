#include "net/closer.h"
#include "net/http.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "net/http_internal.h"
#include "proto/limits.h"

#define HTTP_HANDLE_MS 60000u

static void door_default(unsigned *value, unsigned otherwise)
{
    if (*value == 0) {
        *value = otherwise;
    }
}

struct http_door *http_door_new(struct event_base *base, const struct http_door_config *config, http_handler handler,
                                void *context)
{
    struct http_door *door = calloc(1, sizeof *door);
    if (door == NULL) {
        return NULL;
    }
    TAILQ_INIT(&door->conns);
    door->base = base;
    door->config = *config;
    door->handler = handler;
    door->context = context;
    if (door->config.connections_max == 0) {
        door->config.connections_max = LIMIT_HTTP_CONNECTIONS;
    }
    door_default(&door->config.header_ms, LIMIT_HTTP_HEADER_SECONDS * 1000u);
    door_default(&door->config.handle_ms, HTTP_HANDLE_MS);
    door_default(&door->config.write_ms, LIMIT_WRITE_SECONDS * 1000u);
    door_default(&door->config.life_ms, LIMIT_HTTP_SECONDS * 1000u);
    door_default(&door->config.requests_max, LIMIT_HTTP_REQUESTS);
    return door;
}

/* A connection without a right to its place, longest unused first; then any that owes nothing to its client. NULL: all
 * are being served. */
static struct http_conn *door_find_replaceable(const struct http_door *door)
{
    struct http_conn *c;
    TAILQ_FOREACH(c, &door->conns, next)
    {
        if (!c->proven && c->state != HTTP_HANDLING) {
            return c;
        }
    }
    TAILQ_FOREACH(c, &door->conns, next)
    {
        if (c->state != HTTP_HANDLING && c->state != HTTP_WRITING) {
            return c;
        }
    }
    return NULL;
}

/* Clients that hold half requests, or nothing at all, must not keep others out. */
static bool door_make_room(struct http_door *door)
{
    struct http_conn *c;
    for (size_t looks = 0; looks < door->config.connections_max && (c = door_find_replaceable(door)) != NULL; looks++) {
        if (http_conn_give_way(c)) {
            return true;
        }
    }
    return false;
}

void http_door_accept(struct http_door *door, int fd, const struct http_peer *peer)
{
    if (door->stopping) {
        closer_close_connection(door->config.closer, peer->uid, fd);
        return;
    }
    if (door->counts.connections >= door->config.connections_max && !door_make_room(door)) {
        http_door_say_busy(door, fd);
        closer_close_connection(door->config.closer, peer->uid, fd);
        return;
    }
    struct http_conn *c = http_conn_new(door, fd, peer);
    if (c == NULL) {
        closer_close_connection(door->config.closer, peer->uid, fd);
    } else {
        http_list_append(door, c);
    }
}

void http_door_get_counts(const struct http_door *door, struct http_door_counts *out)
{
    *out = door->counts;
}

void http_door_stop(struct http_door *door)
{
    door->stopping = true;
    for (struct http_conn *c = TAILQ_FIRST(&door->conns), *next; c != NULL; c = next) {
        next = TAILQ_NEXT(c, next);
        c->last = true;
        if (c->state == HTTP_IDLE) {
            http_conn_close(c);
        }
    }
}

void http_door_free(struct http_door *door)
{
    if (door == NULL) {
        return;
    }
    while (!TAILQ_EMPTY(&door->conns)) {
        http_conn_close(TAILQ_FIRST(&door->conns));
    }
    free(door);
}

void http_answer(struct http_exchange *x, const struct http_answer *answer)
{
    struct http_conn *c = x->conn;
    bool head_only = x->request.head;
    if (c != NULL) {
        c->exchange = NULL;
    }
    free(x);
    if (c != NULL) {
        http_conn_answer(c, answer, head_only);
    } else if (answer->body != NULL) {
        buffer_done(answer->body);
    }
}
