#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <unistd.h>

#include "net/closer.h"
#include "net/loop.h"
#include "net/net_internal.h"

/* State, deadlines and answers of a connection, and whether a peer is there to read them. Blocks are written as soon as
 * the socket takes them; pieces of a long answer are made one at a time. */

#define BLOCKS_PER_WRITE 64
#define LOOK_MS 100 /* between two looks at the connections that have requests in flight */

/* Allowed moves as data: bit n of row m says that m → n is one. */
static const uint8_t conn_moves[] = {
    [CONN_GREETING] = 1u << CONN_OPEN | 1u << CONN_DRAINING | 1u << CONN_CLOSED,
    [CONN_OPEN] = 1u << CONN_DRAINING | 1u << CONN_CLOSED,
    [CONN_DRAINING] = 1u << CONN_CLOSED,
    [CONN_CLOSED] = 0,
};

bool conn_move(struct conn *c, enum conn_state state)
{
    if (!(conn_moves[c->state] & 1u << state)) {
        return false;
    }
    c->state = state;
    return true;
}

void conn_arm_timer(struct conn *c)
{
    /* The deadline of a sender is suspended while the daemon does not read. */
    uint64_t first = c->paused_since ? 0 : c->read_deadline;
    struct timeval tv;

    if (!first || (c->write_deadline && c->write_deadline < first)) {
        first = c->write_deadline;
    }
    /* A timer that fires early looks again: moving a deadline back costs nothing. */
    if (!first || (c->armed && c->armed <= first)) {
        return;
    }
    uint64_t now = loop_now();
    tv.tv_sec = (time_t)(first > now ? (first - now) / 1000u : 0);
    tv.tv_usec = (suseconds_t)(first > now ? (first - now) % 1000u * 1000u : 0);
    c->armed = first;
    evtimer_add(&c->timer_event, &tv);
}

void conn_set_read_deadline(struct conn *c, uint64_t at)
{
    c->read_deadline = at;
    conn_arm_timer(c);
}

static void conn_set_write_deadline(struct conn *c, uint64_t at)
{
    c->write_deadline = at;
    conn_arm_timer(c);
}

void conn_fds_close(const struct conn *c, int *fds, unsigned *count)
{
    for (unsigned i = 0; i < *count; i++) {
        if (fds[i] >= 0) {
            closer_close(c->group->config.closer, c->peer.uid, fds[i]);
        }
    }
    c->group->counts.descriptors -= *count;
    *count = 0;
}

/* --- Peers that have hung up. Their requests are not begun, and queued ones are cancelled: the answers would have no
 * reader. A peer that has only shut down its sending side still reads. */

bool conn_has_hung_up(const struct conn *c)
{
    struct pollfd p = {.fd = c->fd};

    return poll(&p, 1, 0) > 0 && (p.revents & (POLLHUP | POLLERR));
}

/* The connections with requests in flight, CONN_POLLS at a time. */
void conn_hangup_look(evutil_socket_t fd, short what, void *group)
{
    struct conn_group *g = group;
    struct pollfd polls[CONN_POLLS];
    struct conn *conns[CONN_POLLS];
    uint32_t at = 0;
    size_t left = 0;

    (void)fd;
    (void)what;
    while (at < g->slot_count) {
        size_t n = 0;

        for (; at < g->slot_count && n < CONN_POLLS; at++) {
            struct conn *c = g->slots[at].conn;

            if (c && c->in_flight && !c->deaf) {
                polls[n] = (struct pollfd){.fd = c->fd};
                conns[n++] = c;
            }
        }
        left += n;
        if (!n || poll(polls, (nfds_t)n, 0) <= 0) {
            continue;
        }
        for (size_t i = 0; i < n; i++) {
            if (polls[i].revents & (POLLHUP | POLLERR)) {
                conns[i]->gone = true;
                event_active(&conns[i]->write_event, EV_WRITE, 0);
                left--;
            }
        }
    }
    if (left) {
        conn_hangup_watch(g);
    }
}

void conn_hangup_watch(struct conn_group *g)
{
    const struct timeval later = {.tv_usec = LOOK_MS * 1000};

    if (g->config.hung_up && !evtimer_pending(&g->hangup_event, NULL)) {
        evtimer_add(&g->hangup_event, &later);
    }
}

/* --- Answers */

static void conn_source_drop(struct conn *c, struct conn_source *s)
{
    c->source_bytes -= s->size;
    c->owner->answers -= s->size;
    s->free(s);
}

static void conn_output_close(struct conn *c, struct conn_output *o)
{
    if (o->fd >= 0) {
        close(o->fd);
        c->group->counts.descriptors--;
    }
    o->fd = -1;
}

static void conn_output_free(struct conn *c, struct conn_output *o)
{
    conn_output_close(c, o);
    free(o->block);
    free(o);
}

void conn_output_clear(struct conn *c)
{
    struct conn_output *o;
    struct conn_source *s;

    while ((o = STAILQ_FIRST(&c->outputs)) != NULL) {
        STAILQ_REMOVE_HEAD(&c->outputs, next);
        conn_output_free(c, o);
    }
    while ((s = STAILQ_FIRST(&c->sources)) != NULL) {
        STAILQ_REMOVE_HEAD(&c->sources, next);
        conn_source_drop(c, s);
    }
    c->output_bytes = 0;
}

/* Takes over the block, and the descriptor if there is one. */
static void conn_output_append(struct conn *c, uint8_t *block, size_t size, int fd)
{
    struct conn_output *o = c->broken || c->deaf ? NULL : malloc(sizeof *o);

    if (!o) {
        if (fd >= 0) {
            close(fd);
        }
        free(block);
        c->broken = c->broken || !c->deaf;
        return;
    }
    *o = (struct conn_output){.block = block, .size = size, .fd = fd};
    STAILQ_INSERT_TAIL(&c->outputs, o, next);
    c->output_bytes += size;
    c->group->counts.descriptors += fd >= 0;
    if (!c->write_deadline) {
        conn_set_write_deadline(c, loop_now() + c->group->config.write_ms);
    }
}

/* The peer has closed the connection or reads no more. Received frames may still be unread, for example from a process
 * that attaches and ends immediately. No more answers are sent. */
static void conn_give_up_answers(struct conn *c)
{
    const struct conn_source *s;

    STAILQ_FOREACH(s, &c->sources, next)
    {
        c->in_flight--;
    }
    conn_output_clear(c);
    conn_set_write_deadline(c, 0);
    if (!c->deaf && c->in_flight && c->group->config.hung_up) {
        c->group->config.hung_up(c->group->config.context, c->id);
    }
    c->deaf = true;
}

bool conn_is_deaf(struct conn *c)
{
    if (!c->deaf && (c->gone || (!c->asked && conn_has_hung_up(c)))) {
        conn_give_up_answers(c);
    }
    c->asked = true;
    return c->deaf;
}

/* One sendmsg. False when the socket takes no more. */
static bool conn_output_send(struct conn *c)
{
    struct conn_output *first = STAILQ_FIRST(&c->outputs);
    struct iovec io[BLOCKS_PER_WRITE];
    struct msghdr m = {.msg_iov = io};
    union {
        struct cmsghdr align;
        char bytes[CMSG_SPACE(sizeof(int))];
    } control = {.bytes = {0}};
    ssize_t n;

    if (first->fd >= 0) {
        m.msg_control = control.bytes;
        m.msg_controllen = sizeof control.bytes;
        control.align.cmsg_level = SOL_SOCKET;
        control.align.cmsg_type = SCM_RIGHTS;
        control.align.cmsg_len = CMSG_LEN(sizeof(int));
        memcpy(CMSG_DATA(&control.align), &first->fd, sizeof(int));
    }
    /* A descriptor goes with the first byte of its own frame: such a frame begins a message. */
    for (struct conn_output *o = first; o && m.msg_iovlen < BLOCKS_PER_WRITE && (o == first || o->fd < 0);
         o = STAILQ_NEXT(o, next)) {
        io[m.msg_iovlen].iov_base = o->block + o->sent;
        io[m.msg_iovlen++].iov_len = o->size - o->sent;
    }
    do {
        n = sendmsg(c->fd, &m, MSG_NOSIGNAL | MSG_DONTWAIT);
    } while (n < 0 && errno == EINTR);
    if (n < 0) {
        if (errno == EPIPE || errno == ECONNRESET) {
            conn_give_up_answers(c);
        } else if (errno != EAGAIN && errno != ENOBUFS) {
            c->broken = true;
        }
        return false;
    }
    if (n) {
        conn_output_close(c, first);
    }
    c->output_bytes -= (size_t)n;
    for (size_t sent = (size_t)n; sent;) {
        const size_t left = first->size - first->sent;

        if (sent < left) {
            first->sent += sent;
            break;
        }
        sent -= left;
        STAILQ_REMOVE_HEAD(&c->outputs, next);
        conn_output_free(c, first);
        first = STAILQ_FIRST(&c->outputs);
    }
    conn_set_write_deadline(c, !STAILQ_EMPTY(&c->outputs) ? loop_now() + c->group->config.write_ms : 0);
    return true;
}

bool conn_has_output(const struct conn *c)
{
    return !STAILQ_EMPTY(&c->outputs) || !STAILQ_EMPTY(&c->sources);
}

/* Long answers alternate, a part of each at a time: a backup of hours must not delay a report. Other frames may be sent
 * between parts. */
void conn_write(struct conn *c)
{
    while (!c->broken && conn_has_output(c)) {
        struct conn_source *s = STAILQ_FIRST(&c->sources);
        uint8_t *block = NULL;
        size_t size = 0;

        if (!STAILQ_EMPTY(&c->outputs)) {
            if (!conn_output_send(c)) {
                return;
            }
        } else if (!s->make(s, &block, &size)) {
            c->broken = true;
        } else {
            STAILQ_REMOVE_HEAD(&c->sources, next);
            if (size) {
                conn_output_append(c, block, size, -1);
                STAILQ_INSERT_TAIL(&c->sources, s, next);
            } else {
                conn_source_drop(c, s);
                c->in_flight--;
            }
        }
    }
}

/* Continues from the loop, so that the answers of one batch are sent by one system call and no connection is freed
 * while it is in use. */
void conn_touch(struct conn *c)
{
    if (!c->busy) {
        event_active(&c->write_event, EV_WRITE, 0);
    }
}

static void conn_queue_message(struct conn *c, const struct message *m, uint16_t flags, uint32_t tag, int fd)
{
    uint8_t *block;
    size_t size;

    if (!message_encode(m, flags, tag, &block, &size, NULL)) {
        conn_output_append(c, block, size, fd);
    } else {
        if (fd >= 0) {
            close(fd);
        }
        c->broken = true;
    }
    conn_touch(c);
}

void conn_send(struct conn *c, const struct message *m, uint16_t flags, uint32_t tag)
{
    conn_queue_message(c, m, flags, tag, -1);
}

void conn_answer(struct conn *c, const struct message *m, uint16_t flags, uint32_t tag)
{
    c->in_flight--;
    conn_queue_message(c, m, flags, tag, -1);
}

void conn_answer_fd(struct conn *c, const struct message *m, uint16_t flags, uint32_t tag, int fd)
{
    c->in_flight--;
    conn_queue_message(c, m, (uint16_t)(flags | 1u << FRAME_FLAG_FDS_SHIFT), tag, fd);
}

static void conn_queue_nack(struct conn *c, uint32_t tag, enum profd_status status, const char *sentence,
                            uint32_t retry_after_ms)
{
    struct message m = {.type = FRAME_NACK};

    m.as.nack.status = (uint32_t)status;
    m.as.nack.retry = profd_status_retry(status);
    m.as.nack.retry_after_ms = m.as.nack.retry ? retry_after_ms : 0;
    m.as.nack.sentence = sentence;
    conn_queue_message(c, &m, 0, tag, -1);
}

void conn_nack(struct conn *c, uint32_t tag, enum profd_status status, const char *sentence, uint32_t retry_after_ms)
{
    c->in_flight--;
    conn_queue_nack(c, tag, status, sentence, retry_after_ms);
}

void conn_fail(struct conn *c, uint32_t tag, enum profd_status status, const char *sentence)
{
    struct conn_group *g = c->group;

    if (c->failed) {
        return;
    }
    c->failed = true;
    g->counts.failed++;
    if (c->unproven && g->config.refused) {
        g->config.refused(g->config.context, c->peer.uid);
    }
    conn_fds_close(c, c->fds, &c->fd_count);
    conn_set_read_deadline(c, 0);
    conn_queue_nack(c, tag, status, sentence, 1000);
    conn_move(c, CONN_DRAINING);
    if (g->config.note) {
        g->config.note(g->config.context, "connection failed", sentence);
    }
}

void conn_stream(struct conn *c, struct conn_source *s)
{
    if (c->deaf) {
        s->free(s);
        c->in_flight--;
        conn_touch(c);
        return;
    }
    STAILQ_INSERT_TAIL(&c->sources, s, next);
    c->source_bytes += s->size;
    c->owner->answers += s->size;
    conn_touch(c);
}
