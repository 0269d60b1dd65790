/* Connections of the load generator: opened, written, read, reopened. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

#include "load.h"
#include "proto/limits.h"
#include "proto/varint.h"

#define BLOCKS 64
#define SCRATCH (64u << 10)
#define BACKOFF_MS 50u
#define BACKOFF_MAX_MS 5000u

/* Doubling pauses with as much again by chance: those who were turned away together do not return together. */
static uint64_t pause_ns(struct load *l, unsigned attempts, unsigned least_ms)
{
    uint64_t ms = (uint64_t)BACKOFF_MS << (attempts < 8 ? attempts : 8);
    ms = ms > BACKOFF_MAX_MS ? BACKOFF_MAX_MS : ms;
    ms = ms < least_ms ? least_ms : ms;
    return ms * 1000000u + load_random(l) % (ms * 1000000u + 1);
}

static void watch(struct load_conn *c, int operation, bool write)
{
    struct epoll_event e = {.events = EPOLLIN | (write ? (uint32_t)EPOLLOUT : 0), .data.ptr = c};

    epoll_ctl(c->load->epoll, operation, c->fd, &e);
}

static void later(struct load_conn *c, unsigned least_ms)
{
    c->due = load_now() + pause_ns(c->load, c->attempts++, least_ms);
}

void load_conn_open(struct load_conn *c)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    struct message m = {.type = FRAME_HELLO};

    memcpy(address.sun_path, c->load->options.socket, strlen(c->load->options.socket));
    c->fd = socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    if (c->fd < 0 || connect(c->fd, (struct sockaddr *)&address, sizeof address) != 0) {
        if (c->fd >= 0) {
            close(c->fd);
        }
        c->fd = -1;
        later(c, 1); /* the queue of the listening socket is full, or the daemon starts anew */
        return;
    }
    c->state = CONN_GREETING;
    c->blocked = false;
    watch(c, EPOLL_CTL_ADD, false);
    m.as.hello.version_oldest = m.as.hello.version_newest = FRAME_VERSION;
    m.as.hello.client = "profd's load generator";
    load_conn_say(c, &m, 0);
    load_conn_write(c);
}

/* The connection is gone: what was not acknowledged waits and is sent again under the same ids. */
void load_conn_drop(struct load_conn *c)
{
    if (c->state == CONN_UP) {
        c->load->up--;
    }
    if (c->fd >= 0) {
        close(c->fd);
    }
    c->fd = -1;
    c->state = CONN_DOWN;
    c->sent = c->skip = c->input_size = c->control_size = c->control_sent = 0;
    c->queue_first = c->queue_count = 0;
    c->load->reconnects++;
    later(c, 0);
    for (unsigned i = 0; i < c->window; i++) {
        if (c->slots[i].state != SLOT_FREE) {
            c->slots[i].state = SLOT_WAITING;
            c->slots[i].due = c->due;
        }
    }
}

static void enqueue(struct load_conn *c, unsigned slot)
{
    c->slots[slot].state = SLOT_QUEUED;
    c->queue[(c->queue_first + c->queue_count++) % c->window] = slot;
}

/* An upload of which a part is out goes on; else control messages go first. */
static unsigned gather(const struct load_conn *c, struct iovec io[BLOCKS])
{
    size_t skip = c->sent;
    unsigned n = 0;

    if (c->control_size && !c->sent) {
        io[n++] = (struct iovec){c->control + c->control_sent, c->control_size - c->control_sent};
    }
    for (unsigned i = 0; c->state == CONN_UP && i < c->queue_count && n + 2 <= BLOCKS && (i == 0 || !c->control_size);
         i++) {
        struct load_slot *s = &c->slots[c->queue[(c->queue_first + i) % c->window]];
        size_t head = skip < s->head_size ? skip : s->head_size;

        if (head < s->head_size) {
            io[n++] = (struct iovec){s->head + head, s->head_size - head};
        }
        io[n++] = (struct iovec){c->load->common + (skip - head), c->load->common_size - (skip - head)};
        skip = 0;
    }
    return n;
}

static void advance(struct load_conn *c, size_t n)
{
    if (c->control_size && !c->sent) {
        size_t control = c->control_size - c->control_sent;

        control = control < n ? control : n;
        c->control_sent += control;
        n -= control;
        if (c->control_sent < c->control_size) {
            return;
        }
        c->control_size = c->control_sent = 0;
    }
    c->sent += n;
    while (c->queue_count) {
        struct load_slot *s = &c->slots[c->queue[c->queue_first]];

        if (c->sent < s->head_size + c->load->common_size) {
            return;
        }
        c->sent -= s->head_size + c->load->common_size;
        s->state = SLOT_SENT;
        c->queue_first = (c->queue_first + 1) % c->window;
        c->queue_count--;
    }
}

void load_conn_write(struct load_conn *c)
{
    bool full = false;

    while (c->state != CONN_DOWN && !full) {
        struct iovec io[BLOCKS];
        struct msghdr m = {.msg_iov = io, .msg_iovlen = gather(c, io)};
        ssize_t n = m.msg_iovlen ? sendmsg(c->fd, &m, MSG_NOSIGNAL) : 0;

        if (n > 0) {
            advance(c, (size_t)n);
        } else if (n == 0) {
            break;
        } else if (errno == EAGAIN) {
            full = true;
        } else if (errno == EPIPE || errno == ECONNRESET) {
            break; /* the daemon's last words are still to be read */
        } else {
            load_conn_drop(c);
        }
    }
    if (c->state != CONN_DOWN && full != c->blocked) {
        watch(c, EPOLL_CTL_MOD, full);
        c->blocked = full;
    }
}

static uint8_t *put_field(uint8_t *p, unsigned number, const void *data, size_t n)
{
    p = varint_put(p, number << 3 | 2);
    p = varint_put(p, n);
    memcpy(p, data, n);
    return p + n;
}

static uint8_t *put_fixed(uint8_t *p, unsigned number, uint64_t value)
{
    p = varint_put(p, number << 3 | 1);
    memcpy(p, &value, 8); /* little-endian, as this generator's machines are */
    return p + 8;
}

/* Fields that differ: protobuf lets the fields of a message come in any order, so they stand before the common ones. */
static void fill_head(struct load_conn *c, struct load_slot *s)
{
    struct load *l = c->load;
    uint8_t label[64], *p = s->head + FRAME_HEADER_SIZE, *q = label;
    uint64_t now;
    struct timespec t;
    char series[16];

    clock_gettime(CLOCK_REALTIME, &t);
    now = (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
    if (c->sequence == 0 || (l->options.renew && c->sequence >= l->options.renew)) {
        uint64_t order = now;
        uint64_t tail = load_random(l);

        for (int i = 7; i >= 0; i--, order >>= 8) { /* time-ordered, as clients make them */
            c->sender[i] = (uint8_t)order;
        }
        memcpy(c->sender + 8, &tail, 4);
        c->sequence = 0;
    }
    p = put_field(p, 1, c->sender, UPLOAD_SENDER_SIZE);
    p = varint_put(p, 2 << 3);
    p = varint_put(p, ++c->sequence);
    p = put_fixed(p, 3, now - 2000000000u);
    p = put_fixed(p, 4, now);
    if (c->sequence == 1) {
        p = varint_put(p, 10 << 3);
        p = varint_put(p, 1);
    }
    (void)snprintf(series, sizeof series, "%u", (unsigned)(load_random(l) % l->options.series));
    q = put_field(q, 1, "instance", 8);
    q = put_field(q, 2, series, strlen(series));
    p = put_field(p, 7, label, (size_t)(q - label));
    s->head_size = (size_t)(p - s->head);
    s->tag = ++c->tag ? c->tag : ++c->tag;
    frame_encode(&(struct frame_header){.length = (uint32_t)(s->head_size - FRAME_HEADER_SIZE + l->common_size),
                                        .version = FRAME_VERSION,
                                        .type = FRAME_UPLOAD,
                                        .tag = s->tag},
                 s->head);
}

bool load_conn_start(struct load_conn *c, uint64_t born)
{
    if (c->state != CONN_UP || c->asker || c->in_flight == c->window) {
        return false;
    }
    for (unsigned i = 0; i < c->window; i++) {
        struct load_slot *s = &c->slots[(c->tag + i) % c->window];

        if (s->state != SLOT_FREE) {
            continue;
        }
        s->born = born;
        s->attempts = 0;
        fill_head(c, s);
        c->in_flight++;
        c->load->started++;
        enqueue(c, (unsigned)(s - c->slots));
        return true;
    }
    return false;
}

void load_conn_tick(struct load_conn *c, uint64_t now)
{
    if (c->state == CONN_DOWN && c->due <= now) {
        load_conn_open(c);
    }
    if (c->state != CONN_UP || !c->in_flight) {
        return;
    }
    for (unsigned i = 0; i < c->window; i++) {
        if (c->slots[i].state == SLOT_WAITING && c->slots[i].due <= now) {
            c->load->retries++;
            enqueue(c, i);
        }
    }
    load_conn_write(c);
}

/* Whole frames out of the bytes; what is left of the last one is returned. */
static size_t take_frames(struct load_conn *c, const uint8_t *bytes, size_t n)
{
    size_t at = 0;

    while (c->state != CONN_DOWN) {
        struct frame_header f;
        struct profd_error e;

        if (c->skip) {
            size_t skip = c->skip < n - at ? c->skip : n - at;
            c->skip -= skip;
            at += skip;
        }
        if (n - at < FRAME_HEADER_SIZE) {
            return n - at;
        }
        if (frame_decode(bytes + at, &f, &e) != PROFD_OK) {
            load_complain(c->load, e.sentence);
            load_conn_drop(c);
            return 0;
        }
        if (f.type == FRAME_REPLY) { /* reports are read and thrown away */
            load_take_frame(c, &f, NULL);
            at += FRAME_HEADER_SIZE;
            c->skip = f.length;
            continue;
        }
        if (n - at - FRAME_HEADER_SIZE < f.length) {
            return n - at;
        }
        load_take_frame(c, &f, bytes + at + FRAME_HEADER_SIZE);
        at += FRAME_HEADER_SIZE + f.length;
    }
    return 0;
}

void load_conn_read(struct load_conn *c)
{
    static uint8_t scratch[SCRATCH];

    while (c->state != CONN_DOWN) {
        size_t had = c->input_size;
        ssize_t n;

        if (had) {
            memcpy(scratch, c->input, had);
        }
        n = recv(c->fd, scratch + had, sizeof scratch - had, 0);
        if (n < 0 && errno == EAGAIN) {
            return;
        }
        if (n <= 0) {
            load_conn_drop(c);
            return;
        }
        size_t left = take_frames(c, scratch, had + (size_t)n);
        if (left == sizeof scratch) {
            load_complain(c->load, "a frame of the daemon is larger than any answer should be");
            load_conn_drop(c);
            return;
        }
        free(c->input);
        c->input = left ? malloc(left) : NULL;
        if (left) {
            memcpy(c->input, scratch + had + (size_t)n - left, left);
        }
        c->input_size = left;
        if ((size_t)n < sizeof scratch - had) {
            return;
        }
    }
}
