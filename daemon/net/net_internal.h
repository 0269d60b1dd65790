/* What the files of a connection (conn*.c), and those of the HTTP server (http*.c), share. */
#ifndef PROFD_NET_INTERNAL_H
#define PROFD_NET_INTERNAL_H

#include <event2/buffer.h>
#include <event2/event.h>
#include <event2/event_struct.h>
#include <sys/time.h>

#include "core/hashmap.h"
#include "net/conn.h"
#include "net/http.h"

#define CONN_SCRATCH (64u << 10)
#define CONN_FDS_MAX 16 /* descriptors that may wait for their frame */
#define CONN_POLLS 1024 /* connections in one poll */

/* What a user holds of that is limited per user. */
struct conn_user {
    uint32_t uid;
    size_t connections;
    size_t bytes;   /* of bodies */
    size_t answers; /* bytes of answers not taken yet */

    struct timeval pass;          /* the latest pass of the loop in which connections of the user were read, */
    unsigned reads;               /* and their number */
    TAILQ_HEAD(, conn) postponed; /* connections that wait for the next pass */
    TAILQ_ENTRY(conn_user) next;  /* in the list of users with such connections, */
    bool queued;                  /* if it is in that list */
};

/* Something to be written: a block, or pieces made on demand. */
struct conn_output {
    STAILQ_ENTRY(conn_output) next;
    uint8_t *block;
    size_t size, sent;
    int fd; /* goes with the first byte; −1: none */
};

struct conn {
    struct conn_group *group;
    struct peer peer;
    struct conn_user *owner;
    conn_id id;
    void *user;
    int fd;
    enum conn_state state;
    unsigned busy; /* depth of calls that will settle the connection when they end */
    bool failed;   /* being closed for an error: nothing is read any more */
    bool broken;   /* the socket is useless: close without writing */
    bool unproven; /* no whole frame after HELLO yet; then in the group's list */
    TAILQ_ENTRY(conn) unproven_next;
    bool deaf;      /* the peer reads no more answers; frames that it sent before are still handled */
    bool gone;      /* the peer was seen to have hung up; it becomes deaf when the connection is next left */
    bool asked;     /* whether the peer is gone was determined since the latest read */
    bool granted;   /* it was postponed, and is to be read now */
    bool postponed; /* readable, and not read in this pass of the loop; then in its user's list */
    TAILQ_ENTRY(conn) postponed_next;
    bool reading, writing; /* which events are armed */

    /* input */
    uint8_t header[FRAME_HEADER_SIZE];
    size_t header_got;
    struct frame_header frame;          /* valid when header_got is whole, */
    const struct conn_handler *handler; /* and what handles it; NULL of HELLO */
    struct conn_body body;
    size_t body_got;
    bool body_ready; /* memory was given */
    bool crowded;    /* not read until fewer descriptors of the user are being closed; counted in the group */
    bool waiting;    /* for the budget; then in the group's list */
    TAILQ_ENTRY(conn) wait_next;
    uint8_t *held; /* read but not looked at, while the connection is paused */
    size_t held_size, held_at;
    int fds[CONN_FDS_MAX]; /* FIFO of descriptors that arrived */
    unsigned fd_count;
    size_t in_flight;

    /* output */
    STAILQ_HEAD(conn_outputs, conn_output) outputs;
    size_t output_bytes;
    STAILQ_HEAD(conn_sources, conn_source) sources;
    size_t source_bytes;

    /* deadlines, ms of loop_now, 0: none */
    uint64_t read_deadline, write_deadline, armed, paused_since;
    struct event read_event, write_event, timer_event;
};

struct conn_slot {
    struct conn *conn;
    uint32_t generation;
    uint32_t next_free;
};

struct conn_group {
    struct conn_config config;
    struct hashmap users; /* uid → struct conn_user */
    struct conn_slot *slots;
    uint32_t slot_count, slot_free; /* slot_free: index + 1 of the first free slot */
    size_t bodies;
    TAILQ_HEAD(conn_waiting_list, conn) waiting;
    TAILQ_HEAD(conn_unproven_list, conn) unproven; /* in the order of their accept */
    struct conn_counts counts;
    bool draining;
    bool urgent;                     /* what has arrived is read although its user is crowded */
    size_t crowded;                  /* connections that are */
    struct event crowd_event;        /* looks whether they still are */
    TAILQ_HEAD(, conn_user) sharing; /* users with postponed connections */
    size_t sharing_count;
    struct event share_event, hangup_event;
    size_t limit; /* of connections, SIZE_MAX: the configuration's alone */
    uint8_t scratch[CONN_SCRATCH];
};

/* The files of a connection, from the top: conn_group.c has the set of them and their events, conn_read.c takes bytes
 * to handlers, conn_limits.c says what each user may hold, conn_write.c has state, deadlines and answers. Each calls
 * only those below it. */

/* conn_write.c */
/* Moves if the move is allowed. */
bool conn_move(struct conn *c, enum conn_state state);
/* Sets a deadline (ms of loop_now; 0 clears) and the timer with it. */
void conn_set_read_deadline(struct conn *c, uint64_t at);
/* The timer, for the earlier of the deadlines. */
void conn_arm_timer(struct conn *c);
/* Closes descriptors that came for a frame. */
void conn_fds_close(const struct conn *c, int *fds, unsigned *count);
/* True if the peer can read no more answers. Asks the socket once after each read; frees the unread answers if so.
 * Frames that were received before may still be handled. */
bool conn_is_deaf(struct conn *c);
/* A request is in flight: looks from time to time whether peers have hung up. */
void conn_hangup_watch(struct conn_group *g);
void conn_hangup_look(evutil_socket_t fd, short what, void *group);
/* Something changed for the connection outside its own events: it is settled from the loop. */
void conn_touch(struct conn *c);
bool conn_has_output(const struct conn *c);
void conn_write(struct conn *c);
void conn_output_clear(struct conn *c);

/* conn_limits.c */
/* The user's entry, made if need be; NULL when out of memory. O(1) expected. */
struct conn_user *conn_user_open(struct conn_group *g, uint32_t uid);
/* Forgets the entry if it holds nothing. */
void conn_user_release(struct conn_group *g, struct conn_user *user);
/* The connection is readable: true if it may be read in this pass of the loop; otherwise it is postponed. */
bool conn_share_take(struct conn *c);
/* It is read now, or never: it is not postponed any more. */
void conn_share_leave(struct conn *c);
/* Has postponed connections read, of each user as many as one pass may read. */
void conn_share_serve(evutil_socket_t fd, short what, void *group);
/* Marks the connection crowded while LIMIT_CLOSING_PER_UID descriptors of its user are being closed, and the group
 * looks again soon. True if it is. */
bool conn_crowd(struct conn *c);
/* The group looks at its crowded connections again soon. */
void conn_crowd_look_soon(struct conn_group *g);
/* Memory for the body of the current frame, or the connection waits for it. */
void conn_budget_ask(struct conn *c);
void conn_budget_leave(struct conn *c);

/* conn_read.c */
void conn_read(struct conn *c);
/* Looks at held bytes as far as it may. */
void conn_read_held(struct conn *c);
/* True if bytes of this connection may be looked at now. */
bool conn_may_read(const struct conn *c);
/* The connection has sent a whole frame after HELLO, or ends. It does not give way to a new one any more. */
void conn_prove(struct conn *c);

/* --- the HTTP server --- */

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
        content_type, content_encoding, transfer_encoding, expect, connect_timeout;
    struct coding_wish codings;
    uint64_t body;      /* value of Content-Length, 0 if absent */
    uint64_t timeout;   /* ms, of Connect-Timeout-Ms, 0 if absent */
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

/* Goes on where it stopped: data holds all size bytes of the request so far; its first p->at are not read
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

/* True if the request is one of a page of the configured origin. */
bool http_check_from_origin(const struct http_server_config *config, const struct http_head *head, const char *data);

/* What an answer owes to the connection and the request. */
struct http_manner {
    bool head_only, last;
    const char *origin; /* of the listener, NULL: none */
    bool from_origin, preflight;
    bool timed;          /* the client set a deadline by Connect-Timeout-Ms */
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
