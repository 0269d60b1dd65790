#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "net/closer.h"
#include "net/loop.h"
#include "net/net_internal.h"

/* The set of connections and their events: admits them, assigns ids, settles each after what happened to it, closes
 * all. */

#define DRAIN_READS 4 /* as much as a socket holds by default */
#define SEEN 1024     /* connections among which one is chosen that gives way */
#define TRIES 16      /* connections that one new connection may have read, so that accepting it costs little */

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

conn_id conn_get_id(const struct conn *c)
{
    return c->id;
}

const struct peer *conn_get_peer(const struct conn *c)
{
    return &c->peer;
}

void *conn_get_user(const struct conn *c)
{
    return c->user;
}

enum peer_process conn_open_process(const struct conn *c, int *pidfd)
{
    return peer_open_process(c->fd, c->peer.pid, pidfd);
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

static void conn_free(struct conn *c)
{
    struct conn_group *g = c->group;
    struct conn_slot *slot = &g->slots[(uint32_t)c->id];

    event_del(&c->read_event);
    event_del(&c->write_event);
    event_del(&c->timer_event);
    conn_prove(c);
    conn_share_leave(c);
    conn_budget_leave(c);
    conn_body_free(g, &c->body);
    conn_fds_close(c, c->fds, &c->fd_count);
    conn_output_clear(c);
    free(c->held);
    closer_close_connection(g->config.closer, c->peer.uid, c->fd);
    g->crowded -= c->crowded;
    if (c->user && g->config.closed) {
        g->config.closed(g->config.context, c->user);
    }
    slot->conn = NULL;
    slot->generation++;
    slot->next_free = g->slot_free;
    g->slot_free = (uint32_t)c->id + 1;
    g->counts.connections--;
    c->owner->connections--;
    conn_user_release(g, c->owner);
    free(c);
}

static void conn_note_pause(struct conn *c, bool paused)
{
    if (paused && !c->paused_since) {
        c->paused_since = loop_now();
    } else if (!paused && c->paused_since) {
        const uint64_t pause = loop_now() - c->paused_since;

        c->paused_since = 0;
        if (c->read_deadline) {
            conn_set_read_deadline(c, c->read_deadline + pause);
        }
    }
}

/* Adds or removes an event. libevent does not add an event that is active and waits for its handler, so it is deleted
 * first. Nothing is lost: the connection is being settled, and unread bytes make it readable again. */
static void conn_arm_event(struct event *event, bool wanted, bool *armed)
{
    if (wanted != *armed) {
        event_del(event);
        if (wanted) {
            event_add(event, NULL);
        }
        *armed = wanted;
    }
}

/* Settles the connection: writes, reads held bytes, then closes it or arms its events. It may be freed. */
static void conn_leave(struct conn *c)
{
    if (c->busy > 1) {
        c->busy--;
        return;
    }
    if (c->gone) {
        (void)conn_is_deaf(c);
    }
    /* Answers go out before more is read; both may free what the other waits for. */
    conn_write(c);
    while (c->held && conn_may_read(c)) {
        conn_note_pause(c, false);
        conn_read_held(c);
        conn_write(c);
    }
    c->busy--;
    if (c->broken || c->state == CONN_CLOSED || (c->state == CONN_DRAINING && !c->in_flight && !conn_has_output(c))) {
        conn_free(c);
        return;
    }
    conn_note_pause(c, !conn_may_read(c) && !c->failed);
    conn_arm_event(&c->read_event, conn_may_read(c) && !c->held, &c->reading);
    conn_arm_event(&c->write_event, conn_has_output(c), &c->writing);
}

static void conn_on_readable(evutil_socket_t fd, short what, void *context)
{
    struct conn *c = context;

    (void)fd;
    (void)what;
    c->busy++;
    if (conn_share_take(c) && conn_may_read(c) && !c->held) {
        conn_read(c);
    }
    conn_leave(c);
}

static void conn_on_writable(evutil_socket_t fd, short what, void *context)
{
    struct conn *c = context;

    (void)fd;
    (void)what;
    c->busy++;
    conn_leave(c);
}

static void conn_on_timer(evutil_socket_t fd, short what, void *context)
{
    struct conn *c = context;
    const uint64_t now = loop_now();
    struct profd_error e;

    (void)fd;
    (void)what;
    c->armed = 0;
    c->busy++;
    if (c->write_deadline && now >= c->write_deadline) {
        c->group->counts.failed++;
        c->broken = true; /* it does not even take the answer to earlier requests */
    } else if (c->read_deadline && now >= c->read_deadline && !c->paused_since) {
        c->read_deadline = 0;
        if (c->state == CONN_GREETING) {
            profd_error_set(&e, PROFD_TIMEOUT, "no HELLO within %u ms of connecting", c->group->config.hello_ms);
        } else if (c->header_got < FRAME_HEADER_SIZE) {
            profd_error_set(&e, PROFD_TIMEOUT, "a frame's header was not complete within %u ms",
                            c->group->config.header_ms);
        } else {
            profd_error_set(&e, PROFD_TIMEOUT, "%zu of the frame's %u bytes came in time (%u ms and 1 s per %zu bytes)",
                            c->body_got, c->frame.length, c->group->config.body_ms, c->group->config.body_rate);
        }
        conn_fail(c, c->header_got < FRAME_HEADER_SIZE ? 0 : c->frame.tag, PROFD_TIMEOUT, e.sentence);
    }
    conn_arm_timer(c);
    conn_leave(c);
}

/* Resumes the connections that are no longer crowded. */
static void conn_group_look(evutil_socket_t fd, short what, void *group)
{
    struct conn_group *g = group;

    (void)fd;
    (void)what;
    for (uint32_t i = 0; i < g->slot_count && g->crowded; i++) {
        struct conn *c = g->slots[i].conn;

        if (c && c->crowded && !conn_crowd(c)) {
            c->busy++;
            conn_leave(c);
        }
    }
    if (g->crowded) {
        conn_crowd_look_soon(g);
    }
}

struct conn_group *conn_group_new(const struct conn_config *config)
{
    struct conn_group *g = calloc(1, sizeof *g);

    if (g) {
        g->config = *config;
        g->limit = SIZE_MAX;
        hashmap_init(&g->users, 0);
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

void conn_group_limit(struct conn_group *g, size_t connections)
{
    g->limit = connections;
}

static size_t conn_group_most(const struct conn_group *g)
{
    return g->limit < g->config.connections_max ? g->limit : g->config.connections_max;
}

/* A sixth is left for other users, even if the limit of descriptors is low. */
static size_t conn_group_most_uid(const struct conn_group *g)
{
    const size_t most = conn_group_most(g);

    return most - most / 6 < g->config.connections_max_uid ? most - most / 6 : g->config.connections_max_uid;
}

/* Returns the reason why a connection is refused, or NULL if it is admitted. */
static const char *conn_group_judge(struct conn_group *g, const struct peer *peer, struct conn_user *owner,
                                    struct profd_error *e)
{
    if (g->draining) {
        profd_error_set(e, PROFD_STOPPING, "the daemon is stopping");
    } else if (g->counts.connections >= conn_group_most(g)) {
        profd_error_set(e, PROFD_BUSY, "%zu connections are open, the limit is %zu", g->counts.connections,
                        conn_group_most(g));
    } else if (!owner) {
        profd_no_memory(e);
    } else if (owner->connections >= conn_group_most_uid(g)) {
        profd_error_set(e, PROFD_BUSY, "user %u has %zu connections, the limit is %zu", peer->uid, owner->connections,
                        conn_group_most_uid(g));
    } else {
        return NULL;
    }
    return e->sentence;
}

/* Closes a connection that has sent no complete frame, with a NACK. heard: reads first what has arrived, unless the
 * connection is postponed. Returns whether it was closed. */
static bool conn_give_way(struct conn *c, bool heard)
{
    struct conn_group *g = c->group;
    const conn_id id = c->id;

    c->busy++;
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
        c->busy++;
        c->broken = true;
        conn_leave(c);
    }
    return !conn_find(g, id);
}

/* Returns the oldest connection that may be closed for a new one of this user, who has `own` connections. */
static struct conn *conn_group_choose(struct conn_group *g, uint32_t uid, size_t own, bool all)
{
    struct conn *c;
    unsigned seen = 0;

    TAILQ_FOREACH(c, &g->unproven, unproven_next)
    {
        if (seen++ == SEEN) {
            break;
        }
        if (!c->busy && (c->peer.uid == uid ? !c->postponed : all && c->owner->connections >= own)) {
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
    struct conn_user *owner = conn_user_open(g, peer->uid);
    struct profd_error e;
    const char *refusal;
    struct conn *c;

    conn_group_evict(g, peer->uid, owner ? owner->connections : 0);
    owner = conn_user_open(g, peer->uid); /* the entry goes with the last connection of its user */
    refusal = conn_group_judge(g, peer, owner, &e);
    c = refusal ? NULL : calloc(1, sizeof *c);
    if (c && !g->slot_free) {
        const uint32_t count = g->slot_count ? g->slot_count * 2 : 64;
        struct conn_slot *slots = realloc(g->slots, count * sizeof *slots);

        for (uint32_t i = g->slot_count; slots && i < count; i++) {
            slots[i] = (struct conn_slot){.generation = 1, .next_free = i + 1 < count ? i + 2 : 0};
        }
        if (slots) {
            g->slots = slots;
            g->slot_free = g->slot_count + 1;
            g->slot_count = count;
        }
    }
    if (!c || !g->slot_free) {
        uint8_t out[512];

        refusal = refusal ? refusal : "out of memory";
        size_t size = conn_format_refusal(PROFD_BUSY, refusal, out);
        g->counts.refused++;
        if (g->config.refused) {
            g->config.refused(g->config.context, peer->uid);
        }
        if (size) {
            ssize_t sent = send(fd, out, size, MSG_NOSIGNAL | MSG_DONTWAIT);
            (void)sent;
        }
        closer_close_connection(g->config.closer, peer->uid, fd);
        if (g->config.note) {
            g->config.note(g->config.context, "refused", refusal);
        }
        free(c);
        if (owner) {
            conn_user_release(g, owner);
        }
        return;
    }
    uint32_t index = g->slot_free - 1;
    g->slot_free = g->slots[index].next_free;
    c->group = g;
    c->peer = *peer;
    c->owner = owner;
    c->fd = fd;
    c->id = (uint64_t)g->slots[index].generation << 32 | index;
    g->slots[index].conn = c;
    STAILQ_INIT(&c->outputs);
    STAILQ_INIT(&c->sources);
    c->unproven = true;
    TAILQ_INSERT_TAIL(&g->unproven, c, unproven_next);
    owner->connections++;
    g->counts.connections++;
    g->counts.accepted++;
    event_assign(&c->read_event, g->config.base, c->fd, EV_READ | EV_PERSIST, conn_on_readable, c);
    event_assign(&c->write_event, g->config.base, c->fd, EV_WRITE | EV_PERSIST, conn_on_writable, c);
    evtimer_assign(&c->timer_event, g->config.base, conn_on_timer, c);
    conn_set_read_deadline(c, loop_now() + g->config.hello_ms);
    c->busy++;
    conn_leave(c);
}

bool conn_group_listen(struct conn_group *g, uint32_t uid, uint32_t *at)
{
    struct pollfd polls[CONN_POLLS];
    conn_id ids[CONN_POLLS];
    unsigned reads = 0;
    uint32_t next = *at;

    g->urgent = true;
    while (reads < LIMIT_READS_PER_UID && next < g->slot_count) {
        size_t n = 0;

        for (; next < g->slot_count && n < CONN_POLLS; next++) { /* those that would be read if something came */
            const struct conn *c = g->slots[next].conn;

            if (c && c->peer.uid == uid && !c->busy && (c->reading || c->crowded || c->postponed)) {
                polls[n] = (struct pollfd){.fd = c->fd, .events = POLLIN};
                ids[n++] = c->id;
            }
        }
        int ready = n ? poll(polls, (nfds_t)n, 0) : 0;
        for (size_t i = 0; i < n && ready > 0; i++) {
            struct conn *c = polls[i].revents ? conn_find(g, ids[i]) : NULL;

            if (c && reads == LIMIT_READS_PER_UID) {
                next = (uint32_t)ids[i]; /* the slot of the first that is left */
                break;
            }
            if (c) { /* otherwise it went while another was read */
                reads++;
                c->busy++;
                conn_share_leave(c);
                (void)conn_crowd(c); /* not while it is urgent */
                if (conn_may_read(c) && !c->held) {
                    conn_read(c);
                }
                conn_leave(c);
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
        c->busy++;
        conn_share_leave(c);
        (void)conn_crowd(c);
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
    hashmap_clear(&g->users);
    free(g->slots);
    free(g);
}
