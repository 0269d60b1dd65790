/* The connections of an HTTP server, the longest unused first; and its clock. */
#include <time.h>

#include "net/http_internal.h"

int64_t http_now_ms(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (int64_t)t.tv_sec * 1000 + t.tv_nsec / 1000000;
}

void http_list_append(struct http_server *server, struct http_conn *c)
{
    TAILQ_INSERT_TAIL(&server->conns, c, next);
    server->counts.connections++;
}

void http_list_remove(struct http_server *server, struct http_conn *c)
{
    TAILQ_REMOVE(&server->conns, c, next);
    server->counts.connections--;
}

void http_list_move_last(struct http_server *server, struct http_conn *c)
{
    http_list_remove(server, c);
    http_list_append(server, c);
}
