#include "relay/talk.h"

#include <errno.h>
#include <poll.h>
#include <pwd.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

#include "proto/frame.h"
#include "proto/limits.h"
#include "proto/whole.h"

int64_t stream_now(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return t.tv_sec * INT64_C(1000) + t.tv_nsec / 1000000;
}

enum profd_status stream_open_unix(const char *path, struct stream *out, struct profd_error *e)
{
    struct sockaddr_un a = {.sun_family = AF_UNIX};
    struct ucred peer = {.uid = UINT32_MAX};
    socklen_t size = sizeof peer;
    const struct passwd *service;
    enum profd_status status = PROFD_OK;

    memcpy(a.sun_path, path, strlen(path) + 1); /* its length was validated with the configuration */
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (fd < 0 || connect(fd, (const struct sockaddr *)&a, sizeof a)) {
        status = profd_error_set(e, PROFD_UNAVAILABLE, "profd does not answer on %s: %s", path, strerror(errno));
    } else if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &size)) {
        status = profd_error_set(e, PROFD_IO, "%s: %s", path, strerror(errno));
    } else if (peer.uid && peer.uid != geteuid() && (!(service = getpwnam("profd")) || service->pw_uid != peer.uid)) {
        status = profd_error_set(e, PROFD_UNTRUSTED, "%s belongs to user %u, not to root, profd or user %u", path,
                                 peer.uid, geteuid());
    }
    if (status && fd >= 0) {
        close(fd);
    }
    if (!status) {
        *out = (struct stream){.fd = fd};
    }
    return status;
}

/* Writes or reads all n bytes before the deadline, a time of stream_now. UNAVAILABLE if the peer has closed, TIMEOUT,
 * IO; the caller must then close the stream. */
static enum profd_status stream_move(struct stream *s, bool writes, uint8_t *data, size_t n, int64_t deadline,
                                     struct profd_error *e)
{
    while (n) {
        const ssize_t done = writes ? send(s->fd, data, n, MSG_NOSIGNAL) : recv(s->fd, data, n, 0);

        if (done > 0) {
            data += done;
            n -= (size_t)done;
        } else if (done < 0 && (errno == EAGAIN || errno == EINTR)) {
            struct pollfd p = {.fd = s->fd, .events = writes ? POLLOUT : POLLIN};
            const int64_t left = deadline - stream_now();
            const int ready = poll(&p, 1, left > 0 ? (int)(left < INT32_MAX ? left : INT32_MAX) : 0);

            FAIL_IF(ready < 0 && errno != EINTR, e, PROFD_IO, "poll: %s", strerror(errno));
            FAIL_IF(!ready, e, PROFD_TIMEOUT, "no answer within the time allowed");
        } else {
            return profd_error_set(e, PROFD_UNAVAILABLE, "%s", done ? strerror(errno) : "the connection was closed");
        }
    }
    return PROFD_OK;
}

void stream_close(struct stream *s)
{
    whole_close(s->fd);
    *s = (struct stream){.fd = -1};
}

#define MESSAGE_MS 60000 /* for one message after its first byte; sending may take longer, see LIMIT_FRAME_RATE */
#define ANSWER_MS 60000  /* for an answer to begin */

enum profd_status talk_send(struct stream *s, const struct message *m, uint32_t tag, struct profd_error *e)
{
    uint8_t *frame;
    size_t n;
    enum profd_status status = message_encode(m, 0, tag, &frame, &n, e);

    if (!status) {
        status = stream_move(s, true, frame, n, stream_now() + MESSAGE_MS + (int64_t)n * 1000 / LIMIT_FRAME_RATE, e);
        free(frame);
    }
    return status ? profd_error_wrap(e, status, "profd") : PROFD_OK;
}

/* Reads the body of a frame, and decompresses it. The caller frees *body. */
static enum profd_status talk_take_body(struct stream *s, const struct frame_header *f, int64_t deadline,
                                        uint8_t **body, size_t *n, struct profd_error *e)
{
    uint8_t *plain, *data = malloc((size_t)f->length + 1);
    enum profd_status status = data ? PROFD_OK : profd_no_memory(e);

    status = status ? status : stream_move(s, false, data, f->length, deadline, e);
    *n = f->length;
    if (!status && (f->flags & FRAME_FLAG_COMPRESSED)) {
        status = frame_inflate(data, f->length, LIMIT_FRAME_PAYLOAD, &plain, n, e);
        if (!status) {
            free(data);
            data = plain;
        }
    }
    if (status) {
        free(data);
        return status;
    }
    *body = data;
    return PROFD_OK;
}

enum profd_status talk_take(struct stream *s, int64_t wait_ms, struct message *m, uint16_t *flags,
                            struct profd_error *e)
{
    uint8_t head[FRAME_HEADER_SIZE], *body = NULL;
    struct frame_header f = {.flags = 0};
    size_t n;
    enum profd_status status = stream_move(s, false, head, 1, stream_now() + wait_ms, e);
    const int64_t deadline = stream_now() + MESSAGE_MS;

    status = status ? status : stream_move(s, false, head + 1, sizeof head - 1, deadline, e);
    status = status ? status : frame_decode(head, &f, e);
    if (!status && f.length > LIMIT_FRAME_PAYLOAD) {
        status = profd_error_set(e, PROFD_TOO_LARGE, "profd sent a message of %u bytes; at most %u are expected",
                                 f.length, LIMIT_FRAME_PAYLOAD);
    }
    if (!status && frame_fds(&f)) {
        status = profd_error_set(e, PROFD_PROTOCOL, "profd sent a message with unexpected descriptors");
    }
    status = status ? status : talk_take_body(s, &f, deadline, &body, &n, e);
    if (!status) {
        status = message_decode(f.type, body, n, m, e);
        free(body);
        *flags = f.flags;
    }
    return status ? profd_error_wrap(e, status, "profd") : PROFD_OK;
}

enum profd_status talk_explain_nack(const struct message *nack, struct profd_error *e)
{
    const struct message_nack *n = &nack->as.nack;
    const bool known = profd_status_known(n->status) && n->status != PROFD_OK;

    return profd_error_set(e, known ? (enum profd_status)n->status : PROFD_INTERNAL, "profd: %s", n->sentence);
}

enum profd_status talk_ask(struct stream *s, const struct message *request, unsigned expected, struct message *answer,
                           struct profd_error *e)
{
    uint16_t flags;
    enum profd_status status = talk_send(s, request, 1, e);

    status = status ? status : talk_take(s, ANSWER_MS, answer, &flags, e);
    if (status || answer->type == expected) {
        return status;
    }
    if (answer->type == FRAME_NACK) {
        status = talk_explain_nack(answer, e);
    } else {
        status = profd_error_set(e, PROFD_PROTOCOL, "profd answered %s with %s", frame_type_name(request->type),
                                 frame_type_name(answer->type));
    }
    message_done(answer);
    return status;
}

enum profd_status talk_query(struct stream *s, const char *target, size_t most, long *http_status, uint8_t **out,
                             size_t *size, struct profd_error *e)
{
    const struct message query = {.type = FRAME_QUERY, .as.query = {target, ""}};
    uint8_t *bytes = NULL;
    size_t n = 0;
    uint16_t flags = 0;
    enum profd_status status = talk_send(s, &query, 1, e);

    *http_status = 0;
    while (!status && !(flags & FRAME_FLAG_LAST)) {
        struct message m;

        status = talk_take(s, ANSWER_MS, &m, &flags, e);
        if (status) {
            break;
        }
        const struct message_bytes *piece = &m.as.reply.body;

        if (m.type == FRAME_NACK) {
            status = talk_explain_nack(&m, e);
        } else if (m.type != FRAME_REPLY) {
            status = profd_error_set(e, PROFD_PROTOCOL, "profd answered QUERY with %s", frame_type_name(m.type));
        } else if (piece->size > most - n) {
            status =
                profd_error_set(e, PROFD_TOO_LARGE, "profd: the answer to %s has more than %zu bytes", target, most);
        } else {
            uint8_t *longer = realloc(bytes, n + piece->size + 1);

            *http_status = *http_status ? *http_status : (long)m.as.reply.http_status;
            if (longer) {
                bytes = longer;
                memcpy(bytes + n, piece->size ? piece->data : bytes, piece->size);
                n += piece->size;
            } else {
                status = profd_no_memory(e);
            }
        }
        message_done(&m);
    }
    if (status) {
        free(bytes);
        return status;
    }
    *out = bytes;
    *size = n;
    return PROFD_OK;
}

enum profd_status talk_greet(struct stream *s, struct profd_error *e)
{
    const struct message hello = {.type = FRAME_HELLO,
                                  .as.hello = {FRAME_VERSION, FRAME_VERSION, "profd-relay " PROFD_VERSION}};
    struct message welcome;
    enum profd_status status = talk_ask(s, &hello, FRAME_WELCOME, &welcome, e);
    if (status) {
        return status;
    }
    if (welcome.as.welcome.version != FRAME_VERSION) {
        status = profd_error_set(e, PROFD_UNKNOWN_VERSION,
                                 "profd chose version %u of the protocol; profd-relay speaks version %d",
                                 welcome.as.welcome.version, FRAME_VERSION);
    }
    message_done(&welcome);
    return status;
}
