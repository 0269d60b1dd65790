/* What the files of the HTTP door share. Private to net/http*. */
#ifndef PROFD_NET_HTTP_INSIDE_H
#define PROFD_NET_HTTP_INSIDE_H

#include <event2/buffer.h>
#include <event2/event.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "net/http.h"
#include "net/http_parse.h"
#include "proto/status.h"

#define HTTP_INPUT_MAX 16384

/* IDLE → READING → HANDLING → WRITING → IDLE or LINGERING; from each to closed. LINGERING reads what the client still
 * sends, so that closing does not destroy the answer under way to it. */
enum http_state { HTTP_IDLE, HTTP_READING, HTTP_HANDLING, HTTP_WRITING, HTTP_LINGERING };

struct http_conn {
    struct http_conn *next, *previous; /* of the door, longest unused first */
    struct http_door *door;
    int fd;
    enum http_state state;
    struct event *readable, *writable, *timer;
    struct evbuffer *output;
    char *input; /* HTTP_INPUT_MAX bytes while a request is there, else NULL */
    size_t input_size, lingered;
    struct http_parser parser;
    struct http_exchange *exchange; /* while HANDLING */
    struct http_peer peer;
    int64_t born, write_end; /* ms, monotonic */
    size_t unwritten;        /* of output when the write deadline was last looked at */
    unsigned requests;
    bool last;        /* close after this answer */
    bool from_origin; /* the request is one of a page of the configured origin */
};

struct http_door {
    struct event_base *base;
    struct http_door_config config;
    http_handler handler;
    void *context;
    struct http_conn *first, *final;
    struct http_conn *current; /* whose request is with the handler right now; NULL once it is closed */
    struct http_door_counts counts;
    bool stopping;
};

/* One request from the handler's call to its answer; outlives the connection. */
struct http_exchange {
    struct http_conn *conn; /* NULL when the client has gone */
    struct http_request request;
    char text[]; /* target and If-None-Match */
};

/* The door's own refusal. */
struct http_refusal {
    int status; /* 0: admitted */
    struct profd_error error;
};

int64_t http_now_ms(void);

/* http_check.c: Host, origin, method, body, token, coding, in this order. Pure. A preflight that is admitted is to be
 * answered 204. */
void http_check(const struct http_door_config *config, const struct http_head *head, const char *data,
                struct http_refusal *out);

/* Is the request one of a page of the configured origin? */
bool http_check_from_origin(const struct http_door_config *config, const struct http_head *head, const char *data);

/* What an answer owes to the connection and the request. */
struct http_manner {
    bool head_only, last;
    const char *origin; /* of the door, NULL: none */
    bool from_origin, preflight;
};
/* http_write.c: append a whole answer to out. False when out of memory (out is then unusable). The body's memory is
 * taken over in every case. A refusal is the last answer of its connection. */
bool http_write_answer(struct evbuffer *out, const struct http_answer *answer, const struct http_manner *manner);
bool http_write_refusal(struct evbuffer *out, const struct http_refusal *refusal, struct http_manner manner);

/* http_conn.c */
struct http_conn *http_conn_new(struct http_door *door, int fd, const struct http_peer *peer);
void http_conn_close(struct http_conn *c);
void http_conn_answer(struct http_conn *c, const struct http_answer *answer, bool head_only);

/* http.c: to the end of the door's list. */
void http_door_move_last(struct http_door *door, struct http_conn *c);
void http_door_unlink(struct http_door *door, struct http_conn *c);

#endif
