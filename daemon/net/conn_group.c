/* The set of connections: admits them, assigns ids, closes all. */
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "net/closer.h"
#include "net/conn.h"
#include "net/conn_internal.h"

#define DRAIN_READS 4 /* as much as a socket holds by default */
#define POLLS 1024
#define SEEN 1024 /* connections among which one is chosen that gives way */
#define TRIES 16  /* connections that one new connection may have read, so that accepting it costs little */

void conn_config_init(struct conn_config *config)
{
    memset(config, 0, sizeof *config);
    config->daemon = "profd";
    config->hello_ms = LIMIT_HELLO_SECONDS * 1000;
    config->header_ms = LIMIT_FRAME_HEADER_SECONDS * 1000;
    config->body_ms = LIMIT_FRAME_SECONDS * 1000;
    config->write_ms = LIMIT_WRITE_SECONDS * 1000;
    config->body_rate = LIMIT_FRAME_RATE;
    config->budget = LIMIT_BODIES_IN_FLIGHT;
    config->output_high = LIMIT_OUTPUT;
    config->answers_max_uid = LIMIT_ANSWERS_PER_UID;
    config->in_flight_max = LIMIT_IN_FLIGHT;
    config->connections_max = LIMIT_CONNECTIONS;
    config->connections_max_uid = LIMIT_CONNECTIONS_PER_UID;
}

/* Reads the crowded connections again that are so no more. */
static void conn_group_look(evutil_socket_t fd, short what, void *group)
{
    struct conn_group *g = group;

    (void)fd;
    (void)what;
    for (uint32_t i = 0; i < g->slot_count && g->crowded; i++) {
        struct conn *c = g->slots[i].conn;

        if (c && c->crowded && !conn_fds_crowd(c)) {
            conn_enter(c);
            conn_leave(c);
        }
    }
    if (g->crowded) {
        conn_fds_look_soon(g);
    }
}

struct conn_group *conn_group_new(const struct conn_config *config)
{
    struct conn_group *g = calloc(1, sizeof *g);

    if (g) {
        g->config = *config;
        g->limit = SIZE_MAX;
        tally_init(&g->tally);
        TAILQ_INIT(&g->waiting);
        TAILQ_INIT(&g->unproven);
        TAILQ_INIT(&g->sharing);
        evtimer_assign(&g->crowd_event, g->config.base, conn_group_look, g);
        evtimer_assign(&g->share_event, g->config.base, conn_share_serve, g);
        evtimer_assign(&g->hangup_event, g->config.base, conn_hangup_look, g);
    }
    return g;
}

size_t conn_format_refusal(enum profd_status status, const char *sentence, uint8_t out[512])
{
    struct message m = {.type = FRAME_NACK};
    uint8_t *block;
    size_t size;

    m.as.nack.status = (uint32_t)status;
    m.as.nack.retry = profd_status_retry(status);
    m.as.nack.retry_after_ms = m.as.nack.retry ? 1000 : 0;
    m.as.nack.sentence = sentence;
    if (message_encode(&m, 0, 0, &block, &size, NULL)) {
        return 0;
    }
    if (size > 512) {
        size = 0;
    } else {
        memcpy(out, block, size);
    }
    free(block);
    return size;
}

static void conn_group_refuse(struct conn_group *g, uint32_t uid, int fd, const char *sentence)
{
    uint8_t out[512];
    size_t size = conn_format_refusal(PROFD_BUSY, sentence, out);

    g->counts.refused++;
    if (g->config.refused) {
        g->config.refused(g->config.context, uid);
    }
    if (size) {
        ssize_t sent = send(fd, out, size, MSG_NOSIGNAL | MSG_DONTWAIT);
        (void)sent;
    }
    closer_close_connection(g->config.closer, uid, fd);
    if (g->config.note) {
        g->config.note(g->config.context, "refused", sentence);
    }
}

/* Index of a free slot; false when out of memory. */
static bool conn_group_take_slot(struct conn_group *g, uint32_t *index)
{
    if (!g->slot_free) {
        const uint32_t count = g->slot_count ? g->slot_count * 2 : 64;
        struct conn_slot *slots = realloc(g->slots, count * sizeof *slots);

        if (!slots) {
            return false;
        }
        for (uint32_t i = g->slot_count; i < count; i++) {
            slots[i] = (struct conn_slot){.generation = 1, .next_free = i + 1 < count ? i + 2 : 0};
        }
        g->slots = slots;
        g->slot_free = g->slot_count + 1;
        g->slot_count = count;
    }
    *index = g->slot_free - 1;
    g->slot_free = g->slots[*index].next_free;
    return true;
}

void conn_group_limit(struct conn_group *g, size_t connections)
{
    g->limit = connections;
}

static size_t conn_group_most(const struct conn_group *g)
{
    return g->limit < g->config.connections_max ? g->limit : g->config.connections_max;
}

/* One user may not use all of them, however few the descriptors allow. */
static size_t conn_group_most_uid(const struct conn_group *g)
{
    const size_t most = conn_group_most(g);

    return most - most / 6 < g->config.connections_max_uid ? most - most / 6 : g->config.connections_max_uid;
}

/* The reason why a connection is refused; NULL if it is admitted. */
static const char *conn_group_judge(struct conn_group *g, const struct peer *peer, struct tally_entry *tally,
                                    struct profd_error *e)
{
    if (g->draining) {
        profd_error_set(e, PROFD_STOPPING, "the daemon is stopping");
    } else if (g->counts.connections >= conn_group_most(g)) {
        profd_error_set(e, PROFD_BUSY, "%zu connections are open, the limit is %zu", g->counts.connections,
                        conn_group_most(g));
    } else if (!tally) {
        profd_error_set(e, PROFD_NO_MEMORY, "out of memory");
    } else if (tally->connections >= conn_group_most_uid(g)) {
        profd_error_set(e, PROFD_BUSY, "user %u has %zu connections, the limit is %zu", peer->uid, tally->connections,
                        conn_group_most_uid(g));
    } else {
        return NULL;
    }
    return e->sentence;
}

static void conn_add_unproven(struct conn *c)
{
    c->unproven = true;
    TAILQ_INSERT_TAIL(&c->group->unproven, c, unproven_next);
}

/* Reads what has arrived, if heard, but nothing of a connection that is postponed. If the connection has still sent no
 * complete frame, it gets a NACK and is closed. True if it was closed. */
static bool conn_give_way(struct conn *c, bool heard)
{
    struct conn_group *g = c->group;
    const conn_id id = c->id;

    conn_enter(c);
    if (heard && conn_may_read(c) && !c->held) {
        conn_read(c);
    }
    if (c->unproven) {
        conn_fail(c, 0, PROFD_BUSY,
                  "all connections are in use, and this one has sent no request that was read: it is closed for a new "
                  "one");
    }
    conn_leave(c);
    c = conn_find(g, id);
    if (c && c->unproven) { /* not even the refusal could be written */
        conn_enter(c);
        c->broken = true;
        conn_leave(c);
    }
    return !conn_find(g, id);
}

/* The oldest connection that may give way to a new one of this user, which has own connections. */
static struct conn *conn_group_choose(struct conn_group *g, uint32_t uid, size_t own, bool all)
{
    struct conn *c;
    unsigned seen = 0;

    TAILQ_FOREACH(c, &g->unproven, unproven_next)
    {
        if (seen++ == SEEN) {
            break;
        }
        if (!c->busy && (c->peer.uid == uid ? !c->postponed : all && c->tally->connections >= own)) {
            return c;
        }
    }
    return NULL;
}

/* At a limit, a new connection replaces the oldest one that has sent no complete frame. That connection must belong to
 * a user with at least as many connections, so that no user can displace a user with fewer. A user at its own limit
 * displaces none that is postponed: that one was first. At most TRIES connections are read for it; if all of them have
 * sent requests, the next one of another user goes although it may have sent one, too. */
static void conn_group_evict(struct conn_group *g, uint32_t uid, size_t own)
{
    const bool all = g->counts.connections >= conn_group_most(g);
    struct conn *c;

    if (g->draining || (!all && own < conn_group_most_uid(g))) {
        return;
    }
    for (unsigned tries = 0; tries < TRIES; tries++) {
        c = conn_group_choose(g, uid, own, all);
        if (!c || conn_give_way(c, true)) {
            return;
        }
    }
    c = conn_group_choose(g, uid, own, all);
    if (c && c->peer.uid != uid) {
        conn_give_way(c, false);
    }
}

void conn_group_accept(struct conn_group *g, int fd, const struct peer *peer)
{
    struct tally_entry *tally = tally_open(&g->tally, peer->uid);
    struct profd_error e;
    const char *refusal;
    struct conn *c;
    uint32_t index;

    conn_group_evict(g, peer->uid, tally ? tally->connections : 0);
    tally = tally_open(&g->tally, peer->uid); /* the entry goes with the last connection of its user */
    refusal = conn_group_judge(g, peer, tally, &e);
    c = refusal ? NULL : calloc(1, sizeof *c);
    if (!c || !conn_group_take_slot(g, &index)) {
        conn_group_refuse(g, peer->uid, fd, refusal ? refusal : "out of memory");
        free(c);
        if (tally) {
            tally_release(&g->tally, tally);
        }
        return;
    }
    c->group = g;
    c->peer = *peer;
    c->tally = tally;
    c->fd = fd;
    c->id = (uint64_t)g->slots[index].generation << 32 | index;
    g->slots[index].conn = c;
    STAILQ_INIT(&c->outputs);
    STAILQ_INIT(&c->sources);
    conn_add_unproven(c);
    tally->connections++;
    g->counts.connections++;
    g->counts.accepted++;
    conn_start(c);
}

struct conn *conn_find(struct conn_group *g, conn_id id)
{
    const uint32_t index = (uint32_t)id;

    if (index >= g->slot_count || !g->slots[index].conn || g->slots[index].conn->id != id) {
        return NULL;
    }
    return g->slots[index].conn;
}

void conn_group_get_counts(const struct conn_group *g, struct conn_counts *out)
{
    *out = g->counts;
    out->bodies = g->bodies;
}

/* Of at most n connections of this user from slot *at on, those that would be read if something came. */
static size_t conn_group_gather(const struct conn_group *g, uint32_t uid, uint32_t *at, struct pollfd *polls,
                                conn_id *ids, size_t n)
{
    size_t count = 0;

    for (; *at < g->slot_count && count < n; ++*at) {
        const struct conn *c = g->slots[*at].conn;

        if (!c || c->peer.uid != uid || c->busy || !(c->reading || c->crowded || c->postponed)) {
            continue;
        }
        polls[count] = (struct pollfd){.fd = c->fd, .events = POLLIN};
        ids[count++] = c->id;
    }
    return count;
}

static void conn_group_hear(struct conn *c)
{
    conn_enter(c);
    conn_share_leave(c);
    (void)conn_fds_crowd(c); /* not while it is urgent */
    if (conn_may_read(c) && !c->held) {
        conn_read(c);
    }
    conn_leave(c);
}

bool conn_group_listen(struct conn_group *g, uint32_t uid, uint32_t *at)
{
    struct pollfd polls[POLLS];
    conn_id ids[POLLS];
    unsigned reads = 0;
    uint32_t next = *at;
    size_t n;

    g->urgent = true;
    while (reads < LIMIT_READS_PER_UID && (n = conn_group_gather(g, uid, &next, polls, ids, POLLS)) > 0) {
        const int ready = poll(polls, (nfds_t)n, 0);

        for (size_t i = 0; i < n && ready > 0; i++) {
            struct conn *c = polls[i].revents ? conn_find(g, ids[i]) : NULL;

            if (c && reads == LIMIT_READS_PER_UID) {
                next = (uint32_t)ids[i]; /* the slot of the first that is left */
                break;
            }
            if (c) { /* otherwise it went while another was read */
                reads++;
                conn_group_hear(c);
            }
        }
    }
    g->urgent = false;
    *at = next;
    return next >= g->slot_count;
}

void conn_group_drain(struct conn_group *g)
{
    g->draining = true;
    g->urgent = true;
    for (uint32_t i = 0; i < g->slot_count; i++) {
        struct conn *c = g->slots[i].conn;

        if (!c) {
            continue;
        }
        conn_enter(c);
        conn_share_leave(c);
        (void)conn_fds_crowd(c);
        for (int reads = 0; reads < DRAIN_READS && conn_may_read(c) && !c->held; reads++) {
            conn_read(c);
        }
        conn_move(c, CONN_DRAINING);
        conn_set_read_deadline(c, 0);
        conn_leave(c);
    }
}

void conn_group_free(struct conn_group *g)
{
    if (!g) {
        return;
    }
    g->draining = true;
    for (uint32_t i = 0; i < g->slot_count; i++) {
        if (g->slots[i].conn) {
            conn_free(g->slots[i].conn);
        }
    }
    event_del(&g->crowd_event);
    event_del(&g->share_event);
    event_del(&g->hangup_event);
    tally_done(&g->tally);
    free(g->slots);
    free(g);
}
