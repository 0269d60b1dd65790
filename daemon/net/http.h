/* The HTTP server: a strict subset of HTTP/1.1 (RFC 9112) for untrusted clients. GET and HEAD, preflight requests
 * of the one configured origin, and PUT and POST where the owner of the listener admits them. */
#ifndef PROFD_NET_HTTP_H
#define PROFD_NET_HTTP_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/buffer.h"
#include "core/coding.h"
#include "proto/status.h"

struct event_base;
struct http_server;
struct http_exchange;

/* Kernel facts about the other end of a Unix connection; zero for TCP. */
struct http_peer {
    uint32_t uid;
    bool may_read_all; /* root, the daemon's user, or in the read group: decided by the caller at accept */
};

/* What a request shows of its sender. */
struct http_credentials {
    bool tcp, open;              /* open: as in struct http_server_config */
    bool reads;                  /* GET or HEAD */
    struct http_peer peer;       /* of a Unix connection */
    bool given;                  /* there is an Authorization */
    const uint8_t *token_sha256; /* of its bearer token or basic password; NULL: it has neither */
    const char *user;            /* of X-Remote-User, user_size bytes; NULL: there is no such header */
    size_t user_size;
};
/* Decides for which token a request speaks, and whether that may read, if it reads. Returns 0, and *token is its
 * number, 0: none, the rights are those of the connection. Else the status 401 or 403 with a sentence. */
typedef int (*http_admit)(void *context, const struct http_credentials *c, uint64_t *token, struct profd_error *e);

/* The head of a PUT or POST whose body was not read yet. */
struct http_body_head {
    bool post;        /* false: PUT */
    const char *path; /* n bytes, no query */
    size_t n;
    uint64_t token; /* as of http_admit */
    bool tcp;
    struct http_peer peer; /* of a Unix connection */
    bool sized;            /* Content-Length is given: size */
    uint64_t size;
    const char *type; /* Content-Type, type_size bytes; 0: none */
    size_t type_size;
};
/* Decides whether the body is to be read. Returns 0, or the status of the refusal, with a sentence. What every body
 * must be (a POST has a length or chunks, at most LIMIT_HTTP_POST bytes, and a known coding) is judged afterwards. */
typedef int (*http_judge_body)(void *context, const struct http_body_head *head, struct profd_error *e);

/* What a listener admits. */
struct closer;
struct http_server_config {
    bool tcp;      /* loopback TCP: Host allow-list with port, token unless open; false: Unix socket */
    uint16_t port; /* for the Host check */
    bool open;     /* --http-open: on TCP, requests without credentials may read */
    /* Paths (n bytes, no query) that need no token because they hold no data: the page that requests the token must be
     * served without it. NULL: none. */
    bool (*is_public)(const char *path, size_t n);
    http_admit admit; /* NULL: every request is admitted */
    void *admit_context;
    /* The methods of a path (n bytes, no query), as the field Allow has them: "GET, HEAD" or others of GET, HEAD, PUT
     * and POST. NULL: each path has these two. */
    const char *(*find_methods)(const char *path, size_t n);
    http_judge_body judge_body; /* of PUT and POST, where a path has them */
    void *body_context;
    /* The one other origin with pages that may use the interface (CORS): "https://grafana.example". Outlives the
     * listener. NULL: none. */
    const char *origin;
    /* A new connection then replaces the longest unused one that is not being served, those first that have never made
     * a request with the token (or at all, where none is needed). 0 here and below: what limits.h says. */
    size_t connections_max;
    /* Appends the problem document (RFC 9457) of an error answer that the server gives itself. */
    void (*write_problem)(enum profd_status status, int http_status, const char *sentence, struct buffer *out);
    struct closer *closer; /* for descriptors that clients send along, and for connections that may hold some; NULL:
                              closed in place */
    unsigned header_ms;    /* from a request's first byte to its last */
    unsigned handle_ms;    /* from there to http_answer; then the server answers 504 itself */
    /* A client must take something of an answer in this time, and in all LIMIT_FRAME_RATE bytes a second more. A body
     * must have come in this time, and a second more for each LIMIT_FRAME_RATE bytes of it that have come. */
    unsigned write_ms;
    unsigned life_ms;      /* of a connection */
    unsigned requests_max; /* on one connection */
};

/* A request that passed every check. Valid until answered. */
struct http_request {
    const char *target;        /* origin-form, validated, still percent-encoded */
    const char *if_none_match; /* "" if absent */
    bool head;
    enum coding coding; /* of the answer, if it is worth coding; never NONE */
    bool coded_only;    /* it may not be sent as it is */
    struct http_peer peer;
    bool tcp;
    uint64_t token;       /* as of http_admit */
    int body;             /* of a PUT: a file in memory, which the handler closes; −1: another method */
    const uint8_t *bytes; /* of a POST: the decoded body, not NULL if it is empty; NULL: another method */
    size_t size;
    const char *content_type; /* "" if absent */
};

/* Called on the loop thread; must end in http_answer, now or later, from the loop thread. */
typedef void (*http_handler)(void *context, struct http_exchange *x, const struct http_request *request);

/* A listener belongs to one loop. NULL if out of memory. */
struct http_server *http_server_new(struct event_base *base, const struct http_server_config *config,
                                    http_handler handler, void *context);
/* Takes the accepted, non-blocking descriptor. */
void http_server_accept(struct http_server *server, int fd, const struct http_peer *peer);
/* Answers a connection that is not accepted, and closes it. Best effort: one write, no waiting. */
void http_server_refuse(struct http_server *server, int fd, uint32_t uid, enum profd_status status, int http_status,
                        const char *sentence);
/* Connections open, requests answered by class 1xx–5xx, bytes sent. */
struct http_server_counts {
    size_t connections;
    uint64_t answered[6];
    uint64_t bytes;
};
void http_server_get_counts(const struct http_server *server, struct http_server_counts *out);
/* Closes connections that are idle, answers the others, takes no more. */
void http_server_stop(struct http_server *server);
/* What a request needs from now on: as in struct http_server_config. */
void http_server_set_access(struct http_server *server, bool open, const char *origin);
/* A token was removed: requests that it was admitted for are answered 401, and answers under way to it are cut off. */
void http_server_end_token(struct http_server *server, uint64_t token);
void http_server_free(struct http_server *server);

/* The one answer. Takes over the body's memory (buffer is left empty). Large bodies go out chunked as the reader takes
 * them. If the client is gone meanwhile the answer is dropped. */
struct http_answer {
    int status;
    const char *content_type, *cache_control, *etag; /* etag may be "" */
    const char *csp;                                 /* NULL: the strictest */
    const char *exact;                               /* value of Profd-Exact; NULL or "": no such field */
    enum coding coding;                              /* of the body, which is coded already */
    bool negotiated;                                 /* another Accept-Encoding might have got another coding */
    uint32_t retry_after_ms;                         /* 0: no header */
    struct buffer *body;
};
void http_answer(struct http_exchange *x, const struct http_answer *answer);
/* *gone becomes true within a second after the client has gone, or its request was given up; it must live until the
 * answer. Over TCP, a client that ends its sending side before the answer has gone. Must be called before the handler
 * returns. */
void http_tell_gone(struct http_exchange *x, atomic_bool *gone);

/* True for host or host:port, host being a name, an IPv4 address or an IPv6 address in brackets. */
bool http_host_valid(const char *text, size_t n);

#endif
