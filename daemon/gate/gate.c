#include "gate/gate.h"

#include <event2/event.h>
#include <pwd.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

#include "gate/cage.h"
#include "gate/hostconns.h"
#include "gate/uplinks.h"
#include "log/log.h"
#include "proto/limits.h"
#include "proto/message.h"
#include "tls/tls_context.h"
#include "tls/tls_identity.h"

#define TICK_SECONDS 1
#define OWN_REQUEST UINT64_MAX /* in place of a connection: the gate asks by itself */
#define OTHER_DESCRIPTORS 48

struct gate {
    const struct config *config;
    struct event_base *base;
    struct hostconns *hosts;
    struct uplinks *uplinks;
    int supply;
    struct supply files; /* the latest */
    bool supplied;       /* once */
    bool asking;         /* the daemon has not answered LIST_REVOKED */
    uint64_t revoked;    /* keys that it has told */
};

static enum hostconns_result gate_on_request(void *context, uint64_t conn, uint32_t tag, uint8_t *bytes, size_t n,
                                             struct profd_error *e)
{
    struct gate *g = context;
    const struct uplinks_origin from = {conn, tag};
    const enum uplinks_result result = uplinks_send(g->uplinks, bytes, n, &from);

    if (result == UPLINKS_DOWN) {
        profd_error_set(e, PROFD_UNAVAILABLE, "the daemon of the centre does not answer");
    }
    return result == UPLINKS_SENT ? HOSTCONNS_TAKEN : result == UPLINKS_FULL ? HOSTCONNS_WAIT : HOSTCONNS_REFUSED;
}

/* Asks the daemon which keys were revoked since it was asked last, and tells it the gate's counts. */
static void gate_ask_revoked(struct gate *g)
{
    const struct hostconns_counts counts = hostconns_get_counts(g->hosts);
    const struct message m = {.type = FRAME_LIST_REVOKED,
                              .as.list_revoked = {.after = g->revoked,
                                                  .connections = counts.connections,
                                                  .handshakes = counts.handshakes,
                                                  .failed = counts.failed,
                                                  .untrusted = counts.untrusted,
                                                  .revoked = counts.revoked,
                                                  .late = counts.late,
                                                  .crowded = counts.crowded}};
    const struct uplinks_origin from = {.conn = OWN_REQUEST};
    uint8_t *bytes;
    size_t n;

    if (g->asking || message_encode(&m, 0, 0, &bytes, &n, NULL)) {
        return;
    }
    g->asking = uplinks_send(g->uplinks, bytes, n, &from) == UPLINKS_SENT;
    if (g->asking) {
        hostconns_take(g->hosts, n);
    } else {
        free(bytes);
    }
}

static void gate_take_revoked(struct gate *g, const struct frame *f, const uint8_t *payload)
{
    struct message m;

    g->asking = false;
    if (f->type != FRAME_REVOKED || message_decode(f->type, payload, f->length, &m, NULL)) {
        return; /* a daemon of an older version */
    }
    if (hostconns_revoke(g->hosts, m.as.revoked.keys.data, m.as.revoked.keys.size / TLS_KEY_SIZE)) {
        g->revoked = m.as.revoked.next;
    }
    message_done(&m);
}

static void gate_on_answered(void *context, const struct uplinks_origin *from, const struct frame *f,
                             const uint8_t *payload)
{
    struct gate *g = context;

    if (from->conn == OWN_REQUEST) {
        gate_take_revoked(g, f, payload);
        return;
    }
    hostconns_answer(g->hosts, from->conn, f, payload);
}

static void gate_on_lost(void *context, const struct uplinks_origin *from)
{
    struct gate *g = context;

    if (from->conn == OWN_REQUEST) {
        g->asking = false;
        g->revoked = 0; /* another daemon may count otherwise */
        return;
    }
    hostconns_nack(g->hosts, from->conn, from->tag, PROFD_UNAVAILABLE,
                   "the daemon of the centre has ended; send the segment again");
}

static void gate_on_freed(void *context, size_t bytes)
{
    struct gate *g = context;

    hostconns_give_back(g->hosts, bytes);
}

static void gate_on_writable(void *context)
{
    struct gate *g = context;

    hostconns_wake(g->hosts);
}

/* Takes the files that came. On failure those before stay in use; without any, the process ends. */
static void gate_on_supply(evutil_socket_t fd, short what, void *context)
{
    struct gate *g = context;
    struct supply *s = &g->files;
    struct profd_error e;
    SSL_CTX *tls = NULL;
    enum profd_status status = supply_take(fd, s, &e);

    (void)what;
    if (status == PROFD_UNAVAILABLE) { /* the parent has ended */
        event_base_loopbreak(g->base);
        return;
    }
    if (!status) {
        status = tls_context_new(TLS_SERVER, &s->material, &tls, &e);
        supply_done(s);
        log_open(s->log_level);
    }
    if (!status) {
        if (g->config->signer) {
            tls_context_allow_enrolment(tls);
        }
        hostconns_use(g->hosts, tls, s->revoked);
        log_write(g->supplied ? LOG_LEVEL_NOTICE : LOG_LEVEL_INFO, NULL, "certificates were read");
        g->supplied = true;
        supply_confirm(fd);
        return;
    }
    if (g->supplied) {
        log_write(LOG_LEVEL_WARNING, NULL, "the certificates of before stay in use: %s", e.sentence);
        return;
    }
    log_write(LOG_LEVEL_ERROR, NULL, "%s", e.sentence);
    exit(profd_status_exit(status));
}

static void gate_on_tick(evutil_socket_t unused, short what, void *context)
{
    (void)unused;
    (void)what;
    gate_ask_revoked(context);
    log_flush();
}

/* Descriptors may be limited. */
static unsigned gate_most(void)
{
    struct rlimit l;
    const rlim_t soft = getrlimit(RLIMIT_NOFILE, &l) ? 0 : l.rlim_cur;
    const rlim_t most = soft > 2 * OTHER_DESCRIPTORS ? soft - OTHER_DESCRIPTORS : OTHER_DESCRIPTORS;

    return most < LIMIT_GATE_CONNECTIONS ? (unsigned)most : LIMIT_GATE_CONNECTIONS;
}

static enum profd_status gate_make(struct gate *g, int listener, struct profd_error *e)
{
    const struct timeval interval = {TICK_SECONDS, 0};
    struct hostconns_config hosts = {
        .listener = listener, .most = gate_most(), .request = gate_on_request, .context = g};
    struct uplinks_config uplinks = {.path = g->config->socket,
                                     .answered = gate_on_answered,
                                     .lost = gate_on_lost,
                                     .freed = gate_on_freed,
                                     .writable = gate_on_writable,
                                     .context = g};
    const struct passwd *daemon = getpwnam("profd");
    struct event *supply, *tick;
    enum profd_status status;

    g->base = event_base_new();
    supply = g->base ? event_new(g->base, g->supply, EV_READ | EV_PERSIST, gate_on_supply, g) : NULL;
    tick = g->base ? event_new(g->base, -1, EV_PERSIST, gate_on_tick, g) : NULL;
    if (!supply || !tick || event_add(supply, NULL) || event_add(tick, &interval)) {
        return profd_error_set(e, PROFD_NO_MEMORY, "no memory for the event loop");
    }
    uplinks.has_user = daemon != NULL;
    uplinks.user = daemon ? daemon->pw_uid : 0;
    hosts.base = uplinks.base = g->base;
    status = hostconns_new(&hosts, &g->hosts, e);
    return status ? status : uplinks_new(&uplinks, &g->uplinks, e);
}

int gate_run(const struct config *c, int listener, int supply)
{
    struct gate g = {.config = c, .supply = supply};
    struct profd_error e;
    enum profd_status status;

    tls_init();
    status = gate_make(&g, listener, &e);
    if (!status) {
        status = cage_enter(&e);
    }
    if (status) {
        log_write(LOG_LEVEL_ERROR, NULL, "%s", e.sentence);
        return profd_status_exit(status);
    }
    event_base_dispatch(g.base);
    return 0;
}
