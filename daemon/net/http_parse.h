/* The head of one HTTP request (RFC 9112, a strict subset), byte by byte. Pure: no sockets, no memory taken. What is
 * not clearly a GET, HEAD, PUT or POST of a well-behaved client is refused here, before anything acts on it. */
#ifndef PROFD_NET_HTTP_PARSE_H
#define PROFD_NET_HTTP_PARSE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/coding.h"
#include "proto/limits.h"

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

#endif
