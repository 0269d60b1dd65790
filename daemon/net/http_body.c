/* The body of a PUT, which goes into a file in memory. */
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "net/closer.h"
#include "net/http_internal.h"
#include "proto/limits.h"

#define PIECE 65536

/* Is another PUT of this token, or are too many of all tokens, received or handled? */
static bool body_is_busy(const struct http_conn *c)
{
    const struct http_conn *other;
    size_t all = 0;
    bool same = false;
    TAILQ_FOREACH(other, &c->server->conns, next)
    {
        const bool busy = other->state == HTTP_RECEIVING ||
                          (other->state == HTTP_HANDLING && other->parser.head.method == HTTP_METHOD_PUT);
        all += busy;
        same |= busy && other->token == c->token;
    }
    return same || all >= LIMIT_HTTP_PUTS;
}

static bool body_write(struct http_conn *c, const char *bytes, size_t n, struct http_refusal *out)
{
    while (n > 0) {
        const ssize_t written = write(c->body, bytes, n);
        if (written < 0 && errno == EINTR) {
            continue;
        }
        if (written <= 0) {
            out->status = 503;
            profd_error_set(&out->error, PROFD_BUSY, "no memory for the file: %s", strerror(errno));
            return false;
        }
        bytes += written;
        n -= (size_t)written;
        c->body_left -= (size_t)written;
    }
    return true;
}

void http_body_begin(struct http_conn *c, struct http_refusal *out)
{
    if (body_is_busy(c)) {
        out->status = 503;
        profd_error_set(&out->error, PROFD_BUSY,
                        "a file of this token, or %u files of others, are being read; try again", LIMIT_HTTP_PUTS);
        return;
    }
    c->body = memfd_create("profd-put", MFD_CLOEXEC | MFD_ALLOW_SEALING);
    c->body_left = c->parser.head.body;
    if (c->body < 0) {
        out->status = 503;
        profd_error_set(&out->error, PROFD_BUSY, "no memory for the file: %s", strerror(errno));
        return;
    }
    const size_t there = c->input_size - c->parser.at;
    (void)body_write(c, c->input + c->parser.at, there < c->body_left ? there : (size_t)c->body_left, out);
}

bool http_body_take(struct http_conn *c, bool *done, struct http_refusal *out)
{
    char bytes[PIECE];
    const size_t most = c->body_left < sizeof bytes ? (size_t)c->body_left : sizeof bytes;
    ssize_t n = most == 0 ? 0 : closer_receive(c->server->config.closer, c->peer.uid, c->fd, bytes, most);
    if (n < 0 && (errno == EAGAIN || errno == EINTR)) {
        n = 0;
    } else if (n < 0 || (n == 0 && most > 0)) {
        return false;
    }
    if (!body_write(c, bytes, (size_t)n, out)) {
        return false;
    }
    *done = c->body_left == 0;
    if (*done) { /* the reader of executables takes no other file in memory; if it fails, that says so */
        (void)fcntl(c->body, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_WRITE);
    }
    return true;
}
