/* One connection of a host. */
#include <errno.h>
#include <event2/event.h>
#include <openssl/err.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "gate/hostconns_internal.h"
#include "log/log.h"
#include "tls/tls_context.h"

#define READ_SHARE (256u << 10) /* bytes of one connection before others are looked at */

/* Address in text, for the log. */
static const char *hostconn_address(const struct hostconn *c, char out[INET6_ADDRSTRLEN])
{
    const bool mapped = IN6_IS_ADDR_V4MAPPED(&c->address);

    return evutil_inet_ntop(mapped ? AF_INET : AF_INET6, mapped ? (const void *)&c->address.s6_addr[12] : &c->address,
                            out, INET6_ADDRSTRLEN);
}

static void hostconn_tell(const struct hostconn *c, const char *sentence)
{
    char address[INET6_ADDRSTRLEN];

    log_write(LOG_LEVEL_NOTICE, "refused", "%s%s%s: %s", hostconn_address(c, address), *c->host.name ? ", " : "",
              c->host.name, sentence);
}

void hostconn_close(struct hostconn *c)
{
    struct hostconns *h = c->all;

    hostconn_set_wait(c, HOSTCONN_READY);
    hostconn_drop_frame(c);
    TAILQ_REMOVE(&h->conns, c, next);
    h->table[c->id & 0xffff] = NULL;
    h->count--;
    if (c->readable) {
        event_free(c->readable);
    }
    if (c->writable) {
        event_free(c->writable);
    }
    if (c->timer) {
        event_free(c->timer);
    }
    SSL_free(c->ssl);
    close(c->fd);
    free(c->output);
    free(c);
    event_active(h->resume, EV_TIMEOUT, 0); /* accepts, and wakes those that wait */
}

/* Nothing more is said or read as TLS. */
static void hostconn_linger(struct hostconn *c)
{
    c->state = HOSTCONN_LINGERING;
    (void)SSL_shutdown(c->ssl);
    ERR_clear_error();
    shutdown(c->fd, SHUT_WR);
    event_del(c->writable);
    event_add(c->readable, NULL);
    hostconn_set_deadline(c);
}

void hostconn_refuse(struct hostconn *c, uint32_t tag, enum profd_status status, const char *sentence)
{
    hostconn_set_wait(c, HOSTCONN_READY);
    hostconn_tell(c, sentence);
    hostconn_drop_frame(c);
    event_active(c->all->resume, EV_TIMEOUT, 0); /* others may wait for its memory */
    c->state = HOSTCONN_REFUSING;
    if (!hostconn_put_nack(c, tag, status, sentence)) {
        hostconn_close(c);
        return;
    }
    hostconn_progress(c);
}

bool hostconn_is_revoked(const struct hostconns *h, const struct tls_identity *host)
{
    for (size_t i = 0; i < h->key_count; i++) {
        if (!memcmp(h->keys + i * sizeof host->key, host->key, sizeof host->key)) {
            return true;
        }
    }
    return false;
}

/* A connection without a certificate costs the other side nothing: it may not take the place of one with a certificate.
 * If there are too many, the oldest of the same address is closed, or else the oldest. */
static void hostconn_make_place(const struct hostconn *c)
{
    struct hostconn *o, *oldest = NULL, *near = NULL;
    unsigned n = 0;

    TAILQ_FOREACH(o, &c->all->conns, next)
    {
        if (o != c && o->state != HOSTCONN_HANDSHAKE && !SSL_get0_peer_certificate(o->ssl)) {
            n++;
            oldest = oldest ? oldest : o;
            if (!near && hostconn_same_site(&o->address, &c->address)) {
                near = o;
            }
        }
    }
    if (n >= LIMIT_GATE_WITHOUT_CERTIFICATE) {
        hostconn_close(near ? near : oldest);
    }
}

/* The host is known now. */
static enum profd_status hostconn_identify(struct hostconn *c, struct profd_error *e)
{
    X509 *certificate = SSL_get0_peer_certificate(c->ssl);
    struct hostconns *h = c->all;
    unsigned same = 0;
    struct hostconn *oldest = NULL;

    c->ready = FRAMES_BEFORE_ENROLL;
    if (!certificate) { /* the context allows it only where hosts enrol */
        hostconn_make_place(c);
        return PROFD_OK;
    }
    if (tls_identity_read(certificate, &c->host, e)) {
        h->counts.untrusted++;
        return PROFD_UNAUTHORIZED;
    }
    c->ready = X509_cmp_current_time(X509_get0_notAfter(certificate)) < 0 ? FRAMES_BEFORE_RENEW : FRAMES_BEFORE_ARRIVE;
    if (revoked_has(h->revoked, certificate) || hostconn_is_revoked(h, &c->host)) {
        h->counts.revoked++;
        return profd_error_set(e, PROFD_UNAUTHORIZED, "the certificate of this host is revoked");
    }
    for (struct hostconn *o = TAILQ_LAST(&h->conns, hostconn_list); o; o = TAILQ_PREV(o, hostconn_list, next)) {
        if (o != c && o->state != HOSTCONN_HANDSHAKE && !memcmp(o->host.host, c->host.host, sizeof c->host.host)) {
            oldest = o;
            same++;
        }
    }
    if (same >= LIMIT_GATE_CONNECTIONS_PER_HOST) {
        hostconn_close(oldest); /* a connection that was cut off may look open for a long time */
    }
    return PROFD_OK;
}

/* False: c waits, or is gone. */
static bool hostconn_handshake(struct hostconn *c)
{
    struct profd_error e;
    enum profd_status status;
    int result, why;

    errno = 0;
    result = SSL_accept(c->ssl);
    if (result == 1) {
        c->state = HOSTCONN_OPEN;
        status = hostconn_identify(c, &e);
        c->all->counts.handshakes += !status;
        if (status) {
            hostconn_refuse(c, 0, status, e.sentence);
        }
        return !status;
    }
    why = SSL_get_error(c->ssl, result);
    if (why == SSL_ERROR_WANT_READ || why == SSL_ERROR_WANT_WRITE) {
        c->wants_write = why == SSL_ERROR_WANT_WRITE;
        return true;
    }
    *(SSL_get_verify_result(c->ssl) == X509_V_OK ? &c->all->counts.failed : &c->all->counts.untrusted) += 1;
    (void)tls_explain(c->ssl, result, &e);
    hostconn_tell(c, e.sentence);
    hostconn_linger(c);
    return false;
}

/* Writes output. False: c is gone or lingers. */
static bool hostconn_write(struct hostconn *c)
{
    int n, why;

    while (c->output_sent < c->output_size) {
        errno = 0;
        n = SSL_write(c->ssl, c->output + c->output_sent, (int)(c->output_size - c->output_sent));
        if (n > 0) {
            c->output_sent += (size_t)n;
            continue;
        }
        why = SSL_get_error(c->ssl, n);
        if (why == SSL_ERROR_WANT_READ || why == SSL_ERROR_WANT_WRITE) {
            c->wants_write = c->wants_write || why == SSL_ERROR_WANT_WRITE;
            return true;
        }
        (void)tls_explain(c->ssl, n, NULL);
        hostconn_close(c);
        return false;
    }
    free(c->output);
    c->output = NULL;
    c->output_size = c->output_sent = c->output_capacity = 0;
    if (c->state == HOSTCONN_REFUSING) {
        hostconn_linger(c);
        return false;
    }
    return true;
}

static bool hostconn_may_read(const struct hostconn *c)
{
    return c->state == HOSTCONN_OPEN && c->wait == HOSTCONN_READY && c->in_flight < LIMIT_GATE_IN_FLIGHT &&
           c->output_size - c->output_sent < LIMIT_OUTPUT;
}

/* Handles n bytes that were read into the header or the payload. */
static enum profd_status hostconn_advance(struct hostconn *c, size_t n, struct profd_error *e)
{
    enum profd_status status = PROFD_OK;

    if (!c->bytes) {
        c->header_got += n;
        if (c->header_got == sizeof c->header) {
            status = hostconn_begin_frame(c, e);
        }
    } else {
        c->got += n;
    }
    return !status && c->bytes && c->got == c->frame.length ? hostconn_finish_frame(c, e) : status;
}

/* Reads while it may. False: c is gone or lingers. */
static bool hostconn_read(struct hostconn *c)
{
    struct profd_error e;
    enum profd_status status;
    size_t share = READ_SHARE;

    while (share && hostconn_may_read(c)) {
        uint8_t *to = c->bytes ? c->bytes + FRAME_HEADER_SIZE + c->got : c->header + c->header_got;
        size_t most = c->bytes ? c->frame.length - c->got : sizeof c->header - c->header_got;
        int n, why;

        most = most < share ? most : share;
        errno = 0;
        n = SSL_read(c->ssl, to, (int)most);
        if (n <= 0) {
            why = SSL_get_error(c->ssl, n);
            if (why == SSL_ERROR_WANT_READ || why == SSL_ERROR_WANT_WRITE) {
                c->wants_write = c->wants_write || why == SSL_ERROR_WANT_WRITE;
                return true;
            }
            (void)tls_explain(c->ssl, n, &e);
            hostconn_close(c);
            return false;
        }
        share -= (size_t)n;
        status = hostconn_advance(c, (size_t)n, &e);
        if (status) {
            hostconn_refuse(c, c->header_got == sizeof c->header ? c->frame.tag : 0, status, e.sentence);
            return false;
        }
    }
    if (!share) {
        event_active(c->readable, EV_READ, 0);
    }
    return true;
}

static void hostconn_drain(struct hostconn *c)
{
    uint8_t ignored[4096];
    const ssize_t n = recv(c->fd, ignored, sizeof ignored, 0);

    if (!n || (n < 0 && errno != EAGAIN && errno != EINTR)) {
        hostconn_close(c);
    }
}

void hostconn_progress(struct hostconn *c)
{
    if (c->state == HOSTCONN_LINGERING) {
        hostconn_drain(c);
        return;
    }
    c->wants_write = false;
    if (c->state == HOSTCONN_HANDSHAKE && !hostconn_handshake(c)) {
        return;
    }
    if (c->state != HOSTCONN_HANDSHAKE &&
        (!hostconn_write(c) || !hostconn_read(c) || (c->output_size && !hostconn_write(c)))) {
        return;
    }
    if (c->wants_write) {
        event_add(c->writable, NULL);
    } else {
        event_del(c->writable);
    }
    if (c->state != HOSTCONN_OPEN || hostconn_may_read(c)) {
        event_add(c->readable, NULL);
    } else {
        event_del(c->readable);
    }
    hostconn_set_deadline(c);
}

static void hostconn_on_event(evutil_socket_t fd, short what, void *context)
{
    struct hostconn *c = context;

    (void)fd;
    if (!(what & EV_TIMEOUT)) {
        hostconn_progress(c);
    } else if (hostconn_extend_deadline(c)) {
        return;
    } else if (c->state == HOSTCONN_OPEN && c->phase != HOSTCONN_PHASE_WRITE) {
        hostconn_refuse(c, 0, PROFD_TIMEOUT, hostconn_explain_deadline(c));
    } else {
        c->all->counts.late += c->state == HOSTCONN_HANDSHAKE;
        if (c->state != HOSTCONN_LINGERING) {
            hostconn_tell(c, hostconn_explain_deadline(c));
        }
        hostconn_close(c);
    }
}

static uint64_t hostconn_find_place(struct hostconns *h)
{
    uint64_t at = 0;

    while (h->table[at]) {
        at++;
    }
    return at;
}

void hostconn_open(struct hostconns *h, int fd, const struct in6_addr *address)
{
    struct hostconn *c = calloc(1, sizeof *c);

    if (!c) {
        close(fd);
        return;
    }
    c->all = h;
    c->fd = fd;
    c->address = *address;
    c->id = ++h->generation << 16 | hostconn_find_place(h);
    h->table[c->id & 0xffff] = c;
    TAILQ_INSERT_TAIL(&h->conns, c, next);
    h->count++;
    c->readable = event_new(h->config.base, fd, EV_READ | EV_PERSIST, hostconn_on_event, c);
    c->writable = event_new(h->config.base, fd, EV_WRITE | EV_PERSIST, hostconn_on_event, c);
    c->timer = evtimer_new(h->config.base, hostconn_on_event, c);
    c->ssl = SSL_new(h->context);
    if (!c->readable || !c->writable || !c->timer || !c->ssl || SSL_set_fd(c->ssl, fd) != 1) {
        hostconn_close(c);
        return;
    }
    hostconn_set_deadline(c);
    hostconn_progress(c);
}
