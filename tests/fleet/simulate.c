/* simulate PORT CA CA-KEY|DIRECTORY hosts=N connections=M segments=K programs=P arcs=A [seconds=T | interval=T]
 * N hosts, M connections at a time, each as profd-relay makes it: HELLO, ARRIVE, K segments, of which 8 are unanswered
 * at most, and the end. With seconds, hosts come in turn for so long. With interval, each comes until its K segments
 * are acknowledged: first within 10 seconds, and again within the interval, both at random. Prints one `name value` a
 * line. */
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

#include "proto/frame.h"
#include "proto/message.h"
#include "tests/fleet/simulate.h"

#define PATIENCE_MS 20000u /* of a handshake, as profd-relay */
#define FIRST_MS 10000u    /* as profd-relay */
#define INPUT (1u << 16)
#define EVENTS 256

enum phase { FREE, CONNECTING, HANDSHAKE, GREETED, ARRIVED };

struct connection {
    enum phase phase;
    int fd;
    size_t host;
    SSL *ssl;
    uint8_t *out, in[INPUT];
    size_t out_size, out_at, in_size;
    uint32_t sent, answered; /* bits of segments */
    uint64_t deadline;
};

struct simulation {
    unsigned port, hosts, connections, segments, programs, arcs, seconds, interval;
    struct simulate_host *host;
    struct connection *connection;
    SSL_CTX *context;
    int epoll;
    size_t next, done; /* the host that comes next; hosts that have finished */
    uint64_t began, acknowledged, handshakes, refused, failed;
};

static uint64_t now_ms(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * 1000 + (uint64_t)t.tv_nsec / 1000000;
}

static uint32_t all_of(const struct simulation *s)
{
    return s->segments == 32 ? UINT32_MAX : (UINT32_C(1) << s->segments) - 1;
}

static void connection_close(struct simulation *s, struct connection *c, bool failed)
{
    struct simulate_host *h = &s->host[c->host];

    h->busy = false;
    s->failed += failed;
    h->due = failed ? now_ms() + (uint64_t)rand() % (1000u * s->interval + 1) : 0;
    if (h->acknowledged == all_of(s)) {
        h->first += s->segments;
        h->acknowledged = s->seconds ? 0 : h->acknowledged;
        s->done++;
    }
    SSL_free(c->ssl);
    close(c->fd);
    free(c->out);
    c->ssl = NULL;
    c->out = NULL;
    c->phase = FREE;
}

static void connection_say(struct connection *c, const struct message *m, uint32_t tag)
{
    uint8_t *bytes = NULL;
    size_t size = 0;

    if (message_encode(m, 0, tag, &bytes, &size, NULL)) {
        abort();
    }
    c->out = realloc(c->out, c->out_size + size);
    memcpy(c->out + c->out_size, bytes, size);
    c->out_size += size;
    free(bytes);
}

#define ON_THEIR_WAY 8u

/* Segments that are neither acknowledged nor on their way, while fewer than ON_THEIR_WAY are. */
static void connection_deliver(struct simulation *s, struct connection *c)
{
    struct simulate_host *h = &s->host[c->host];

    for (unsigned i = 0; i < s->segments; i++) {
        const uint32_t bit = UINT32_C(1) << i;
        uint8_t epoch[SEGMENT_EPOCH_SIZE], *bytes = NULL;
        struct message m = {.type = FRAME_DELIVER};
        size_t size = 0;

        if ((unsigned)__builtin_popcount(c->sent & ~c->answered) >= ON_THEIR_WAY) {
            return;
        }
        if ((h->acknowledged | c->sent) & bit) {
            continue;
        }
        simulate_epoch(c->host, epoch);
        simulate_segment(c->host, h->first + i + 1, s->programs, s->arcs, &bytes, &size);
        m.as.deliver.epoch = (struct message_bytes){epoch, sizeof epoch};
        m.as.deliver.sequence = h->first + i + 1;
        m.as.deliver.segment = (struct message_bytes){bytes, size};
        connection_say(c, &m, i + 1);
        free(bytes);
        c->sent |= bit;
    }
}

/* False: the connection has ended. */
static bool connection_answer(struct simulation *s, struct connection *c, const struct message *m, uint32_t tag)
{
    struct simulate_host *h = &s->host[c->host];
    struct message arrive = {
        .type = FRAME_ARRIVE,
        .as.arrive = {.name = "", .segment_oldest = SEGMENT_VERSION, .segment_newest = SEGMENT_VERSION}};
    struct timespec now;

    if (m->type == FRAME_WELCOME && c->phase == GREETED) {
        clock_gettime(CLOCK_REALTIME, &now);
        arrive.as.arrive.clock = (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
        arrive.as.arrive.number = h->first + 1;
        connection_say(c, &arrive, 1);
        c->phase = ARRIVED;
    } else if (m->type == FRAME_ADMIT && c->phase == ARRIVED) {
        connection_deliver(s, c);
    } else if (m->type == FRAME_ACKNOWLEDGE && tag >= 1 && tag <= s->segments) {
        const uint32_t bit = UINT32_C(1) << (tag - 1);

        s->acknowledged += !(h->acknowledged & bit);
        h->acknowledged |= bit;
        c->answered |= bit;
        connection_deliver(s, c);
    } else if (m->type == FRAME_NACK) {
        if (!s->refused++) {
            fprintf(stderr, "simulate: %s\n", m->as.nack.sentence);
        }
        return false;
    } else {
        fprintf(stderr, "simulate: %s at the wrong moment\n", frame_type_name(m->type));
        return false;
    }
    return h->acknowledged != all_of(s);
}

/* Takes the frames that are complete. False: the connection has ended. */
static bool connection_parse(struct simulation *s, struct connection *c)
{
    size_t at = 0;
    bool open = true;

    while (open && c->in_size - at >= FRAME_HEADER_SIZE) {
        struct frame f;
        struct message m;

        if (frame_decode(c->in + at, &f, NULL) || f.length > INPUT - FRAME_HEADER_SIZE) {
            return false;
        }
        if (c->in_size - at - FRAME_HEADER_SIZE < f.length) {
            break;
        }
        if (message_decode(f.type, c->in + at + FRAME_HEADER_SIZE, f.length, &m, NULL)) {
            return false;
        }
        open = connection_answer(s, c, &m, f.tag);
        message_done(&m);
        at += FRAME_HEADER_SIZE + f.length;
    }
    memmove(c->in, c->in + at, c->in_size - at);
    c->in_size -= at;
    return open;
}

/* 1: done, 0: it waits, -1: it has failed. */
static int judge(struct connection *c, int n)
{
    const int why = n > 0 ? SSL_ERROR_NONE : SSL_get_error(c->ssl, n);

    return n > 0 ? 1 : why == SSL_ERROR_WANT_READ || why == SSL_ERROR_WANT_WRITE ? 0 : -1;
}

/* False: the connection has ended. */
static bool connection_run(struct simulation *s, struct connection *c)
{
    struct message hello = {.type = FRAME_HELLO, .as.hello = {1, 1, "simulate"}};
    int n = 1;

    if (c->phase <= HANDSHAKE) {
        c->phase = HANDSHAKE;
        n = judge(c, SSL_connect(c->ssl));
        if (n <= 0) {
            return n == 0;
        }
        s->handshakes++;
        c->phase = GREETED;
        c->deadline = UINT64_MAX;
        connection_say(c, &hello, 0);
    }
    for (;;) {
        while (c->out_at < c->out_size && n > 0) {
            const int put = SSL_write(c->ssl, c->out + c->out_at, (int)(c->out_size - c->out_at));

            n = judge(c, put);
            c->out_at += n > 0 ? (size_t)put : 0;
        }
        if (c->out_at == c->out_size) {
            c->out_at = c->out_size = 0;
        }
        const int got = n < 0 ? -1 : SSL_read(c->ssl, c->in + c->in_size, (int)(INPUT - c->in_size));

        n = n < 0 ? n : judge(c, got);
        if (n <= 0) {
            return n == 0;
        }
        c->in_size += (size_t)got;
        if (!connection_parse(s, c)) {
            return false;
        }
    }
}

/* Begins a connection of the host, from one of some addresses: the gate limits handshakes per address. */
static void connection_open(struct simulation *s, struct connection *c, size_t host)
{
    struct sockaddr_in to = {.sin_family = AF_INET, .sin_port = htons((uint16_t)s->port)}, from = to;
    struct epoll_event event = {.events = EPOLLIN | EPOLLOUT | EPOLLET, .data.ptr = c};

    to.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    from.sin_addr.s_addr = htonl((uint32_t)(INADDR_LOOPBACK + 256 * (1 + host % 100)));
    from.sin_port = 0;
    c->phase = CONNECTING;
    c->host = host;
    c->fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    c->ssl = SSL_new(s->context);
    c->out_size = c->out_at = c->in_size = 0;
    c->sent = c->answered = 0;
    c->deadline = now_ms() + PATIENCE_MS;
    s->host[host].busy = true;
    if (c->fd < 0 || !c->ssl || bind(c->fd, (const struct sockaddr *)&from, sizeof from) ||
        (connect(c->fd, (const struct sockaddr *)&to, sizeof to) && errno != EINPROGRESS) ||
        epoll_ctl(s->epoll, EPOLL_CTL_ADD, c->fd, &event) ||
        SSL_use_certificate(c->ssl, s->host[host].certificate) != 1 ||
        SSL_use_PrivateKey(c->ssl, s->host[host].key) != 1 || SSL_set_fd(c->ssl, c->fd) != 1) {
        connection_close(s, c, true);
    } else {
        SSL_set_connect_state(c->ssl);
    }
}

/* A host that is not connected and has something to send, or hosts. */
static size_t next_host(struct simulation *s)
{
    const uint64_t now = now_ms();

    for (unsigned i = 0; i < s->hosts; i++) {
        const size_t host = s->next++ % s->hosts;

        if (!s->host[host].busy && s->host[host].due <= now && s->host[host].acknowledged != all_of(s)) {
            return host;
        }
    }
    return s->hosts;
}

/* Opens what is free, and ends what took too long. */
static void tend(struct simulation *s)
{
    const uint64_t now = now_ms();
    bool more = true;

    for (unsigned i = 0; i < s->connections; i++) {
        struct connection *c = &s->connection[i];

        if (c->phase != FREE && now > c->deadline) {
            connection_close(s, c, true);
        }
        if (c->phase == FREE && more) {
            const size_t host = next_host(s);

            more = host < s->hosts;
            if (more) {
                connection_open(s, c, host);
            }
        }
    }
}

static void run(struct simulation *s)
{
    struct epoll_event events[EVENTS];
    const uint64_t end = s->seconds ? now_ms() + 1000 * (uint64_t)s->seconds : UINT64_MAX;
    uint64_t tended = 0;

    s->began = now_ms();
    for (unsigned i = 0; i < s->hosts && s->interval; i++) {
        s->host[i].due = s->began + (uint64_t)rand() % FIRST_MS;
    }
    while (now_ms() < end && (s->seconds || s->done < s->hosts)) {
        const int n = epoll_wait(s->epoll, events, EVENTS, 5);

        for (int i = 0; i < n; i++) {
            struct connection *c = events[i].data.ptr;

            if (c->phase == CONNECTING && !(events[i].events & EPOLLOUT)) {
                continue;
            }
            if (c->phase != FREE && !connection_run(s, c)) {
                connection_close(s, c, s->host[c->host].acknowledged != all_of(s));
            }
        }
        if (now_ms() - tended >= 5) {
            tended = now_ms();
            tend(s);
        }
    }
}

static unsigned option(int argc, char *argv[], const char *name, unsigned otherwise)
{
    const size_t n = strlen(name);

    for (int i = 4; i < argc; i++) {
        if (!strncmp(argv[i], name, n) && argv[i][n] == '=') {
            return (unsigned)strtoul(argv[i] + n + 1, NULL, 10);
        }
    }
    return otherwise;
}

static void print(const struct simulation *s)
{
    struct rusage u;
    const double took = (double)(now_ms() - s->began) / 1000;

    getrusage(RUSAGE_SELF, &u);
    printf("seconds %.2f\nsegments %llu\nsegments_per_second %.0f\nhandshakes %llu\nhosts_done %zu\nrefused %llu\n"
           "failed %llu\ncpu %.2f\n",
           took, (unsigned long long)s->acknowledged, (double)s->acknowledged / took, (unsigned long long)s->handshakes,
           s->done, (unsigned long long)s->refused, (unsigned long long)s->failed,
           (double)(u.ru_utime.tv_sec + u.ru_stime.tv_sec) +
               (double)(u.ru_utime.tv_usec + u.ru_stime.tv_usec) / 1000000);
}

int main(int argc, char *argv[])
{
    struct rlimit files = {65536, 65536};
    struct simulation s = {.port = argc > 3 ? (unsigned)strtoul(argv[1], NULL, 10) : 0};

    s.hosts = option(argc, argv, "hosts", 100);
    s.connections = option(argc, argv, "connections", 100);
    s.segments = option(argc, argv, "segments", SIMULATE_PER_CONNECTION);
    s.programs = option(argc, argv, "programs", 20);
    s.arcs = option(argc, argv, "arcs", 100);
    s.seconds = option(argc, argv, "seconds", 0);
    s.interval = option(argc, argv, "interval", 0);
    if (!s.port || !s.hosts || !s.connections || s.segments < 1 || s.segments > 32 || !s.programs) {
        fprintf(
            stderr,
            "simulate PORT CA CA-KEY|DIRECTORY hosts=N connections=M segments=1-32 programs=P arcs=A [seconds=T]\n");
        return 64;
    }
    (void)setrlimit(RLIMIT_NOFILE, &files);
    (void)signal(SIGPIPE, SIG_IGN); /* OpenSSL writes as if to a file */
    s.host = calloc(s.hosts, sizeof *s.host);
    s.connection = calloc(s.connections, sizeof *s.connection);
    s.context = SSL_CTX_new(TLS_client_method());
    s.epoll = epoll_create1(EPOLL_CLOEXEC);
    if (!s.host || !s.connection || !s.context || s.epoll < 0 ||
        SSL_CTX_load_verify_locations(s.context, argv[2], NULL) != 1) {
        fprintf(stderr, "simulate: no memory, or %s is no certificate\n", argv[2]);
        return 1;
    }
    SSL_CTX_set_verify(s.context, SSL_VERIFY_PEER, NULL);
    SSL_CTX_set_mode(s.context,
                     SSL_MODE_RELEASE_BUFFERS | SSL_MODE_ENABLE_PARTIAL_WRITE | SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER);
    simulate_certify(argv[2], argv[3], s.host, s.hosts);
    run(&s);
    print(&s);
    return 0;
}
