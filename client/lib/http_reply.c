#include "lib/http_reply.h"

#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "proto/limits.h"

#define HEAD_MAX 16384u

void http_reply_init(struct http_reply *r)
{
    memset(r, 0, sizeof *r);
}

static enum profd_status malformed(struct profd_error *e, const char *what, const char *value)
{
    return profd_error_set(e, PROFD_MALFORMED, "the server's answer has %s: \"%.80s\"", what, value);
}

static enum profd_status status_line(struct http_reply *r, struct profd_error *e)
{
    const char *l = r->line;
    bool digits =
        strlen(l) >= 12 && l[9] >= '1' && l[9] <= '5' && l[10] >= '0' && l[10] <= '9' && l[11] >= '0' && l[11] <= '9';
    if (strncmp(l, "HTTP/1.", 7) != 0 || !digits || l[8] != ' ' || (l[12] != ' ' && l[12] != '\0')) {
        return malformed(e, "no HTTP/1 status line", l);
    }
    r->answer.http_status = (l[9] - '0') * 100 + (l[10] - '0') * 10 + (l[11] - '0');
    r->state = HTTP_REPLY_HEADER;
    return PROFD_OK;
}

/* Decimal or hexadecimal digits up to a limit; false otherwise. */
static bool number_parse(const char *text, unsigned base, uint64_t *out)
{
    uint64_t value = 0;
    size_t n = 0;
    for (; text[n] && text[n] != ';' && text[n] != ' '; n++) {
        const char *const alphabet = "0123456789abcdef";
        char c = text[n] >= 'A' && text[n] <= 'F' ? (char)(text[n] - 'A' + 'a') : text[n];
        const char *at = memchr(alphabet, c, base);
        if (!at || n >= 15) {
            return false;
        }
        value = value * base + (uint64_t)(at - alphabet);
    }
    *out = value;
    return n > 0;
}

static enum profd_status header_line(struct http_reply *r, struct profd_error *e)
{
    char *colon = strchr(r->line, ':');
    if (!colon || colon == r->line) {
        return malformed(e, "a header without a name", r->line);
    }
    *colon = '\0';
    const char *value = colon + 1 + strspn(colon + 1, " \t");
    if (strcasecmp(r->line, "content-length") == 0) {
        if (r->sized || !number_parse(value, 10, &r->left)) {
            return malformed(e, "a bad Content-Length", value);
        }
        r->sized = true;
    } else if (strcasecmp(r->line, "transfer-encoding") == 0) {
        if (r->chunked || strcasecmp(value, "chunked") != 0) {
            return malformed(e, "an unknown Transfer-Encoding", value);
        }
        r->chunked = true;
    } else if (strcasecmp(r->line, "content-type") == 0) {
        (void)snprintf(r->answer.content_type, sizeof r->answer.content_type, "%.*s", 127, value);
    } else if (strcasecmp(r->line, "etag") == 0) {
        (void)snprintf(r->answer.etag, sizeof r->answer.etag, "%.*s", 127, value);
    }
    return PROFD_OK;
}

static enum profd_status head_end(struct http_reply *r, struct profd_error *e)
{
    bool no_body = r->answer.http_status == 304 || r->answer.http_status == 204;
    if (r->sized && r->chunked) {
        return malformed(e, "two lengths", "Content-Length and Transfer-Encoding");
    }
    if (r->answer.http_status < 200) { /* 100 Continue: the real answer follows */
        http_reply_init(r);
        return PROFD_OK;
    }
    if (!r->sized && !r->chunked && !no_body) {
        return malformed(e, "no length", "neither Content-Length nor Transfer-Encoding");
    }
    if (no_body || (r->sized && r->left == 0)) {
        r->state = HTTP_REPLY_DONE;
    } else {
        r->state = r->chunked ? HTTP_REPLY_CHUNK_SIZE : HTTP_REPLY_SIZED;
    }
    return PROFD_OK;
}

/* A whole line is in r->line, without its end. */
static enum profd_status line_take(struct http_reply *r, struct profd_error *e)
{
    switch (r->state) {
    case HTTP_REPLY_STATUS:
        return status_line(r, e);
    case HTTP_REPLY_HEADER:
        return r->line[0] == '\0' ? head_end(r, e) : header_line(r, e);
    case HTTP_REPLY_CHUNK_SIZE:
        if (!number_parse(r->line, 16, &r->left)) {
            return malformed(e, "a bad chunk size", r->line);
        }
        r->state = r->left ? HTTP_REPLY_CHUNK : HTTP_REPLY_TRAILER;
        return PROFD_OK;
    case HTTP_REPLY_CHUNK_END:
        if (r->line[0] != '\0') {
            return malformed(e, "a chunk longer than its stated size", r->line);
        }
        r->state = HTTP_REPLY_CHUNK_SIZE;
        return PROFD_OK;
    default:
        if (r->line[0] == '\0') {
            r->state = HTTP_REPLY_DONE;
        }
        return PROFD_OK;
    }
}

static enum profd_status line_feed(struct http_reply *r, char c, struct profd_error *e)
{
    bool head = r->state == HTTP_REPLY_STATUS || r->state == HTTP_REPLY_HEADER || r->state == HTTP_REPLY_TRAILER;
    if (head && ++r->head_bytes > HEAD_MAX) {
        return profd_error_set(e, PROFD_TOO_LARGE, "the server's headers have more than %u bytes", HEAD_MAX);
    }
    if (c != '\n') {
        if (r->line_size + 1 >= sizeof r->line || c == '\0') {
            return profd_error_set(e, PROFD_MALFORMED, "the server's answer has a line over %zu bytes or a zero byte",
                                   sizeof r->line - 1);
        }
        r->line[r->line_size++] = c;
        return PROFD_OK;
    }
    if (r->line_size > 0 && r->line[r->line_size - 1] == '\r') {
        r->line_size--;
    }
    r->line[r->line_size] = '\0';
    r->line_size = 0;
    return line_take(r, e);
}

enum profd_status http_reply_feed(struct http_reply *r, const void *bytes, size_t n, profd_sink sink, void *context,
                                  bool *done, struct profd_error *e)
{
    const char *p = bytes;
    enum profd_status status = PROFD_OK;
    while (n > 0 && status == PROFD_OK && r->state != HTTP_REPLY_DONE) {
        if (r->state != HTTP_REPLY_SIZED && r->state != HTTP_REPLY_CHUNK) {
            status = line_feed(r, *p, e);
            p++;
            n--;
            continue;
        }
        size_t piece = r->left < n ? (size_t)r->left : n;
        r->body_bytes += piece;
        if (r->body_bytes > LIMIT_REPORT_BYTES) {
            return profd_error_set(e, PROFD_TOO_LARGE, "the answer has more than %u bytes", LIMIT_REPORT_BYTES);
        }
        status = sink(context, &r->answer, p, piece, e);
        r->told = true;
        r->left -= piece;
        p += piece;
        n -= piece;
        if (r->left == 0) {
            r->state = r->state == HTTP_REPLY_SIZED ? HTTP_REPLY_DONE : HTTP_REPLY_CHUNK_END;
        }
    }
    if (status == PROFD_OK && r->state == HTTP_REPLY_DONE && !r->told) {
        status = sink(context, &r->answer, p, 0, e);
        r->told = true;
    }
    *done = r->state == HTTP_REPLY_DONE;
    return status;
}
