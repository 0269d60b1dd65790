#include "net/http.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "net/http_inside.h"
#include "proto/limits.h"

#define HTTP_HANDLE_MS 60000u

int64_t http_now_ms(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (int64_t)t.tv_sec * 1000 + t.tv_nsec / 1000000;
}

static void door_default(unsigned *value, unsigned otherwise)
{
    if (*value == 0)
        *value = otherwise;
}

struct http_door *http_door_new(struct event_base *base, const struct http_door_config *config, http_handler handler,
                                void *context)
{
    struct http_door *door = calloc(1, sizeof *door);
    if (door == NULL)
        return NULL;
    door->base = base;
    door->config = *config;
    door->handler = handler;
    door->context = context;
    if (door->config.connections_max == 0)
        door->config.connections_max = LIMIT_HTTP_CONNECTIONS;
    door_default(&door->config.header_ms, LIMIT_HTTP_HEADER_SECONDS * 1000u);
    door_default(&door->config.handle_ms, HTTP_HANDLE_MS);
    door_default(&door->config.write_ms, LIMIT_WRITE_SECONDS * 1000u);
    door_default(&door->config.life_ms, LIMIT_HTTP_SECONDS * 1000u);
    door_default(&door->config.requests_max, LIMIT_HTTP_REQUESTS);
    return door;
}

void http_door_unlink(struct http_door *door, struct http_conn *c)
{
    *(c->previous != NULL ? &c->previous->next : &door->first) = c->next;
    *(c->next != NULL ? &c->next->previous : &door->final) = c->previous;
    c->next = c->previous = NULL;
    door->counts.connections--;
}

static void door_append(struct http_door *door, struct http_conn *c)
{
    c->previous = door->final;
    c->next = NULL;
    *(door->final != NULL ? &door->final->next : &door->first) = c;
    door->final = c;
    door->counts.connections++;
}

void http_door_move_last(struct http_door *door, struct http_conn *c)
{
    http_door_unlink(door, c);
    door_append(door, c);
}

/* Closes the connection that has been idle longest. False if none is idle. */
static bool door_make_room(struct http_door *door)
{
    for (struct http_conn *c = door->first; c != NULL; c = c->next)
        if (c->state == HTTP_IDLE) {
            http_conn_close(c);
            return true;
        }
    return false;
}

/* Best effort: one write, no waiting. */
static void door_refuse(struct http_door *door, int fd)
{
    struct http_refusal refusal = {.status = 503};
    profd_error_set(&refusal.error, PROFD_BUSY, "all %zu connections are in use", door->config.connections_max);
    struct evbuffer *out = evbuffer_new();
    if (out != NULL && http_write_refusal(out, &refusal, (struct http_manner){.origin = door->config.origin})) {
        int n = evbuffer_write(out, fd);
        door->counts.bytes += n > 0 ? (uint64_t)n : 0;
        door->counts.answered[5]++;
    }
    if (out != NULL)
        evbuffer_free(out);
    close(fd);
}

void http_door_accept(struct http_door *door, int fd, const struct http_peer *peer)
{
    if (door->stopping) {
        close(fd);
        return;
    }
    if (door->counts.connections >= door->config.connections_max && !door_make_room(door)) {
        door_refuse(door, fd);
        return;
    }
    struct http_conn *c = http_conn_new(door, fd, peer);
    if (c == NULL)
        close(fd);
    else
        door_append(door, c);
}

void http_door_get_counts(const struct http_door *door, struct http_door_counts *out)
{
    *out = door->counts;
}

void http_door_stop(struct http_door *door)
{
    door->stopping = true;
    for (struct http_conn *c = door->first, *next; c != NULL; c = next) {
        next = c->next;
        c->last = true;
        if (c->state == HTTP_IDLE)
            http_conn_close(c);
    }
}

void http_door_free(struct http_door *door)
{
    if (door == NULL)
        return;
    while (door->first != NULL)
        http_conn_close(door->first);
    free(door);
}

void http_answer(struct http_exchange *x, const struct http_answer *answer)
{
    struct http_conn *c = x->conn;
    bool head_only = x->request.head;
    if (c != NULL)
        c->exchange = NULL;
    free(x);
    if (c != NULL)
        http_conn_answer(c, answer, head_only);
    else if (answer->body != NULL)
        buffer_done(answer->body);
}
