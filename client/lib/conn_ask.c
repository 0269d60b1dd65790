/* Requests over a connection that wait for their answer. */
#include "lib/conn.h"

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "lib/executable.h"
#include "lib/http_reply.h"
#include "proto/limits.h"

enum profd_status conn_wait(struct profd_conn *c, struct profd_event *event, struct profd_error *e)
{
    c->progress = conn_clock();
    for (;;) {
        bool got = false;
        enum profd_status status = conn_step(c, c->progress + c->answer_ms, event, &got, e);
        if (status != PROFD_OK || got) {
            return status;
        }
        if (conn_clock() >= c->progress + c->answer_ms) {
            return profd_error_set(e, PROFD_TIMEOUT, "the daemon at %s did not answer within %u ms", c->address.text,
                                   c->answer_ms);
        }
    }
}

static enum profd_status unix_only(const struct profd_conn *c, struct profd_error *e)
{
    return c->client ? PROFD_OK
                     : profd_error_set(e, PROFD_USAGE, "%s answers queries only; uploads go to a Unix socket",
                                       c->address.text);
}

enum profd_status profd_conn_flush(struct profd_conn *c, struct profd_error *e)
{
    int64_t deadline = conn_clock() + c->answer_ms;
    TRY(unix_only(c, e));
    while (client_queued(c->client) > 0) {
        struct profd_event event;
        bool got = false;
        TRY(conn_step(c, conn_clock() + 5, &event, &got, e));
        if (conn_clock() > deadline) {
            return profd_error_set(e, PROFD_TIMEOUT, "the daemon at %s reads no more data", c->address.text);
        }
    }
    return PROFD_OK;
}

static struct conn_offer *offer_new(struct profd_conn *c)
{
    if (c->offer_count == c->offer_capacity) {
        size_t capacity = c->offer_capacity ? 2 * c->offer_capacity : 8;
        struct conn_offer *grown = realloc(c->offers, capacity * sizeof *grown);
        if (!grown) {
            return NULL;
        }
        c->offers = grown;
        c->offer_capacity = capacity;
    }
    c->offers[c->offer_count] = (struct conn_offer){.executable = NULL};
    return &c->offers[c->offer_count];
}

enum profd_status profd_conn_offer(struct profd_conn *c, const struct profd_executable *x, struct profd_error *e)
{
    struct conn_offer *o = offer_new(c);
    if (!o) {
        return profd_error_set(e, PROFD_NO_MEMORY, "no memory to offer %s", profd_executable_path(x));
    }
    o->executable = x;
    c->offer_count++;
    return PROFD_OK;
}

enum profd_status conn_offer_path(struct profd_conn *c, const char *build_id, const char *path, struct profd_error *e)
{
    for (size_t i = 0; i < c->offer_count; i++) {
        const struct conn_offer *o = &c->offers[i];
        if (!o->executable && strcmp(o->build_id, build_id) == 0 && strcmp(o->path, path) == 0) {
            return PROFD_OK;
        }
    }
    struct conn_offer *o = offer_new(c);
    char *id = strdup(build_id), *copy = strdup(path);
    if (!o || !id || !copy) {
        free(id);
        free(copy);
        return profd_error_set(e, PROFD_NO_MEMORY, "no memory to offer %s", path);
    }
    o->build_id = id;
    o->path = copy;
    c->offer_count++;
    return PROFD_OK;
}

/* Waits for the ACK or NACK of a request, if it was sent; answers to others were not waited for and are dropped. */
static enum profd_status verdict_wait(struct profd_conn *c, enum profd_status sent, const uint32_t *tag,
                                      struct profd_error *e)
{
    for (enum profd_status status = sent;;) {
        struct profd_event event;
        status = status == PROFD_OK ? conn_wait(c, &event, e) : status;
        if (status != PROFD_OK) {
            return status;
        }
        if (event.tag == *tag && event.kind == PROFD_EVENT_ACK) {
            return profd_conn_flush(c, e); /* executables that were asked for before the ACK */
        }
        if (event.tag == *tag && event.kind == PROFD_EVENT_NACK) {
            return profd_error_set(e, event.status, "%s", event.sentence);
        }
    }
}

enum profd_status profd_conn_sync(struct profd_conn *c, uint32_t wait_ms, struct profd_error *e)
{
    uint32_t tag = 0;
    int64_t deadline = conn_clock() + wait_ms;
    enum profd_status status = unix_only(c, e);
    if (status == PROFD_OK) {
        status = profd_client_send_sync(c->client, &tag, e);
    }
    while (status == PROFD_OK) {
        struct profd_event event;
        bool got = false;
        status = conn_step(c, deadline, &event, &got, e);
        if (status == PROFD_OK && !got) {
            return profd_error_set(e, PROFD_TIMEOUT,
                                   "the daemon at %s did not confirm within %u ms that everything is stored",
                                   c->address.text, wait_ms);
        }
        bool ours = status == PROFD_OK && event.tag == tag;
        if (ours && event.kind == PROFD_EVENT_ACK) {
            return PROFD_OK;
        }
        if (ours && event.kind == PROFD_EVENT_NACK) {
            return profd_error_set(e, event.status, "%s", event.sentence);
        }
    }
    return status;
}

enum profd_status profd_conn_upload(struct profd_conn *c, const struct profd_upload *u, const struct profd_id *id,
                                    struct profd_error *e)
{
    uint32_t tag = 0;
    TRY(unix_only(c, e));
    return verdict_wait(c, profd_client_send_upload(c->client, u, id, &tag, e), &tag, e);
}

enum profd_status profd_conn_send_executable(struct profd_conn *c, const struct profd_executable *x,
                                             struct profd_error *e)
{
    uint32_t tag = 0;
    TRY(unix_only(c, e));
    return verdict_wait(c, profd_client_send_object(c->client, NULL, x, &tag, e), &tag, e);
}

enum profd_status profd_conn_queue_executable(struct profd_conn *c, const struct profd_executable *x,
                                              struct profd_error *e)
{
    TRY(unix_only(c, e));
    return conn_send_executable(c, NULL, x, false, e);
}

/* Gives the pieces of the answer to one tag to the sink, until the last or a NACK. */
static enum profd_status reply_take(struct profd_conn *c, uint32_t tag, profd_sink sink, void *context,
                                    struct profd_error *e)
{
    struct profd_answer answer = {.http_status = 0};
    enum profd_status status = PROFD_OK;
    while (status == PROFD_OK) {
        struct profd_event event;
        status = conn_wait(c, &event, e);
        if (status != PROFD_OK || event.tag != tag) {
            continue;
        }
        if (event.kind == PROFD_EVENT_NACK) {
            return profd_error_set(e, event.status, "%s", event.sentence);
        }
        if (answer.http_status == 0) {
            answer.http_status = event.http_status;
            (void)snprintf(answer.content_type, sizeof answer.content_type, "%s", event.content_type);
            (void)snprintf(answer.etag, sizeof answer.etag, "%s", event.etag);
        }
        answer.done = event.done;
        answer.total = event.total;
        status = sink(context, &answer, event.body, event.body_size, e);
        if (status == PROFD_OK && event.last) {
            return PROFD_OK;
        }
    }
    return status;
}

enum profd_status profd_query(struct profd_conn *c, const char *target, const char *if_none_match, profd_sink sink,
                              void *context, struct profd_error *e)
{
    uint32_t tag = 0;
    if (!c->client) {
        return conn_query_http(c, target, if_none_match, sink, context, e);
    }
    TRY(profd_client_send_query(c->client, target, if_none_match, &tag, e));
    return reply_take(c, tag, sink, context, e);
}

enum profd_status profd_admin(struct profd_conn *c, const char *verb, const char *const *arguments, size_t n,
                              profd_sink sink, void *context, struct profd_error *e)
{
    uint32_t tag = 0;
    enum profd_status status = PROFD_OK;
    if (!c->client) {
        return profd_error_set(e, PROFD_USAGE, "%s answers queries only; %s goes to a Unix socket", c->address.text,
                               verb);
    }
    status = profd_client_send_admin(c->client, verb, arguments, n, &tag, e);
    return status == PROFD_OK ? reply_take(c, tag, sink, context, e) : status;
}

/* One request, one connection: a report may take longer than an idle connection lives. */
static enum profd_status http_send(struct profd_conn *c, int fd, const char *target, const char *if_none_match,
                                   struct profd_error *e)
{
    char request[LIMIT_QUERY_BYTES + 2048];
    int n = snprintf(request, sizeof request,
                     "GET %s HTTP/1.1\r\nHost: %s\r\nConnection: close\r\nAccept: */*\r\n%s%s%s%s%s%s\r\n", target,
                     c->address.text + strlen("http://"), c->token[0] ? "Authorization: Bearer " : "", c->token,
                     c->token[0] ? "\r\n" : "", if_none_match ? "If-None-Match: " : "",
                     if_none_match ? if_none_match : "", if_none_match ? "\r\n" : "");
    if (n < 0 || (size_t)n >= sizeof request || strpbrk(target, " \r\n") != NULL) {
        return profd_error_set(e, PROFD_BAD_QUERY, "a query is at most %u bytes without spaces", LIMIT_QUERY_BYTES);
    }
    ssize_t sent = send(fd, request, (size_t)n, MSG_NOSIGNAL); /* a fresh socket's buffer holds this */
    explicit_bzero(request, sizeof request);
    return sent == n ? PROFD_OK : profd_error_set(e, PROFD_IO, "cannot send to %s", c->address.text);
}

/* By the function of the options. */
static enum profd_status http_call(struct profd_conn *c, const char *target, const char *if_none_match, int body,
                                   uint64_t size, profd_sink sink, void *context, struct profd_error *e)
{
    char url[LIMIT_QUERY_BYTES + sizeof c->address.text];
    const int n = snprintf(url, sizeof url, "%s%s", c->address.text, target);
    if (n < 0 || (size_t)n >= sizeof url || strpbrk(target, " \r\n") != NULL) {
        return profd_error_set(e, PROFD_BAD_QUERY, "a query is at most %u bytes without spaces", LIMIT_QUERY_BYTES);
    }
    const struct profd_http_request r = {.url = url,
                                         .token = c->token,
                                         .if_none_match = if_none_match,
                                         .body = body,
                                         .body_size = size,
                                         .connect_ms = c->connect_ms,
                                         .answer_ms = c->answer_ms};
    return c->http(c->http_context, &r, sink, context, e);
}

enum profd_status profd_put_executable(struct profd_conn *c, const struct profd_executable *x, profd_sink sink,
                                       void *context, struct profd_error *e)
{
    char target[BUILDID_TEXT_SIZE + 64];
    int fds[2];
    size_t count = 0;
    struct stat st;
    if (c->client || !c->http) {
        return profd_error_set(e, PROFD_USAGE, "%s takes no PUT: that is for http and https servers", c->address.text);
    }
    enum profd_status status = executable_dup_fds(x, fds, &count, e);
    if (status != PROFD_OK) {
        return status;
    }
    const bool code = executable_wants_code(x); /* a debug file has none */
    const int fd = fds[count > 1 && !code && !executable_has_own_names(x) ? 1 : 0];
    (void)snprintf(target, sizeof target, "/api/v1/builds/%s/symbols%s", profd_executable_build_id(x),
                   code ? "?code=1" : "");
    if (fstat(fd, &st) != 0 || lseek(fd, 0, SEEK_SET) != 0) {
        status = profd_error_set(e, PROFD_IO, "cannot read %s: %s", profd_executable_path(x), strerror(errno));
    } else {
        status = http_call(c, target, NULL, fd, (uint64_t)st.st_size, sink, context, e);
    }
    executable_close_fds(fds, count);
    return status;
}

enum profd_status conn_query_http(struct profd_conn *c, const char *target, const char *if_none_match, profd_sink sink,
                                  void *context, struct profd_error *e)
{
    int fd = -1;
    if (c->address.https) {
        return http_call(c, target, if_none_match, -1, 0, sink, context, e);
    }
    struct http_reply *reply = malloc(sizeof *reply);
    if (!reply) {
        return profd_error_set(e, PROFD_NO_MEMORY, "no memory for an answer");
    }
    http_reply_init(reply);
    enum profd_status status = conn_dial(&c->address, conn_clock() + c->connect_ms, &fd, e);
    if (status == PROFD_OK) {
        status = http_send(c, fd, target, if_none_match, e);
    }
    for (bool done = false; status == PROFD_OK && !done;) {
        struct pollfd p = {.fd = fd, .events = POLLIN};
        int ready = poll(&p, 1, (int)c->answer_ms);
        if (ready < 0 && errno == EINTR) {
            continue;
        }
        if (ready <= 0) {
            status = profd_error_set(e, PROFD_TIMEOUT, "%s did not answer within %u ms", c->address.text, c->answer_ms);
            break;
        }
        ssize_t n = recv(fd, c->input, sizeof c->input, 0);
        status = n > 0 ? http_reply_feed(reply, c->input, (size_t)n, sink, context, &done, e)
                       : profd_error_set(e, PROFD_UNAVAILABLE,
                                         "%s closed the connection before the answer was complete", c->address.text);
    }
    if (fd >= 0) {
        close(fd);
    }
    free(reply);
    return status;
}
