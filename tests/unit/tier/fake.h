/* A server in a thread of the test that fails, lies and attacks. */
#ifndef PROFD_TESTS_UNIT_TIER_FAKE_H
#define PROFD_TESTS_UNIT_TIER_FAKE_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>

#define OK_HEAD "HTTP/1.1 200 OK\r\nContent-Type: application/octet-stream\r\n"
#define ALL_SETTINGS                                                                                                   \
    "max_query_size\nskip_unavailable_shards\nasync_insert\ninsert_quorum\ninsert_quorum_parallel\n"                   \
    "select_sequential_consistency\n"

/* A server that answers the look at the settings, and each other statement with `replies` one after the other, of
 * which the last is repeated. */
struct server {
    int fd;
    unsigned port;
    pthread_t thread;
    const char *settings; /* NULL: the look gets the replies, too */
    const char *const *replies;
    const size_t *sizes; /* NULL: they end with a NUL */
    size_t count, next;
    bool endless, slow; /* the last byte again and again; a byte each 20 ms */
    bool once;          /* when the first statement comes, nothing listens any more */
    bool stale;         /* a connection is closed when a second request comes, which is not read */
    atomic_int statements;
    char request[1 << 16]; /* the last one */
    size_t request_size;
};

void server_start(struct server *s);
void server_stop(struct server *s);

#endif
