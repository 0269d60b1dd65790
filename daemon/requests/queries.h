/* Queries over the Unix socket (QUERY) and over HTTP. A cached answer that is still valid and the daemon's own pages
 * are sent at once; reader threads compute the other answers. */
#ifndef PROFD_REQUESTS_QUERIES_H
#define PROFD_REQUESTS_QUERIES_H

#include "requests/pages.h"
#include "requests/requests.h"
#include "requests/symbols.h"

/* Handles POST requests to a path. If the path ends in "/", it handles those to all paths below it. */
struct post_route {
    const char *path;
    /* As http_judge_body. */
    int (*judge)(void *context, const struct http_body_head *head, struct profd_error *e);
    /* Takes a request that judge accepted, and answers it now or later. */
    void (*receive)(void *context, struct http_exchange *x, const struct http_request *request);
    void *context;
};

/* All parts outlive the service. */
struct query_service_config {
    struct shared *shared; /* the writer's generation tells whether an answer is still valid */
    struct pages *pages;
    const struct symbols_service *symbols; /* takes the bodies of PUT */
    const struct post_route *posts;        /* take the bodies of POST */
    size_t post_count;
    uint64_t run;                                        /* store_set_run */
    uint64_t salt;                                       /* store_set_salt */
    const struct store_archive *archive;                 /* store_set_archive */
    const struct downtime *downtime;                     /* does not change */
    void (*failed)(void *context, const char *sentence); /* a query met damage or an input/output error: why */
    void *context;
};

enum profd_status query_service_start(const struct query_service_config *config, struct query_service **out,
                                      struct profd_error *e);
/* Cached answers are no longer sent at once. */
void query_service_stop(struct query_service *s);
/* The client of this connection has closed it: its waiting queries are not run, and the reading of ClickHouse by the
 * running ones is cancelled. All of them are answered. */
void query_service_cancel(struct query_service *s, conn_id conn);
/* Return the number of requests that wait for a thread or run, and that of HTTP requests without an answer. */
size_t query_service_pending(const struct query_service *s);
size_t query_service_pending_http(const struct query_service *s);
/* Answers the waiting queries by STOPPING. */
void query_service_drop_waiting(struct query_service *s);
/* Ends the threads. */
void query_service_join(struct query_service *s);
/* After the HTTP connections. Accepts NULL. */
void query_service_free(struct query_service *s);

/* For conn_handler, http_server_new and http_judge_body; the context is the service. */
enum profd_status query_receive(void *context, struct conn *c, struct conn_frame *f, struct profd_error *e);
void query_receive_http(void *context, struct http_exchange *x, const struct http_request *request);
int query_judge_body(void *context, const struct http_body_head *head, struct profd_error *e);

/* QUERY_KINDS of them: from the request to its answer. */
const struct durations *query_service_get_durations(const struct query_service *s);
/* The cache of sums, for other readers of the same database. */
struct query_cache *query_service_get_cache(const struct query_service *s);
struct query_answers_use query_service_measure_answers(const struct query_service *s);

#endif
