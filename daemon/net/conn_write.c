/* Frames out. Blocks are written as soon as the socket takes them; pieces of a long answer are made one at a time. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <unistd.h>

#include "net/conn_internal.h"
#include "net/loop.h"

#define BLOCKS_PER_WRITE 64

static void conn_source_drop(struct conn *c, struct conn_source *s)
{
    c->source_bytes -= s->size;
    c->tally->answers -= s->size;
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

/* Makes the next part of a long answer. Long answers alternate; other frames may be sent between parts. */
static void conn_output_make(struct conn *c)
{
    struct conn_source *s = STAILQ_FIRST(&c->sources);
    uint8_t *block = NULL;
    size_t size = 0;

    if (!s->make(s, &block, &size)) {
        c->broken = true;
        return;
    }
    if (size) {
        conn_output_append(c, block, size, -1);
        /* The others are served, too: a backup of hours must not delay a report. */
        STAILQ_REMOVE_HEAD(&c->sources, next);
        STAILQ_INSERT_TAIL(&c->sources, s, next);
        return;
    }
    STAILQ_REMOVE_HEAD(&c->sources, next);
    conn_source_drop(c, s);
    c->in_flight--;
}

static void conn_output_advance(struct conn *c, size_t n)
{
    c->output_bytes -= n;
    while (n) {
        struct conn_output *o = STAILQ_FIRST(&c->outputs);
        const size_t left = o->size - o->sent;

        if (n < left) {
            o->sent += n;
            return;
        }
        n -= left;
        STAILQ_REMOVE_HEAD(&c->outputs, next);
        conn_output_free(c, o);
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

union conn_control {
    struct cmsghdr align;
    char bytes[CMSG_SPACE(sizeof(int))];
};

static void conn_output_attach(struct msghdr *m, union conn_control *control, int fd)
{
    memset(control, 0, sizeof *control);
    m->msg_control = control->bytes;
    m->msg_controllen = sizeof control->bytes;
    control->align.cmsg_level = SOL_SOCKET;
    control->align.cmsg_type = SCM_RIGHTS;
    control->align.cmsg_len = CMSG_LEN(sizeof fd);
    memcpy(CMSG_DATA(&control->align), &fd, sizeof fd);
}

/* One sendmsg. False when the socket takes no more. */
static bool conn_output_send(struct conn *c)
{
    struct conn_output *first = STAILQ_FIRST(&c->outputs);
    struct iovec io[BLOCKS_PER_WRITE];
    struct msghdr m = {.msg_iov = io};
    union conn_control control;
    ssize_t n;

    if (first->fd >= 0) {
        conn_output_attach(&m, &control, first->fd);
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
    conn_output_advance(c, (size_t)n);
    conn_set_write_deadline(c, !STAILQ_EMPTY(&c->outputs) ? loop_now() + c->group->config.write_ms : 0);
    return true;
}

void conn_write(struct conn *c)
{
    while (!c->broken) {
        if (!STAILQ_EMPTY(&c->outputs)) {
            if (!conn_output_send(c)) {
                return;
            }
        } else if (!STAILQ_EMPTY(&c->sources)) {
            conn_output_make(c);
        } else {
            return;
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
        return;
    }
    if (fd >= 0) {
        close(fd);
    }
    c->broken = true;
}

void conn_send(struct conn *c, const struct message *m, uint16_t flags, uint32_t tag)
{
    conn_queue_message(c, m, flags, tag, -1);
    conn_touch(c);
}

void conn_answer(struct conn *c, const struct message *m, uint16_t flags, uint32_t tag)
{
    c->in_flight--;
    conn_queue_message(c, m, flags, tag, -1);
    conn_touch(c);
}

void conn_answer_fd(struct conn *c, const struct message *m, uint16_t flags, uint32_t tag, int fd)
{
    c->in_flight--;
    conn_queue_message(c, m, (uint16_t)(flags | 1u << FRAME_FLAG_FDS_SHIFT), tag, fd);
    conn_touch(c);
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
    conn_touch(c);
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
    conn_touch(c);
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
    c->tally->answers += s->size;
    conn_touch(c);
}

enum profd_status conn_judge_answers(const struct conn *c, struct profd_error *e)
{
    if (c->tally->answers <= c->group->config.answers_max_uid) {
        return PROFD_OK;
    }
    return profd_error_set(e, PROFD_BUSY, "user %u has %zu bytes of unread answers; the limit is %zu", c->peer.uid,
                           c->tally->answers, c->group->config.answers_max_uid);
}
