/* The reader of an HTTP/1.1 response, for profd's own answers: pure and incremental, a strict subset. */
#ifndef PROFD_CLIENT_HTTP_REPLY_H
#define PROFD_CLIENT_HTTP_REPLY_H

#include "profd.h"

enum http_reply_state {
    HTTP_REPLY_STATUS,
    HTTP_REPLY_HEADER,
    HTTP_REPLY_SIZED, /* a body of left bytes */
    HTTP_REPLY_CHUNK_SIZE,
    HTTP_REPLY_CHUNK,
    HTTP_REPLY_CHUNK_END, /* the line end behind a chunk */
    HTTP_REPLY_TRAILER,
    HTTP_REPLY_DONE,
};

struct http_reply {
    enum http_reply_state state;
    struct profd_answer answer;
    char line[4096];
    size_t line_size, head_bytes;
    uint64_t left, body_bytes;
    bool sized, chunked, told;
};

/* Starts anew. */
void http_reply_init(struct http_reply *r);
/* Takes n bytes, cut anywhere, and gives the body's to sink. *done: the answer is whole. MALFORMED or TOO_LARGE by the
 * rule, or the sink's status. */
enum profd_status http_reply_feed(struct http_reply *r, const void *bytes, size_t n, profd_sink sink, void *context,
                                  bool *done, struct profd_error *e);

#endif
