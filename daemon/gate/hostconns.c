#include "gate/hostconns.h"

#include <errno.h>
#include <event2/event.h>
#include <netinet/tcp.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "gate/hostconns_internal.h"
#include "log/log.h"

#define ACCEPTS_PER_WAKE 64
#define PAUSE_SECONDS 1 /* when descriptors or connections are exhausted */

/* An address as 16 bytes. */
static void hostconns_map(const struct sockaddr_storage *a, struct in6_addr *out)
{
    memset(out, 0, sizeof *out);
    if (a->ss_family == AF_INET6) {
        *out = ((const struct sockaddr_in6 *)a)->sin6_addr;
    } else if (a->ss_family == AF_INET) {
        out->s6_addr[10] = out->s6_addr[11] = 0xff;
        memcpy(&out->s6_addr[12], &((const struct sockaddr_in *)a)->sin_addr, 4);
    }
}

/* Handshakes of the same address, or IPv6 network of 64 bits, that have not ended. Connections with a certificate are
 * not counted, because a whole site may be behind one address; those without one have a limit of their own. */
static unsigned hostconns_count_handshakes(const struct hostconns *h, const struct in6_addr *address)
{
    const struct hostconn *c;
    unsigned n = 0;

    TAILQ_FOREACH(c, &h->conns, next)
    {
        n += c->state == HOSTCONN_HANDSHAKE && hostconn_same_site(&c->address, address);
    }
    return n;
}

/* Ends handshakes, of one address or (NULL) of all, that only hold a place. */
static void hostconns_end_stale(struct hostconns *h, const struct in6_addr *address)
{
    struct hostconn *c, *next;

    for (c = TAILQ_FIRST(&h->conns); c; c = next) {
        next = TAILQ_NEXT(c, next);
        if ((!address || hostconn_same_site(&c->address, address)) && hostconn_is_stale(c)) {
            h->counts.late++;
            hostconn_close(c);
        }
    }
}

/* If there are as many connections as there may be, the others wait in the backlog. */
static void hostconns_pause(struct hostconns *h)
{
    const struct timeval later = {PAUSE_SECONDS, 0};

    if (h->count >= h->config.most) {
        event_del(h->acceptable);
        event_add(h->resume, &later);
    }
}

static void hostconns_accept(evutil_socket_t listener, short what, void *context)
{
    struct hostconns *h = context;
    struct sockaddr_storage from;
    struct in6_addr address;
    const int on = 1;

    (void)what;
    for (unsigned i = 0; i < ACCEPTS_PER_WAKE && h->count < h->config.most; i++) {
        socklen_t size = sizeof from;
        const int fd = accept4(listener, (struct sockaddr *)&from, &size, SOCK_NONBLOCK | SOCK_CLOEXEC);

        if (fd < 0) {
            if (errno == EMFILE || errno == ENFILE || errno == ENOBUFS || errno == ENOMEM) {
                const struct timeval later = {PAUSE_SECONDS, 0};

                log_write(LOG_LEVEL_WARNING, "accept", "connections wait: %s", strerror(errno));
                event_del(h->acceptable);
                event_add(h->resume, &later);
            }
            return;
        }
        hostconns_map(&from, &address);
        if (hostconns_count_handshakes(h, &address) >= LIMIT_GATE_HANDSHAKES_PER_ADDRESS) {
            hostconns_end_stale(h, &address);
        }
        if (hostconns_count_handshakes(h, &address) >= LIMIT_GATE_HANDSHAKES_PER_ADDRESS) {
            h->counts.crowded++;
            close(fd);
            continue;
        }
        (void)setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
        hostconn_open(h, fd, &address);
    }
    hostconns_pause(h);
}

static void hostconns_on_resume(evutil_socket_t unused, short what, void *context)
{
    struct hostconns *h = context;

    (void)unused;
    (void)what;
    if (h->count >= h->config.most) {
        hostconns_end_stale(h, NULL);
    }
    if (h->context && h->count < h->config.most) {
        event_add(h->acceptable, NULL);
    }
    hostconns_pause(h);
    hostconns_wake(h);
}

enum profd_status hostconns_new(const struct hostconns_config *config, struct hostconns **out, struct profd_error *e)
{
    struct hostconns *h = calloc(1, sizeof *h);

    if (h) {
        h->config = *config;
        TAILQ_INIT(&h->conns);
        for (size_t i = 0; i < HOSTCONN_WAITS; i++) {
            TAILQ_INIT(&h->queues[i]);
        }
        h->table = calloc(config->most, sizeof(struct hostconn *));
        h->acceptable = event_new(config->base, config->listener, EV_READ | EV_PERSIST, hostconns_accept, h);
        h->resume = evtimer_new(config->base, hostconns_on_resume, h);
    }
    if (!h || !h->table || !h->acceptable || !h->resume) {
        free(h); /* the program ends */
        return profd_error_set(e, PROFD_NO_MEMORY, "no memory for connections");
    }
    *out = h;
    return PROFD_OK;
}

struct hostconns_counts hostconns_get_counts(const struct hostconns *h)
{
    struct hostconns_counts n = h->counts;

    n.connections = h->count;
    return n;
}

void hostconns_use(struct hostconns *h, SSL_CTX *context, struct revoked *revoked)
{
    struct hostconn *c, *next;

    SSL_CTX_free(h->context);
    revoked_free(h->revoked);
    h->context = context;
    h->revoked = revoked;
    for (c = TAILQ_FIRST(&h->conns); c; c = next) {
        X509 *certificate = c->state == HOSTCONN_OPEN ? SSL_get0_peer_certificate(c->ssl) : NULL;

        next = TAILQ_NEXT(c, next);
        if (certificate && revoked_has(revoked, certificate)) {
            log_write(LOG_LEVEL_NOTICE, "refused", "%s: the certificate of this host was revoked", c->host.name);
            hostconn_close(c);
        }
    }
    event_active(h->resume, EV_TIMEOUT, 0);
}

bool hostconns_revoke(struct hostconns *h, const uint8_t *keys, size_t n)
{
    struct hostconn *c, *next;
    uint8_t *larger = n ? realloc(h->keys, (h->key_count + n) * TLS_KEY_SIZE) : NULL;

    if (!larger) {
        return !n;
    }
    h->keys = larger;
    for (size_t i = 0; i < n; i++) {
        struct tls_identity host;

        memcpy(host.key, keys + i * TLS_KEY_SIZE, sizeof host.key);
        if (!hostconn_is_revoked(h, &host)) { /* another daemon begins again */
            memcpy(h->keys + h->key_count++ * TLS_KEY_SIZE, host.key, sizeof host.key);
        }
    }
    for (c = TAILQ_FIRST(&h->conns); c; c = next) {
        next = TAILQ_NEXT(c, next);
        if (c->state == HOSTCONN_OPEN && SSL_get0_peer_certificate(c->ssl) && hostconn_is_revoked(h, &c->host)) {
            log_write(LOG_LEVEL_NOTICE, "refused", "%s: the key of this host was revoked", c->host.name);
            hostconn_close(c);
        }
    }
    return true;
}

void hostconns_take(struct hostconns *h, size_t bytes)
{
    h->memory += bytes;
}

static struct hostconn *hostconns_find(const struct hostconns *h, uint64_t id)
{
    struct hostconn *c = h->table[id & 0xffff];

    return c && c->id == id && c->state == HOSTCONN_OPEN ? c : NULL;
}

void hostconns_answer(struct hostconns *h, uint64_t conn, const struct frame *f, const uint8_t *payload)
{
    struct hostconn *c = hostconns_find(h, conn);

    if (!c) {
        return;
    }
    c->in_flight--;
    if (hostconn_put(c, f, payload)) {
        event_active(c->writable, EV_WRITE, 0); /* further answers for it are written with this one */
    } else {
        hostconn_close(c);
    }
}

void hostconns_nack(struct hostconns *h, uint64_t conn, uint32_t tag, enum profd_status status, const char *sentence)
{
    struct hostconn *c = hostconns_find(h, conn);

    if (!c) {
        return;
    }
    c->in_flight--;
    if (hostconn_put_nack(c, tag, status, sentence)) {
        hostconn_progress(c);
    } else {
        hostconn_close(c);
    }
}

void hostconns_give_back(struct hostconns *h, size_t bytes)
{
    h->memory -= bytes;
}

/* True if the connection no longer waits. */
static bool hostconns_retry(struct hostconn *c)
{
    struct profd_error e;
    enum profd_status status = PROFD_OK;

    if (c->wait != HOSTCONN_FOR_DAEMON) {
        if (!hostconn_take_memory(c) && c->wait != HOSTCONN_READY) {
            return false;
        }
        status = c->bytes ? PROFD_OK : profd_error_set(&e, PROFD_NO_MEMORY, "no memory for a frame");
    } else {
        status = hostconn_finish_frame(c, &e);
        if (!status && c->wait != HOSTCONN_READY) {
            return false;
        }
    }
    if (status) {
        hostconn_refuse(c, c->frame.tag, status, e.sentence);
    } else {
        hostconn_progress(c);
    }
    return true;
}

void hostconns_wake(struct hostconns *h)
{
    static const enum hostconn_wait order[] = {HOSTCONN_FOR_DAEMON, HOSTCONN_FOR_MEMORY, HOSTCONN_FOR_LARGE};
    struct hostconn_list *own = &h->queues[HOSTCONN_FOR_HOST];
    struct hostconn *c;
    unsigned n = 0;

    for (size_t i = 0; i < sizeof order / sizeof *order; i++) {
        while ((c = TAILQ_FIRST(&h->queues[order[i]])) != NULL && hostconns_retry(c)) {
        }
    }
    TAILQ_FOREACH(c, own, waits)
    {
        n++;
    }
    while (n-- > 0 && (c = TAILQ_FIRST(own)) != NULL) { /* each is looked at: they are of several hosts */
        if (!hostconns_retry(c) && c->wait == HOSTCONN_FOR_HOST) {
            TAILQ_REMOVE(own, c, waits);
            TAILQ_INSERT_TAIL(own, c, waits);
        }
    }
}
