#include "relay/connect.h"

#include <errno.h>
#include <netdb.h>
#include <openssl/evp.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "tls/tls_context.h"
#include "tls/tls_file.h"

#define CONNECT_MS 10000   /* for one address */
#define HANDSHAKE_MS 20000 /* of proxy and TLS: a gate with many connections accepts late */
#define PROXY_HEAD_MAX 8192
#define PROXY_USER_MAX 3072
#define ADDRESSES_MAX 16 /* of one name that are tried */

enum profd_status connect_judge_proxy(const char *head, size_t n, struct profd_error *e)
{
    const char *end = memchr(head, '\r', n);
    const size_t line = end ? (size_t)(end - head) : n;

    if (line >= 12 && !memcmp(head, "HTTP/1.", 7) && head[8] == ' ' && head[9] == '2') {
        return PROFD_OK;
    }
    return profd_error_set(e, PROFD_UNAVAILABLE, "the proxy refuses the connection: %.*s",
                           (int)(line < 200 ? line : 200), head);
}

/* One address, within CONNECT_MS. */
static int connect_address(const struct addrinfo *a, struct profd_error *e)
{
    const int fd = socket(a->ai_family, a->ai_socktype | SOCK_CLOEXEC | SOCK_NONBLOCK, a->ai_protocol);
    int failed = fd < 0 || (connect(fd, a->ai_addr, a->ai_addrlen) && errno != EINPROGRESS) ? errno : 0;
    socklen_t size = sizeof failed;

    if (!failed && stream_wait(fd, POLLOUT, stream_now() + CONNECT_MS, NULL)) {
        failed = ETIMEDOUT;
    } else if (!failed && getsockopt(fd, SOL_SOCKET, SO_ERROR, &failed, &size)) {
        failed = errno;
    }
    if (!failed) {
        return fd;
    }
    profd_error_set(e, PROFD_UNAVAILABLE, "%s", strerror(failed));
    if (fd >= 0) {
        close(fd);
    }
    return -1;
}

static enum profd_status connect_name(const struct config_address *to, struct stream *out, struct profd_error *e)
{
    const struct addrinfo want = {.ai_family = AF_UNSPEC, .ai_socktype = SOCK_STREAM, .ai_flags = AI_NUMERICSERV};
    struct addrinfo *list = NULL;
    const int failed = getaddrinfo(to->host, to->port, &want, &list);
    unsigned tried = 0;
    int fd = -1;

    if (failed) {
        return profd_error_set(e, PROFD_UNAVAILABLE, "the name %s cannot be resolved: %s", to->host,
                               failed == EAI_SYSTEM ? strerror(errno) : gai_strerror(failed));
    }
    for (const struct addrinfo *a = list; a && fd < 0 && tried < ADDRESSES_MAX; a = a->ai_next, tried++) {
        fd = connect_address(a, e);
    }
    freeaddrinfo(list);
    if (fd < 0) {
        return profd_error_wrap(e, PROFD_UNAVAILABLE, "no connection to %s port %s (%u addresses tried)", to->host,
                                to->port, tried);
    }
    *out = (struct stream){.fd = fd};
    return PROFD_OK;
}

/* The request of a connection to HOST:PORT. */
static int connect_write_request(const struct config *c, char out[PROXY_HEAD_MAX], struct profd_error *e)
{
    const char *target = c->relay + strlen("tls://"), *user = c->proxy_user;
    unsigned char code[PROXY_USER_MAX / 3 * 4 + 5] = "";
    int n;

    if (user && strlen(user) > PROXY_USER_MAX) {
        profd_error_set(e, PROFD_CONFIG, "user and password of relay-proxy have %zu bytes, at most %d", strlen(user),
                        PROXY_USER_MAX);
        return -1;
    }
    if (user) {
        EVP_EncodeBlock(code, (const unsigned char *)user, (int)strlen(user));
    }
    n = snprintf(out, PROXY_HEAD_MAX, "CONNECT %s HTTP/1.1\r\nHost: %s\r\n%s%s%s\r\n", target, target,
                 user ? "Proxy-Authorization: Basic " : "", (const char *)code, user ? "\r\n" : "");
    OPENSSL_cleanse(code, sizeof code);
    return n;
}

/* Asks the proxy for a connection to the centre. Reads byte by byte: what follows the head belongs to TLS. */
static enum profd_status connect_proxy(struct stream *s, const struct config *c, int64_t deadline,
                                       struct profd_error *e)
{
    char head[PROXY_HEAD_MAX];
    const int n = connect_write_request(c, head, e);
    enum profd_status status = n < 0 ? PROFD_CONFIG : stream_write(s, head, (size_t)n, deadline, e);
    size_t got = 0;

    OPENSSL_cleanse(head, sizeof head);
    while (!status && (got < 4 || memcmp(head + got - 4, "\r\n\r\n", 4) != 0)) {
        if (got == sizeof head) {
            return profd_error_set(e, PROFD_UNAVAILABLE, "the answer of the proxy has more than %u bytes",
                                   PROXY_HEAD_MAX);
        }
        status = stream_read(s, head + got, 1, deadline, e);
        got += !status;
    }
    return status ? profd_error_wrap(e, status, "the proxy") : connect_judge_proxy(head, got, e);
}

/* The files as they are now. */
static enum profd_status connect_context(const struct config *c, SSL_CTX **out, struct profd_error *e)
{
    struct tls_material m = {{0}, {0}, {0}};
    const char *const paths[] = {c->certificate, c->key, c->ca};
    struct tls_text *const texts[] = {&m.certificate, &m.key, &m.ca};
    enum profd_status status = PROFD_OK;

    for (size_t i = 0; i < 3 && !status; i++) {
        int fd = -1;

        status = tls_file_open(paths[i], texts[i] == &m.key, &fd, e);
        if (!status) {
            status = tls_file_read(fd, paths[i], texts[i], e);
            close(fd);
        }
    }
    if (!status) {
        status = tls_context_new(TLS_CLIENT, &m, out, e);
    }
    for (size_t i = 0; i < 3; i++) {
        tls_text_done(texts[i]);
    }
    return status;
}

/* TLS on a connected stream. */
static enum profd_status connect_tls(SSL_CTX *context, const char *name, struct stream *s, int64_t deadline,
                                     struct profd_error *e)
{
    SSL *ssl = SSL_new(context);
    enum profd_status status =
        ssl ? tls_require_name(ssl, name, e) : profd_error_set(e, PROFD_NO_MEMORY, "no memory for a TLS connection");

    if (status) {
        SSL_free(ssl);
        return status;
    }
    return stream_secure(s, ssl, deadline, e);
}

enum profd_status connect_centre(const struct config *c, const struct tls_pin *pin, struct stream *out,
                                 struct profd_error *e)
{
    struct stream s = {.fd = -1};
    SSL_CTX *context = NULL;
    int64_t deadline;
    enum profd_status status = pin ? tls_context_pin(pin, &context, e) : connect_context(c, &context, e);

    if (!status) {
        status = connect_name(c->has_proxy ? &c->proxy : &c->centre, &s, e);
    }
    deadline = stream_now() + HANDSHAKE_MS;
    if (!status && c->has_proxy) {
        status = connect_proxy(&s, c, deadline, e);
    }
    if (!status) {
        status = connect_tls(context, c->centre.host, &s, deadline, e);
        if (status) {
            profd_error_wrap(e, status, "%s", c->relay + strlen("tls://"));
        }
    }
    SSL_CTX_free(context);
    if (status) {
        stream_close(&s);
        return status;
    }
    *out = s;
    return PROFD_OK;
}
