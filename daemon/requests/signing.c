#include "requests/signing.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/un.h>
#include <unistd.h>

#include "proto/frame.h"

#define ANSWER_MAX (1u << 20)
#define SIGNER_SECONDS 3

static enum profd_status cannot(const char *path, struct profd_error *e)
{
    return profd_error_set(e, PROFD_UNAVAILABLE, "profd-signer does not answer on %s: %s", path, strerror(errno));
}

static int signing_connect(const char *path)
{
    const struct timeval limit = {SIGNER_SECONDS, 0};
    struct sockaddr_un a = {.sun_family = AF_UNIX};
    const int fd = strlen(path) < sizeof a.sun_path ? socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0) : -1;

    if (fd < 0) {
        return -1;
    }
    memcpy(a.sun_path, path, strlen(path) + 1);
    (void)setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit);
    (void)setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &limit, sizeof limit);
    if (connect(fd, (const struct sockaddr *)&a, sizeof a)) {
        close(fd);
        return -1;
    }
    return fd;
}

static bool signing_take(int fd, uint8_t *to, size_t n)
{
    while (n > 0) {
        const ssize_t got = recv(fd, to, n, 0);

        if (got <= 0) {
            errno = got ? errno : ECONNRESET;
            return false;
        }
        to += got;
        n -= (size_t)got;
    }
    return true;
}

static enum profd_status signing_take_answer(int fd, const char *path, struct message *answer, struct profd_error *e)
{
    uint8_t head[FRAME_HEADER_SIZE], *body = NULL;
    struct frame f;
    enum profd_status status = signing_take(fd, head, sizeof head) ? frame_decode(head, &f, e) : cannot(path, e);

    if (!status && f.length > ANSWER_MAX) {
        status = profd_error_set(e, PROFD_TOO_LARGE, "an answer of profd-signer of %u bytes", f.length);
    }
    body = status ? NULL : malloc((size_t)f.length + 1);
    if (!status && !body) {
        status = profd_error_set(e, PROFD_NO_MEMORY, "no memory for a certificate");
    }
    if (!status && !signing_take(fd, body, f.length)) {
        status = cannot(path, e);
    }
    if (!status) {
        status = message_decode(f.type, body, f.length, answer, e);
    }
    free(body);
    if (status || answer->type == FRAME_ISSUED) {
        return status;
    }
    status = answer->type == FRAME_NACK ? profd_error_set(e, PROFD_CONFIG, "profd-signer: %s", answer->as.nack.sentence)
                                        : profd_error_set(e, PROFD_PROTOCOL, "profd-signer answered SIGN with %s",
                                                          frame_type_name(answer->type));
    message_done(answer);
    return status;
}

enum profd_status signing_ask(const char *path, const struct message_sign *request, struct message *answer,
                              struct profd_error *e)
{
    const struct message m = {.type = FRAME_SIGN, .as.sign = *request};
    uint8_t *bytes;
    size_t n;
    int fd;
    enum profd_status status = message_encode(&m, 0, 1, &bytes, &n, e);

    if (status) {
        return status;
    }
    fd = signing_connect(path);
    if (fd < 0 || send(fd, bytes, n, MSG_NOSIGNAL) != (ssize_t)n) {
        status = cannot(path, e);
    } else {
        status = signing_take_answer(fd, path, answer, e);
    }
    free(bytes);
    if (fd >= 0) {
        close(fd);
    }
    return status;
}
