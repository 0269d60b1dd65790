#include "signer/serve.h"

#include <errno.h>
#include <fcntl.h>
#include <pwd.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <sys/un.h>
#include <unistd.h>

#include "log/log.h"
#include "proto/frame.h"
#include "proto/message.h"
#include "signer/authority.h"

#define PASSED 3
#define REQUEST_MAX 8192u
#define PEER_SECONDS 2
#define BACKLOG 64

enum profd_status serve_listen(const char *path, int *fd, struct profd_error *e)
{
    const char *pid = getenv("LISTEN_PID"), *count = getenv("LISTEN_FDS");
    struct sockaddr_un a = {.sun_family = AF_UNIX};
    int family = 0;
    socklen_t size = sizeof family;
    char own[24];

    snprintf(own, sizeof own, "%ld", (long)getpid());
    if (pid && count && !strcmp(pid, own)) {
        *fd = PASSED;
        return strcmp(count, "1") != 0 || getsockopt(PASSED, SOL_SOCKET, SO_DOMAIN, &family, &size) || family != AF_UNIX
                   ? profd_error_set(e, PROFD_CONFIG, "what was passed in is not one Unix socket")
                   : PROFD_OK;
    }
    if (!path || strlen(path) >= sizeof a.sun_path) {
        return profd_error_set(e, PROFD_CONFIG,
                               "no socket was passed in, and --socket names no path of at most %zu bytes",
                               sizeof a.sun_path - 1);
    }
    memcpy(a.sun_path, path, strlen(path) + 1);
    unlink(path);
    *fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    umask(0177);
    if (*fd < 0 || bind(*fd, (const struct sockaddr *)&a, sizeof a) || listen(*fd, BACKLOG)) {
        return profd_error_set(e, PROFD_CANT_CREATE, "cannot listen on %s: %s", path, strerror(errno));
    }
    return PROFD_OK;
}

static bool serve_transfer(int fd, void *data, size_t n, bool out)
{
    uint8_t *at = data;

    while (n > 0) {
        const ssize_t got = out ? send(fd, at, n, MSG_NOSIGNAL) : recv(fd, at, n, 0);

        if (got <= 0) {
            return false;
        }
        at += got;
        n -= (size_t)got;
    }
    return true;
}

/* Is the peer a user that may have certificates signed? */
static enum profd_status serve_check_peer(int fd, struct profd_error *e)
{
    struct ucred peer = {.uid = UINT32_MAX};
    socklen_t size = sizeof peer;
    const struct passwd *service = getpwnam("profd");

    if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &size)) {
        return profd_error_set(e, PROFD_IO, "SO_PEERCRED: %s", strerror(errno));
    }
    return !peer.uid || peer.uid == geteuid() || (service && service->pw_uid == peer.uid)
               ? PROFD_OK
               : profd_error_set(e, PROFD_FORBIDDEN,
                                 "user %u may not have certificates signed; only root, profd and user %u may", peer.uid,
                                 geteuid());
}

static enum profd_status serve_take(int fd, struct message *request, uint32_t *tag, struct profd_error *e)
{
    uint8_t head[FRAME_HEADER_SIZE], body[REQUEST_MAX];
    struct frame f;
    enum profd_status status;

    if (!serve_transfer(fd, head, sizeof head, false)) {
        return profd_error_set(e, PROFD_UNAVAILABLE, "no request came");
    }
    status = frame_decode(head, &f, e);
    *tag = f.tag;
    if (!status && (f.type != FRAME_SIGN || f.flags)) {
        status = profd_error_set(e, PROFD_PROTOCOL, "the signer answers only SIGN");
    }
    if (!status && f.length > sizeof body) {
        status = profd_error_set(e, PROFD_TOO_LARGE, "a request of %u bytes, at most %u", f.length, REQUEST_MAX);
    }
    if (!status && !serve_transfer(fd, body, f.length, false)) {
        status = profd_error_set(e, PROFD_UNAVAILABLE, "the request ended early");
    }
    return status ? status : message_decode(f.type, body, f.length, request, e);
}

static void serve_send(int fd, const struct message *m, uint32_t tag)
{
    uint8_t *bytes;
    size_t n;

    if (!message_encode(m, 0, tag, &bytes, &n, NULL)) {
        (void)serve_transfer(fd, bytes, n, true);
        free(bytes);
    }
}

/* Signs, and answers. */
static enum profd_status serve_sign(int fd, const char *directory, const struct message_sign *request, uint32_t tag,
                                    struct profd_error *e)
{
    struct message answer = {.type = FRAME_ISSUED};
    struct authority a;
    char *certificate = NULL;
    size_t size = 0;
    enum profd_status status = authority_open(directory, &a, e);

    if (status) {
        return status;
    }
    if (request->key.size) {
        status = authority_sign(&a, request, &certificate, &size, &answer.as.issued.not_after, e);
    }
    if (!status) {
        answer.as.issued.certificate = (struct message_bytes){(const uint8_t *)certificate, size};
        answer.as.issued.ca = (struct message_bytes){(const uint8_t *)a.bundle, a.bundle_size};
        answer.as.issued.pin = (struct message_bytes){a.pin, sizeof a.pin};
        serve_send(fd, &answer, tag);
    }
    if (!status && request->key.size) {
        log_write(LOG_LEVEL_NOTICE, NULL, "signed a certificate of host %s, tenant %s", request->name, request->tenant);
    }
    free(certificate);
    authority_close(&a);
    return status;
}

static void serve_one(int fd, const char *directory)
{
    const struct timeval limit = {PEER_SECONDS, 0};
    struct message request = {.block = NULL};
    struct profd_error e = {""};
    uint32_t tag = 0;
    enum profd_status status = serve_check_peer(fd, &e);

    (void)setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit);
    (void)setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &limit, sizeof limit);
    if (!status) {
        status = serve_take(fd, &request, &tag, &e);
    }
    if (!status) {
        status = serve_sign(fd, directory, &request.as.sign, tag, &e);
        message_done(&request);
    }
    if (status) {
        log_write(LOG_LEVEL_WARNING, "refused", "%s", e.sentence);
        serve_send(fd, &(struct message){.type = FRAME_NACK, .as.nack = {(uint32_t)status, false, 0, e.sentence}}, tag);
    }
}

enum profd_status serve_run(int listener, const char *directory, struct profd_error *e)
{
    for (;;) {
        const int fd = accept4(listener, NULL, NULL, SOCK_CLOEXEC);

        if (fd >= 0) {
            serve_one(fd, directory);
            close(fd);
        } else if (errno != EINTR && errno != ECONNABORTED) {
            return profd_error_set(e, PROFD_IO, "accept: %s", strerror(errno));
        }
        log_flush();
    }
}
