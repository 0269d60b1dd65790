/* What the files of the HTTP server share. Private to http*.c. */
#ifndef PROFD_NET_HTTP_INTERNAL_H
#define PROFD_NET_HTTP_INTERNAL_H

#include <event2/buffer.h>
#include <event2/event.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/queue.h>

#include "core/coding.h"
#include "net/http.h"
#include "proto/limits.h"
#include "proto/status.h"

/* The head of one HTTP request (RFC 9112, a strict subset), byte by byte. Pure: no sockets, no memory taken. What is
 * not clearly a GET, HEAD, PUT or POST of a well-behaved client is refused here, before anything acts on it. */

/* A head never grows beyond this. */
#define HTTP_HEAD_MAX (LIMIT_HTTP_LINE + 2 + LIMIT_HTTP_HEADERS)

/* Part of the head; at 0 means absent. */
struct http_span {
    uint16_t at, size;
};

enum http_method {
    HTTP_METHOD_OTHER,
    HTTP_METHOD_GET,
    HTTP_METHOD_HEAD,
    HTTP_METHOD_OPTIONS,
    HTTP_METHOD_PUT,
    HTTP_METHOD_POST
};

extern const char *const http_methods[]; /* their names; "": another one */

struct http_head {
    enum http_method method;
    unsigned minor; /* HTTP/1.minor: 0 or 1 */
    struct http_span target, host, origin, fetch_site, authorization, remote_user, if_none_match, content_length,
        content_type, content_encoding, transfer_encoding, expect;
    struct coding_wish codings;
    uint64_t body;      /* value of Content-Length, 0 if absent */
    enum coding coding; /* of the body; NONE: one that is not known */
    bool close;         /* Connection: close, or version 1.0 */
};

enum http_parse_result { HTTP_PARSE_MORE, HTTP_PARSE_DONE, HTTP_PARSE_BAD };

/* Zeroed is the initial state. */
struct http_parser {
    size_t at;      /* bytes consumed; after DONE the size of the head */
    size_t line;    /* where the current line begins */
    size_t headers; /* where the header block begins, 0 before */
    unsigned fields;
    bool cr, done;
    struct http_head head;
    int status;         /* after BAD: 400, 414, 417, 431 or 505 */
    const char *reason; /* after BAD: the rule that was broken */
};

/* Goes on where it stopped: data holds all size bytes of the request so far, of which the first p->at are not read
 * again. DONE and BAD are final. However the bytes arrive, the result is the same. O(new bytes). */
enum http_parse_result http_parse(struct http_parser *p, const char *data, size_t size);

/* True if the Host names this machine's loopback at that port: localhost, 127.0.0.1 or [::1], and the port unless it
 * is 80. */
bool http_host_local(const char *text, size_t n, unsigned port);

#define HTTP_INPUT_MAX 16384

/* IDLE → READING → (of a PUT or POST: RECEIVING →) HANDLING → WRITING → IDLE or LINGERING; from each to closed.
 * LINGERING reads what the client still sends, so that closing does not destroy the answer under way to it. */
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
    struct http_body *body;  /* while RECEIVING, else NULL */
    int64_t born, write_end; /* ms, monotonic */
    int64_t body_begin;      /* ms: RECEIVING since */
    int64_t handle_end;      /* ms: an answer that is not there then is given up */
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
    atomic_bool *gone;      /* then set; NULL: nothing is told */
    struct http_request request;
    struct http_body *body; /* of a PUT or POST, else NULL */
    char text[];            /* target, If-None-Match and Content-Type */
};

/* An error answer of the server itself. */
struct http_refusal {
    int status;          /* 0: admitted */
    bool anonymous;      /* admitted without the required token, because the target is public */
    uint64_t token;      /* as of http_admit */
    const char *methods; /* of the path */
    struct profd_error error;
};

/* http_parse.c: Host, origin, method, body, credentials, coding, in this order. A preflight that is admitted is to be
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
    const char *methods; /* of the path; NULL: not needed */
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
/* Which bytes of a body come next. All but BYTES and WHOLE are framing of chunks. */
enum http_body_part {
    HTTP_BODY_BYTES,
    HTTP_BODY_SIZE,
    HTTP_BODY_SIZE_END,
    HTTP_BODY_DATA_CR,
    HTTP_BODY_DATA_LF,
    HTTP_BODY_LAST_CR,
    HTTP_BODY_LAST_LF,
    HTTP_BODY_WHOLE
};

/* A body that is received; then its exchange owns it until the answer. */
struct http_body {
    TAILQ_ENTRY(http_body) next; /* of all */
    uint64_t token;
    bool put, chunked;
    enum coding coding;
    enum http_body_part part;
    unsigned digits;  /* of the size of a chunk */
    uint64_t left;    /* bytes to come of the body, or of the chunk */
    uint64_t at, got; /* bytes taken with and without framing */
    int file;         /* of a PUT, until it is handed on; else −1 */
    uint8_t *bytes;   /* of a POST: as they came, and in the end decoded */
    size_t size, capacity;
};

/* http_body.c: the body of a head that was admitted. BUSY or NO_MEMORY: there is no memory for another one. */
enum profd_status http_body_new(const struct http_head *head, uint64_t token, struct http_body **out,
                                struct profd_error *e);
/* Takes what belongs to the body of n bytes that follow the bytes taken before. The part is WHOLE when there is nothing
 * to come; a POST is decoded then, and bytes is not NULL. However the bytes arrive, the result is the same. MALFORMED,
 * TOO_LARGE, BUSY or NO_MEMORY: the body must be freed. */
enum profd_status http_body_take(struct http_body *b, const char *data, size_t n, size_t *took, struct profd_error *e);
/* Bytes that may be read without reading behind the body, at most n. */
size_t http_body_wants(const struct http_body *b, size_t n);
/* Accepts NULL. */
void http_body_free(struct http_body *b);
/* A refusal on the descriptor. Best effort: one write, no waiting. */
void http_conn_say(struct http_server *server, int fd, enum profd_status status, int http_status, const char *sentence);
void http_server_say_busy(struct http_server *server, int fd);

#endif
