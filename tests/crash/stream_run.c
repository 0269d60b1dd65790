/* The client's loop: a few connections, each with a window of unanswered uploads that go out again with the same id
 * whenever the daemon died, in another order, and now and then one that was acknowledged long ago. */
#include "tests/crash/stream_run.h"

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

#define LANE_MOST 256u
#define NOBODY UINT32_MAX

/* An upload that is due: sent under a tag, or waiting to be sent again. */
struct due {
    uint32_t number, tag, attempts;
    bool sent, acked_before;
};
struct lane {
    struct stream *stream;
    struct stream_lane *shared;
    struct profd_client *client; /* NULL: not connected */
    int fd;
    unsigned index, due_count;
    uint32_t executable_tag; /* of its delivery under way; 0: none */
    struct due due[LANE_MOST];
    uint64_t random;
    int64_t wait_until; /* ms: after a refusal */
};

static int64_t clock_ms(void)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return now.tv_sec * INT64_C(1000) + now.tv_nsec / 1000000;
}

static uint32_t roll(struct lane *l, uint32_t below)
{
    l->random ^= l->random << 13;
    l->random ^= l->random >> 7;
    l->random ^= l->random << 17;
    return (uint32_t)(l->random >> 32) % below;
}

static enum profd_status fill_arcs(struct profd_upload *u, uint32_t n)
{
    const struct profd_arc arcs[] = {
        {0, 0, 0x10, STREAM_LOW + 16 * (uint64_t)n, stream_first_calls(n)},
        {0, 0, 0x20, STREAM_SECOND + 16 * (uint64_t)n, stream_second_calls(n)},
        {0, 0, 0x30, STREAM_SHARED_CALLEE, 1},
    };
    enum profd_status status = PROFD_OK;
    uint64_t noise = n + 1;

    for (size_t i = 0; i < sizeof arcs / sizeof *arcs && !status; i++) {
        status = profd_upload_add_arc(u, &arcs[i], NULL);
    }
    for (uint32_t i = 0; n % 16 == 0 && i < STREAM_BULK && !status; i++) {
        struct profd_arc arc = {.to_build = 1, .calls = 1};

        noise = noise * UINT64_C(6364136223846793005) + 1442695040888963407u;
        arc.from = noise >> 44;
        arc.to = (noise >> 20) & 0xffff0;
        status = profd_upload_add_arc(u, &arc, NULL);
    }
    return status;
}

/* The ticks of an upload found one of 4,096 stacks, so that no sum folds. */
static enum profd_status fill_stack(struct profd_upload *u, uint32_t n)
{
    const uint32_t build[] = {0, n % 2, 0};
    const uint64_t address[] = {0x10, 0x20 + 16 * (uint64_t)(n % 64), STREAM_LOW + 16 * (uint64_t)(n % 4096)};
    const struct profd_stack stack = {
        .rate = 100, .frames = 3, .pc = true, .build = build, .address = address, .ticks = stream_ticks(n)};

    return profd_upload_add_stack(u, &stack, NULL);
}

static struct profd_upload *make_upload(const struct stream *s, uint32_t n)
{
    const uint64_t ticks = stream_ticks(n);
    const struct profd_histogram h = {.bins = STREAM_IDS,
                                      .rate = 100,
                                      .used = 1,
                                      .low = STREAM_LOW,
                                      .high = STREAM_HIGH,
                                      .index = &n,
                                      .ticks = &ticks};
    struct profd_upload *u = NULL;
    char shard[8];
    uint32_t index;
    enum profd_status status = profd_upload_new(&u, NULL);

    snprintf(shard, sizeof shard, "%u", n % 4);
    if (!status) {
        status = profd_upload_add_build(u, STREAM_BUILD, "/opt/campaign", &index, NULL);
    }
    if (!status) {
        status = profd_upload_add_build(u, STREAM_LIBRARY, "/opt/libcampaign.so", &index, NULL);
    }
    if (!status && n == stream_naming(n / STREAM_EVERY)) {
        status = profd_upload_add_build(u, s->executable, "/opt/plugin.so", &index, NULL);
    }
    if (!status) {
        status = profd_upload_add_label(u, "shard", shard, NULL);
    }
    if (!status) {
        status = profd_upload_add_histogram(u, &h, NULL);
    }
    if (!status) {
        status = fill_arcs(u, n);
    }
    if (!status && !(s->unstacked && n % 16 == 0)) {
        status = fill_stack(u, n);
    }
    if (!status) {
        profd_upload_set_window(u, (uint64_t)stream_end(s, n) - 1000000, (uint64_t)stream_end(s, n));
        return u;
    }
    profd_upload_free(u);
    return NULL;
}

static void drop_connection(struct lane *l)
{
    profd_client_free(l->client);
    if (l->fd >= 0) {
        close(l->fd);
    }
    l->client = NULL;
    l->fd = -1;
    l->executable_tag = 0;
    for (unsigned i = l->due_count; i > 0; i--) {
        /* Who was told "acknowledged" does not send again. */
        if (l->stream->early && l->due[i - 1].sent) {
            l->due[i - 1] = l->due[--l->due_count];
        } else {
            l->due[i - 1].sent = false;
        }
    }
}

static void connect_lane(struct lane *l)
{
    struct sockaddr_un a = {.sun_family = AF_UNIX};

    memcpy(a.sun_path, l->stream->socket, sizeof a.sun_path);
    l->fd = socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    if (l->fd < 0 || connect(l->fd, (const struct sockaddr *)&a, sizeof a) ||
        profd_client_new("crash campaign", &l->client, NULL)) {
        drop_connection(l);
    }
}

static bool send_due(struct lane *l, struct due *d)
{
    struct profd_upload *u = make_upload(l->stream, d->number);
    struct profd_id id = {.sequence = d->number / STREAM_LANES + 1};
    enum profd_status status;

    if (!u) {
        return false;
    }
    memcpy(id.sender, l->shared->sender, sizeof id.sender);
    if (l->stream->forgetful) {
        id.sender[0] ^= (uint8_t)d->attempts;
    }
    d->attempts++;
    status = profd_client_send_upload(l->client, u, &id, &d->tag, NULL);
    profd_upload_free(u);
    if (status) {
        return false;
    }
    d->sent = true;
    if (!d->acked_before) {
        l->stream->state[d->number] = l->stream->early ? STREAM_ACKED : STREAM_SENT;
    }
    return true;
}

/* A new upload, or rarely a repeat of an acknowledged one; false: nothing to begin. */
static bool begin_upload(struct lane *l)
{
    struct due *d = &l->due[l->due_count];
    const uint32_t next = l->shared->next;

    if (l->stream->stop || l->due_count >= l->stream->in_flight || l->due_count == LANE_MOST) {
        return false;
    }
    if (next && roll(l, 32) == 0) {
        const uint32_t old = roll(l, next) * STREAM_LANES + l->index;

        if (l->stream->state[old] == STREAM_ACKED && !l->stream->early && !l->stream->forgetful) {
            *d = (struct due){.number = old, .acked_before = true};
            l->due_count++;
            return true;
        }
    }
    if (next >= l->stream->most / STREAM_LANES) {
        return false;
    }
    *d = (struct due){.number = next * STREAM_LANES + l->index};
    l->stream->state[d->number] = STREAM_SENT; /* before it leaves: the judge looks at any time */
    l->shared->next = next + 1;
    l->due_count++;
    return true;
}

/* Everything due goes out, what failed before in random order. */
static void send_all(struct lane *l)
{
    if (clock_ms() < l->wait_until) {
        return;
    }
    while (begin_upload(l)) {
    }
    for (unsigned i = l->due_count; i > 1; i--) {
        const unsigned j = roll(l, i);
        const struct due swap = l->due[i - 1];

        l->due[i - 1] = l->due[j];
        l->due[j] = swap;
    }
    for (unsigned i = 0; i < l->due_count; i++) {
        if (!l->due[i].sent && !send_due(l, &l->due[i])) {
            return;
        }
    }
}

static void note_ack(struct lane *l, struct due *d, bool duplicate)
{
    if (d->acked_before) {
        l->shared->repeated++;
        if (!duplicate) {
            l->shared->contradicted++;
        }
    } else {
        l->stream->state[d->number] = STREAM_ACKED;
        l->shared->acked++;
    }
    *d = l->due[--l->due_count];
}

static void note_refusal(struct lane *l, struct due *d, const struct profd_event *event)
{
    struct stream *s = l->stream;

    l->shared->refused++;
    if (!event->retry) {
        l->shared->rejected++;
    }
    s->last_status = event->status;
    snprintf(s->reason, sizeof s->reason, "%s", event->sentence);
    d->sent = false;
    l->wait_until = clock_ms() + 3;
}

static void answer_want(struct lane *l, const struct profd_event *event)
{
    struct profd_executable *x = NULL;

    if (!strcmp(event->build_id, l->stream->executable) && !profd_executable_open("/proc/self/exe", &x, NULL)) {
        profd_client_send_object(l->client, event, x, &l->executable_tag, NULL);
    } else {
        profd_client_send_decline(l->client, event, "it has none", NULL);
    }
    profd_executable_free(x);
}

/* The names are stored: which uploads that need them were sent by now? */
static void note_executable(struct stream *s)
{
    if (s->executable_acked) {
        return;
    }
    for (uint32_t i = 0; i < STREAM_IDS / STREAM_EVERY; i++) {
        s->sent_before[i] = s->state[stream_naming(i)] != STREAM_NEW;
    }
    s->executable_acked = 1;
}

static void take_event(struct lane *l, const struct profd_event *event)
{
    if (event->kind == PROFD_EVENT_WANT_OBJECT) {
        answer_want(l, event);
        return;
    }
    if (l->executable_tag && event->tag == l->executable_tag) {
        if (event->kind == PROFD_EVENT_ACK) {
            note_executable(l->stream);
        }
        l->executable_tag = 0;
        return;
    }
    for (unsigned i = 0; i < l->due_count; i++) {
        struct due *d = &l->due[i];

        if (!d->sent || d->tag != event->tag) {
            continue;
        }
        if (event->kind == PROFD_EVENT_ACK) {
            note_ack(l, d, event->duplicate);
        } else if (event->kind == PROFD_EVENT_NACK) {
            note_refusal(l, d, event);
        }
        return;
    }
}

/* False: the connection is over. */
static bool receive(struct lane *l)
{
    static unsigned char bytes[65536];
    struct profd_event event;
    const ssize_t n = recv(l->fd, bytes, sizeof bytes, MSG_DONTWAIT);

    if (n == 0 || (n < 0 && errno != EAGAIN && errno != EINTR)) {
        return false;
    }
    if (n > 0 && profd_client_feed(l->client, bytes, (size_t)n, NULL)) {
        return false;
    }
    while (profd_client_next(l->client, &event)) {
        if (event.kind == PROFD_EVENT_CLOSED) {
            return false;
        }
        take_event(l, &event);
    }
    return true;
}

/* Sends a piece with the descriptors that belong to its first byte. */
static ssize_t send_piece(int fd, const void *bytes, size_t n, const int *fds, size_t fd_count)
{
    struct iovec part = {.iov_base = (void *)(uintptr_t)bytes, .iov_len = n};
    union {
        struct cmsghdr align;
        char bytes[CMSG_SPACE(2 * sizeof(int))];
    } control = {.bytes = {0}};
    struct msghdr m = {.msg_iov = &part, .msg_iovlen = 1};

    if (fd_count) {
        m.msg_control = control.bytes;
        m.msg_controllen = CMSG_SPACE(fd_count * sizeof(int));
        struct cmsghdr *c = CMSG_FIRSTHDR(&m);

        c->cmsg_level = SOL_SOCKET;
        c->cmsg_type = SCM_RIGHTS;
        c->cmsg_len = CMSG_LEN(fd_count * sizeof(int));
        memcpy(CMSG_DATA(c), fds, fd_count * sizeof(int));
    }
    return sendmsg(fd, &m, MSG_NOSIGNAL | MSG_DONTWAIT);
}

static bool transmit(struct lane *l)
{
    const void *bytes;
    size_t n, fd_count;
    int fds[2];

    for (;;) {
        ssize_t sent;

        profd_client_output(l->client, &bytes, &n, fds, &fd_count);
        if (n == 0) {
            return true;
        }
        sent = send_piece(l->fd, bytes, n, fds, fd_count);
        if (sent <= 0) {
            return sent < 0 && (errno == EAGAIN || errno == EINTR);
        }
        profd_client_sent(l->client, (size_t)sent);
    }
}

static void step_lane(struct lane *l)
{
    if (!l->client) {
        connect_lane(l);
    }
    if (!l->client) {
        return;
    }
    send_all(l);
    if (!transmit(l) || !receive(l)) {
        drop_connection(l);
    }
}

static void wait_lanes(struct lane *lanes)
{
    struct pollfd p[STREAM_LANES];
    int timeout = 5;

    for (unsigned i = 0; i < STREAM_LANES; i++) {
        const void *bytes;
        size_t n = 0, fd_count;
        int fds[2];

        p[i] = (struct pollfd){.fd = lanes[i].fd, .events = POLLIN};
        if (lanes[i].client) {
            profd_client_output(lanes[i].client, &bytes, &n, fds, &fd_count);
        } else {
            timeout = 1;
        }
        if (n) {
            p[i].events |= POLLOUT;
        }
    }
    poll(p, STREAM_LANES, timeout);
    if (lanes[0].stream->pause_ns) {
        const struct timespec pause = {.tv_nsec = lanes[0].stream->pause_ns};

        nanosleep(&pause, NULL);
    }
}

int stream_run(struct stream *s)
{
    static struct lane lanes[STREAM_LANES];

    for (unsigned i = 0; i < STREAM_LANES; i++) {
        lanes[i] = (struct lane){.stream = s,
                                 .shared = &s->lanes[i],
                                 .fd = -1,
                                 .index = i,
                                 .random = UINT64_C(0x9e3779b97f4a7c15) * (i + 1 + (uint64_t)getpid())};
    }
    while (!s->quit) {
        for (unsigned i = 0; i < STREAM_LANES; i++) {
            step_lane(&lanes[i]);
            lanes[i].shared->idle = !lanes[i].due_count && (s->stop || lanes[i].shared->next >= s->most / STREAM_LANES);
        }
        wait_lanes(lanes);
    }
    for (unsigned i = 0; i < STREAM_LANES; i++) {
        drop_connection(&lanes[i]);
    }
    return 0;
}
