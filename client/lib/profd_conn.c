/* Opening and closing a connection, and moving its bytes. */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "lib/client.h"
#include "lib/executable.h"
#include "proto/limits.h"
#include "proto/whole.h"

#define CONNECT_MS 200
#define ANSWER_MS 10000

int64_t conn_clock(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

enum profd_status conn_address(const struct profd_options *o, struct address *out, struct profd_error *e)
{
    return o && o->server ? address_parse(o->server, out, e) : address_default(out, e);
}

/* If the daemon's backlog is full, a nonblocking connect fails immediately, and poll does not report free space. A
 * blocking connect waits in the kernel, in the order of arrival, for at most SO_SNDTIMEO. */
static enum profd_status dial(const struct address *a, int64_t deadline, int fd, struct profd_error *e)
{
    for (;;) {
        int64_t left = deadline - conn_clock();
        left = left < 1 ? 1 : left;
        const struct timeval limit = {.tv_sec = (time_t)(left / 1000), .tv_usec = (suseconds_t)(left % 1000) * 1000};
        FAIL_IF(setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &limit, sizeof limit) != 0, e, PROFD_IO,
                "cannot set the time limit of a socket: %s", strerror(errno));
        if (connect(fd, (const struct sockaddr *)&a->socket, a->size) == 0) {
            break;
        }
        if (errno != EAGAIN && errno != EINTR) {
            FAIL_IF(errno == EACCES || errno == EPERM, e, PROFD_FORBIDDEN, "no permission to connect to %s: %s",
                    a->text, strerror(errno));
            return profd_error_set(e, PROFD_UNAVAILABLE,
                                   "no daemon at %s (%s); start one with `profd`, or give its socket with --socket or "
                                   "PROFD_SOCKET",
                                   a->text, strerror(errno));
        }
        FAIL_IF(conn_clock() >= deadline, e, PROFD_TIMEOUT,
                "the daemon at %s is busy: it accepted no connection in time; try again later", a->text);
    }
    FAIL_IF(fcntl(fd, F_SETFL, O_NONBLOCK) != 0, e, PROFD_IO, "cannot make the socket nonblocking: %s",
            strerror(errno));
    return address_check_peer(fd, a, e);
}

static enum profd_status token_read(struct profd_conn *c, const char *path, struct profd_error *e)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);
    struct stat st = {.st_mode = 0};
    ssize_t n = fd < 0 || fstat(fd, &st) != 0 ? -1 : read(fd, c->token, sizeof c->token);
    int why = errno;
    whole_close(fd);
    FAIL_IF(st.st_mode & (S_IROTH | S_IWOTH), e, PROFD_CONFIG,
            "every user may read or write the token in %s (mode %03o): chmod o= %s", path,
            (unsigned)(st.st_mode & 0777), path);
    FAIL_IF(n < 0, e, PROFD_NO_INPUT, "cannot read the token in %s: %s", path, strerror(why));
    FAIL_IF((size_t)n == sizeof c->token, e, PROFD_CONFIG, "the token in %s has more than %zu bytes", path,
            sizeof c->token - 1);
    while (n > 0 && (c->token[n - 1] == '\n' || c->token[n - 1] == '\r' || c->token[n - 1] == ' ')) {
        n--;
    }
    c->token[n] = '\0';
    for (ssize_t i = 0; i < n; i++) {
        FAIL_IF(c->token[i] <= ' ' || c->token[i] > '~', e, PROFD_CONFIG,
                "the token in %s contains a byte that is not printable ASCII", path);
    }
    return n > 0 ? PROFD_OK : profd_error_set(e, PROFD_CONFIG, "%s contains no token", path);
}

static enum profd_status unix_open(struct profd_conn *c, const char *name, struct profd_error *e)
{
    int64_t deadline = conn_clock() + c->connect_ms;
    c->fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    enum profd_status status = c->fd >= 0 ? dial(&c->address, deadline, c->fd, e)
                                          : profd_error_set(e, PROFD_IO, "cannot create a socket: %s", strerror(errno));
    status = status ? status : profd_client_new(name, &c->client, e);
    struct profd_event event;
    bool got = false;
    status = status ? status : conn_step(c, deadline, &event, &got, e);
    if (status == PROFD_OK && !got) {
        status = profd_error_set(e, PROFD_TIMEOUT, "the daemon at %s does not answer", c->address.text);
    }
    if (status == PROFD_OK) { /* the client lets nothing in before WELCOME */
        (void)snprintf(c->daemon, sizeof c->daemon, "%s", event.name);
    }
    return status;
}

enum profd_status profd_conn_open(const struct profd_options *o, struct profd_conn **out, struct profd_error *e)
{
    struct profd_conn *c = calloc(1, sizeof *c);
    FAIL_IF(!c, e, PROFD_NO_MEMORY, "no memory for a connection");
    c->fd = -1;
    c->connect_ms = o && o->connect_ms ? o->connect_ms : CONNECT_MS;
    c->answer_ms = o && o->answer_ms ? o->answer_ms : ANSWER_MS;
    enum profd_status status = conn_address(o, &c->address, e);
    if (o) {
        c->http = o->http;
        c->http_context = o->http_context;
    }
    if (status == PROFD_OK && c->address.http && !c->http) {
        status = profd_error_set(e, PROFD_USAGE, "%s: this program has no function for HTTP", c->address.text);
    } else if (status == PROFD_OK && c->address.http) {
        status = o && o->token_file ? token_read(c, o->token_file, e) : PROFD_OK;
    } else if (!status) {
        status = unix_open(c, o ? o->name : NULL, e);
    }
    if (status != PROFD_OK) {
        profd_conn_close(c);
        return status;
    }
    *out = c;
    return PROFD_OK;
}

void profd_conn_close(struct profd_conn *c)
{
    if (!c) {
        return;
    }
    profd_client_free(c->client);
    whole_close(c->fd);
    for (size_t i = 0; i < c->offer_count; i++) {
        free(c->offers[i].path);
        free(c->offers[i].build_id);
    }
    free(c->offers);
    c->refused = NULL;
    conn_give_up_executables(c, PROFD_UNAVAILABLE, "");
    free(c->sent);
    explicit_bzero(c->token, sizeof c->token);
    free(c);
}

const char *profd_conn_daemon(const struct profd_conn *c)
{
    return c->daemon;
}

void profd_conn_get_refused(const struct profd_conn *c, uint64_t *run, uint64_t *refused)
{
    *run = c->client ? c->client->run : 0;
    *refused = c->client ? c->client->refused : 0;
}

void profd_conn_set_sink(struct profd_conn *c, profd_outcome_sink sink, void *context)
{
    c->refused = sink;
    c->refused_context = context;
}

uint32_t profd_conn_set_answer_ms(struct profd_conn *c, uint32_t answer_ms)
{
    uint32_t before = c->answer_ms;
    c->answer_ms = answer_ms ? answer_ms : ANSWER_MS;
    return before;
}

const char *profd_conn_server(const struct profd_conn *c)
{
    return c->address.text;
}

/* Sends as much as the socket takes. A broken pipe is not yet the end: the daemon's reason may wait to be read. */
static enum profd_status bytes_out(struct profd_conn *c, struct profd_error *e)
{
    while (!c->send_broken) {
        const void *bytes;
        size_t n, fd_count;
        int fds[2];
        profd_client_output(c->client, &bytes, &n, fds, &fd_count);
        if (n == 0) {
            return PROFD_OK;
        }
        union {
            struct cmsghdr align;
            char space[CMSG_SPACE(sizeof fds)];
        } control = {.space = {0}};
        struct iovec piece = {.iov_base = (void *)(uintptr_t)bytes, .iov_len = n};
        struct msghdr m = {.msg_iov = &piece, .msg_iovlen = 1};
        if (fd_count > 0) {
            m.msg_control = control.space;
            m.msg_controllen = CMSG_SPACE(fd_count * sizeof fds[0]);
            struct cmsghdr *h = CMSG_FIRSTHDR(&m);
            *h = (struct cmsghdr){
                .cmsg_level = SOL_SOCKET, .cmsg_type = SCM_RIGHTS, .cmsg_len = CMSG_LEN(fd_count * sizeof fds[0])};
            memcpy(CMSG_DATA(h), fds, fd_count * sizeof fds[0]);
        }
        ssize_t sent = sendmsg(c->fd, &m, MSG_NOSIGNAL | MSG_DONTWAIT);
        if (sent > 0) {
            profd_client_sent(c->client, (size_t)sent);
            c->progress = conn_clock();
        } else if (errno == EAGAIN) {
            return PROFD_OK;
        } else if (errno == EPIPE || errno == ECONNRESET) {
            c->send_broken = true;
        } else if (errno != EINTR) {
            return profd_error_set(e, PROFD_IO, "cannot send to %s: %s", c->address.text, strerror(errno));
        }
    }
    return PROFD_OK;
}

/* Reads once, without waiting. recv takes no descriptors: any the other side passes are closed by the kernel. */
static enum profd_status bytes_in(struct profd_conn *c, struct profd_error *e)
{
    ssize_t n = recv(c->fd, c->input, sizeof c->input, MSG_DONTWAIT);
    if (n > 0) {
        c->progress = conn_clock();
        return profd_client_feed(c->client, c->input, (size_t)n, e);
    }
    if (n < 0 && (errno == EAGAIN || errno == EINTR)) {
        return PROFD_OK;
    }
    return profd_error_set(e, PROFD_UNAVAILABLE, "the daemon at %s closed the connection%s%s", c->address.text,
                           n < 0 ? ": " : "", n < 0 ? strerror(errno) : "");
}

/* Space for one more executable that waits for its answer. */
static enum profd_status sent_reserve(struct profd_conn *c, const char *path, struct profd_error *e)
{
    const bool grown = LIST_GROW(c->sent, c->sent_count, c->sent_capacity);
    if (grown) {
        c->sent[c->sent_count] = (struct conn_sent){.path = strdup(path)};
    }
    return grown && c->sent[c->sent_count].path ? PROFD_OK
                                                : profd_error_set(e, PROFD_NO_MEMORY, "no memory to send %s", path);
}

/* The place that sent_reserve took is in use if the executable was queued. */
static enum profd_status sent_settle_queued(struct profd_conn *c, enum profd_status status)
{
    if (status == PROFD_OK) {
        c->sent_count++;
    } else {
        free(c->sent[c->sent_count].path);
    }
    return status;
}

enum profd_status conn_send_executable(struct profd_conn *c, const struct profd_event *want,
                                       const struct profd_executable *x, bool earlier, struct profd_error *e)
{
    TRY(sent_reserve(c, profd_executable_path(x), e));
    c->sent[c->sent_count].earlier = earlier;
    return sent_settle_queued(c, profd_client_send_object(c->client, want, x, &c->sent[c->sent_count].tag, e));
}

/* Takes one out of the list; a status other than OK goes to the sink. */
static void sent_settle(struct profd_conn *c, size_t i, enum profd_status status, const char *sentence)
{
    struct conn_sent s = c->sent[i];
    c->sent[i] = c->sent[--c->sent_count];
    if (status != PROFD_OK && c->refused) {
        const struct profd_outcome o = {
            .name = s.path, .status = status, .earlier = s.earlier, .executable = true, .sentence = sentence};
        c->refused(c->refused_context, &o);
    }
    free(s.path);
}

void conn_give_up_executables(struct profd_conn *c, enum profd_status status, const char *sentence)
{
    while (c->sent_count > 0) {
        sent_settle(c, 0, status, sentence);
    }
}

/* Answers the daemon's question for an executable: with an offer, a file of the supplier, or a refusal. */
static enum profd_status want_answer(struct profd_conn *c, const struct profd_event *want, struct profd_error *e)
{
    const char *reason = "this client does not offer that executable";
    for (size_t i = 0; i < c->offer_count; i++) {
        const struct conn_offer *o = &c->offers[i];
        if (o->executable && strcmp(profd_executable_build_id(o->executable), want->build_id) == 0) {
            return conn_send_executable(c, want, o->executable, false, e);
        }
        if (o->executable || strcmp(o->build_id, want->build_id) != 0) {
            continue;
        }
        struct profd_executable *x;
        if (profd_executable_open(o->path, &x, NULL) != PROFD_OK) {
            reason = "the executable is gone";
            continue;
        }
        bool same = strcmp(profd_executable_build_id(x), want->build_id) == 0;
        enum profd_status status = same ? conn_send_executable(c, want, x, true, e) : PROFD_OK;
        profd_executable_free(x);
        if (same) {
            return status;
        }
        reason = "the executable was replaced by another build";
    }
    struct conn_file file;
    if (!c->supply || !c->supply(c->supply_context, want->build_id, &file)) {
        return profd_client_send_decline(c->client, want, reason, e);
    }
    enum profd_status status = sent_reserve(c, file.name, e);
    if (status != PROFD_OK) {
        close(file.fd);
        return status;
    }
    const struct message_object m = {.name = file.name, .claimed = file.claimed, .uid = file.uid};
    return sent_settle_queued(c, client_send_files(c->client, want, &m, &file.fd, 1, &c->sent[c->sent_count].tag, e));
}

enum profd_status conn_step(struct profd_conn *c, int64_t deadline, struct profd_event *event, bool *got,
                            struct profd_error *e)
{
    for (;;) {
        struct profd_event next;
        while (profd_client_next(c->client, &next)) {
            enum profd_status status = PROFD_OK;
            if (next.kind == PROFD_EVENT_WANT_OBJECT) {
                status = want_answer(c, &next, e);
            } else if (next.kind == PROFD_EVENT_CLOSED) {
                status = profd_error_set(e, next.status, "%s", next.sentence);
            } else {
                /* The answer may be one to an executable, while the caller waits for something else. */
                size_t i = 0;
                while (i < c->sent_count && c->sent[i].tag != next.tag) {
                    i++;
                }
                if (i < c->sent_count && (next.kind == PROFD_EVENT_ACK || next.kind == PROFD_EVENT_NACK)) {
                    sent_settle(c, i, next.kind == PROFD_EVENT_ACK ? PROFD_OK : next.status, next.sentence);
                }
                *event = next;
                *got = true;
                return PROFD_OK;
            }
            TRY(status);
        }
        TRY(bytes_out(c, e));
        const void *bytes;
        size_t n, fd_count;
        int fds[2];
        profd_client_output(c->client, &bytes, &n, fds, &fd_count);
        struct pollfd p = {.fd = c->fd, .events = (short)(n && !c->send_broken ? POLLIN | POLLOUT : POLLIN)};
        int64_t left = deadline - conn_clock();
        int ready = poll(&p, 1, left > 0 ? (int)(left < 60000 ? left : 60000) : 0);
        if (ready > 0 && (p.revents & (POLLIN | POLLHUP | POLLERR))) {
            TRY(bytes_in(c, e));
        } else if (ready <= 0 && left <= 0) {
            *got = false;
            return PROFD_OK;
        }
    }
}

/* Requests over a connection that wait for their answer. */

enum profd_status conn_wait(struct profd_conn *c, struct profd_event *event, struct profd_error *e)
{
    c->progress = conn_clock();
    for (;;) {
        bool got = false;
        enum profd_status status = conn_step(c, c->progress + c->answer_ms, event, &got, e);
        if (status != PROFD_OK || got) {
            return status;
        }
        FAIL_IF(conn_clock() >= c->progress + c->answer_ms, e, PROFD_TIMEOUT,
                "the daemon at %s did not answer within %u ms", c->address.text, c->answer_ms);
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
        FAIL_IF(conn_clock() > deadline, e, PROFD_TIMEOUT, "the daemon at %s reads no more data", c->address.text);
    }
    return PROFD_OK;
}

static struct conn_offer *offer_new(struct profd_conn *c)
{
    if (!LIST_GROW(c->offers, c->offer_count, c->offer_capacity)) {
        return NULL;
    }
    c->offers[c->offer_count] = (struct conn_offer){.executable = NULL};
    return &c->offers[c->offer_count];
}

enum profd_status profd_conn_offer(struct profd_conn *c, const struct profd_executable *x, struct profd_error *e)
{
    struct conn_offer *o = offer_new(c);
    FAIL_IF(!o, e, PROFD_NO_MEMORY, "no memory to offer %s", profd_executable_path(x));
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

/* Waits for the next answer to the request with this tag. Answers to others were not waited for and are dropped. A NACK
 * becomes the status. */
static enum profd_status answer_wait(struct profd_conn *c, uint32_t tag, struct profd_event *event,
                                     struct profd_error *e)
{
    do {
        TRY(conn_wait(c, event, e));
    } while (event->tag != tag);
    return event->kind == PROFD_EVENT_NACK ? profd_error_set(e, event->status, "%s", event->sentence) : PROFD_OK;
}

enum profd_status profd_conn_sync(struct profd_conn *c, uint32_t wait_ms, struct profd_error *e)
{
    uint32_t tag = 0;
    int64_t deadline = conn_clock() + wait_ms;
    struct profd_event event;
    bool got = false;
    TRY(unix_only(c, e));
    TRY(profd_client_send_sync(c->client, &tag, e));
    do {
        TRY(conn_step(c, deadline, &event, &got, e));
        FAIL_IF(!got, e, PROFD_TIMEOUT, "the daemon at %s did not confirm within %u ms that everything is stored",
                c->address.text, wait_ms);
    } while (event.tag != tag);
    return event.kind == PROFD_EVENT_NACK ? profd_error_set(e, event.status, "%s", event.sentence) : PROFD_OK;
}

enum profd_status profd_conn_upload(struct profd_conn *c, const struct profd_upload *u, const struct profd_id *id,
                                    struct profd_error *e)
{
    struct profd_event event;
    uint32_t tag = 0;
    TRY(unix_only(c, e));
    TRY(profd_client_send_upload(c->client, u, id, &tag, e));
    TRY(answer_wait(c, tag, &event, e));
    return profd_conn_flush(c, e); /* executables that were asked for before the ACK */
}

enum profd_status profd_conn_send_executable(struct profd_conn *c, const struct profd_executable *x,
                                             struct profd_error *e)
{
    struct profd_event event;
    uint32_t tag = 0;
    TRY(unix_only(c, e));
    TRY(profd_client_send_object(c->client, NULL, x, &tag, e));
    TRY(answer_wait(c, tag, &event, e));
    return profd_conn_flush(c, e); /* executables that were asked for before the ACK */
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
    struct profd_event event;
    do {
        TRY(answer_wait(c, tag, &event, e));
        if (answer.http_status == 0) {
            answer.http_status = event.http_status;
            (void)snprintf(answer.content_type, sizeof answer.content_type, "%s", event.content_type);
            (void)snprintf(answer.etag, sizeof answer.etag, "%s", event.etag);
        }
        answer.done = event.done;
        answer.total = event.total;
        TRY(sink(context, &answer, event.body, event.body_size, e));
    } while (!event.last);
    return PROFD_OK;
}

enum profd_status profd_admin(struct profd_conn *c, const char *verb, const char *const *arguments, size_t n,
                              profd_sink sink, void *context, struct profd_error *e)
{
    uint32_t tag = 0;
    FAIL_IF(!c->client, e, PROFD_USAGE, "%s answers queries only; %s goes to a Unix socket", c->address.text, verb);
    TRY(profd_client_send_admin(c->client, verb, arguments, n, &tag, e));
    return reply_take(c, tag, sink, context, e);
}

/* By the function of the options. */
static enum profd_status http_call(struct profd_conn *c, const char *target, const char *if_none_match, int body,
                                   uint64_t size, profd_sink sink, void *context, struct profd_error *e)
{
    char url[LIMIT_QUERY_BYTES + sizeof c->address.text];
    const int n = snprintf(url, sizeof url, "%s%s", c->address.text, target);
    FAIL_IF(n < 0 || (size_t)n >= sizeof url || strpbrk(target, " \r\n") != NULL, e, PROFD_BAD_QUERY,
            "a query is at most %u bytes without spaces", LIMIT_QUERY_BYTES);
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
    FAIL_IF(c->client || !c->http, e, PROFD_USAGE, "%s takes no PUT: that is for http and https servers",
            c->address.text);
    enum profd_status status = PROFD_OK;
    TRY(executable_dup_fds(x, fds, &count, e));
    const bool code = x->code; /* a debug file has none */
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

enum profd_status profd_query(struct profd_conn *c, const char *target, const char *if_none_match, profd_sink sink,
                              void *context, struct profd_error *e)
{
    uint32_t tag = 0;
    if (!c->client) {
        return http_call(c, target, if_none_match, -1, 0, sink, context, e);
    }
    TRY(profd_client_send_query(c->client, target, if_none_match, &tag, e));
    return reply_take(c, tag, sink, context, e);
}
