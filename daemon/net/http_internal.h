/* Shared by the files of the HTTP server. Private to net/http*. */
#ifndef PROFD_NET_HTTP_INSIDE_H
#define PROFD_NET_HTTP_INSIDE_H

#include <event2/buffer.h>
#include <event2/event.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/queue.h>

#include "net/http.h"
#include "net/http_parse.h"
#include "proto/status.h"

#define HTTP_INPUT_MAX 16384

/* IDLE → READING → (of a PUT: RECEIVING →) HANDLING → WRITING → IDLE or LINGERING; from each to closed. LINGERING reads
 * what the client still sends, so that closing does not destroy the answer under way to it. */
enum http_state { HTTP_IDLE, HTTP_READING, HTTP_RECEIVING, HTTP_HANDLING, HTTP_WRITING, HTTP_LINGERING };

struct http_conn {
    TAILQ_ENTRY(http_conn) next; /* of the listener */
    struct http_server *server;
    int fd;
    enum http_state state;
    struct event *readable, *writable, *timer;
    struct evbuffer *output;
    char *input; /* HTTP_INPUT_MAX bytes while a request is there, else NULL */
    size_t input_size, lingered;
    struct http_parser parser;
    struct http_exchange *exchange; /* while HANDLING */
    struct http_peer peer;
    uint64_t token;          /* of the request that was parsed last */
    int body;                /* of a PUT: the file, while RECEIVING; else −1 */
    uint64_t body_left;      /* bytes to come */
    int64_t born, write_end; /* ms, monotonic */
    size_t unwritten;        /* of output when the write deadline was last looked at */
    unsigned requests;
    bool proven;      /* has made a request that was admitted with the token, or without one if none is required */
    bool last;        /* close after this answer */
    bool from_origin; /* the request is one of a page of the configured origin */
};

struct http_server {
    struct event_base *base;
    struct http_server_config config;
    http_handler handler;
    void *context;
    TAILQ_HEAD(http_conn_list, http_conn) conns; /* longest unused first */
    struct http_conn *current;                   /* connection with a request in the handler; NULL once it is closed */
    struct http_server_counts counts;
    bool stopping;
};

/* One request from the handler's call to its answer; outlives the connection. */
struct http_exchange {
    struct http_conn *conn; /* NULL when the client has gone */
    struct http_request request;
    char text[]; /* target and If-None-Match */
};

/* An error answer of the server itself. */
struct http_refusal {
    int status;     /* 0: admitted */
    bool anonymous; /* admitted without the required token, because the target is public */
    uint64_t token; /* as of http_admit */
    struct profd_error error;
};

/* http_check.c: Host, origin, method, body, credentials, coding, in this order. A preflight that is admitted is to be
 * answered 204. */
void http_check(const struct http_server_config *config, const struct http_peer *peer, const struct http_head *head,
                const char *data, struct http_refusal *out);

/* Is the request one of a page of the configured origin? */
bool http_check_from_origin(const struct http_server_config *config, const struct http_head *head, const char *data);

/* What an answer owes to the connection and the request. */
struct http_manner {
    bool head_only, last;
    const char *origin; /* of the listener, NULL: none */
    bool from_origin, preflight;
    void (*write_problem)(enum profd_status status, int http_status, const char *sentence, struct buffer *out);
};
/* http_write.c: append a whole answer to out. False when out of memory (out is then unusable). The body's memory is
 * taken over in every case. A refusal is the last answer of its connection. */
bool http_write_answer(struct evbuffer *out, const struct http_answer *answer, const struct http_manner *manner);
bool http_write_refusal(struct evbuffer *out, const struct http_refusal *refusal, struct http_manner manner);

/* http_conn.c */
struct http_conn *http_conn_new(struct http_server *server, int fd, const struct http_peer *peer);
void http_conn_close(struct http_conn *c);
/* If all connections are in use: reads what has arrived. A complete request is handled, and the connection stays.
 * Otherwise it is closed; a client that has sent part of a request gets 503. True if it was closed. */
bool http_conn_give_way(struct http_conn *c);
/* The token of its latest request was removed: as http_server_end_token says. It may be closed. */
void http_conn_end_token(struct http_conn *c);
void http_conn_answer(struct http_conn *c, const struct http_answer *answer, bool head_only);
/* http_body.c: begins to read the body of a PUT; out->status: why not. */
void http_body_begin(struct http_conn *c, struct http_refusal *out);
/* Takes the bytes that came with the head, or that are there now. *done: all are there. False: the connection is at its
 * end, or the file cannot be written, then out->status is set. */
bool http_body_take(struct http_conn *c, bool *done, struct http_refusal *out);
/* A refusal on the descriptor. Best effort: one write, no waiting. */
void http_conn_say(struct http_server *server, int fd, enum profd_status status, int http_status, const char *sentence);
void http_server_say_busy(struct http_server *server, int fd);

#endif
