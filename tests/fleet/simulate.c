/* simulate PORT CA TOKENS hosts=N connections=M uploads=K batches=B programs=P arcs=A [centre=HEX] seconds=T | herd=1
 * N hosts over HTTPS, M connections at a time, each as profd-relay makes it: POST of a batch of K uploads, the answer,
 * and the next one on the same connection. TOKENS has a token in each line, for each host one; or one for all of them,
 * and then batches name their host.
 * With seconds, hosts come in turn for so long, and send B batches on each connection. With herd, each host has one
 * batch: it sends it within 10 seconds for the first time, at random, and again until it is acknowledged as profd-relay
 * does, after half to one second, then twice that and so on. Prints one `name value` a line. */
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <openssl/err.h>
#include <openssl/ssl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/epoll.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

#include "tests/fleet/simulate.h"

#define PATIENCE_MS 90000u /* of a connection that answers nothing, as profd-relay */
#define FIRST_MS 10000u    /* as profd-relay */
#define BACK_OFF_MS 1000u  /* at most, after the first failure */
#define BACK_OFF_MOST 8u   /* doublings */
#define INPUT (1u << 16)
#define EVENTS 256
#define TOKEN_SIZE 128
#define CENTRE_SIZE 16

enum phase { FREE, CONNECTING, HANDSHAKE, RESTING, ASKING };

struct host {
    uint64_t first; /* its next uploads have the sequences from first + 1 on */
    uint64_t due;   /* ms of the monotonic clock: it sends nothing before */
    unsigned failures;
    bool busy, done;
};

struct connection {
    enum phase phase;
    int fd;
    size_t host;
    SSL *ssl;
    uint8_t *out, *in; /* in: INPUT bytes, elsewhere, so that a look at all connections is quick */
    size_t out_size, out_at, in_size;
    unsigned batches; /* that were answered on it */
    bool made;        /* out is the batch that the host sends, or sends again */
    uint64_t deadline;
};

struct simulation {
    unsigned port, hosts, connections, uploads, batches, programs, arcs, seconds, herd;
    struct host *host;
    struct connection *connection;
    char (*token)[TOKEN_SIZE];
    size_t token_count;
    SSL_CTX *context;
    int epoll;
    bool has_centre;
    uint8_t centre[CENTRE_SIZE];
    size_t next, done; /* the host that comes next; hosts that have finished */
    uint64_t began, acknowledged, requests, handshakes, refused, failed, unopened;
    char said[400]; /* the first refusal */
};

static uint64_t now_ms(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * 1000 + (uint64_t)t.tv_nsec / 1000000;
}

static void connection_close(struct simulation *s, struct connection *c)
{
    s->host[c->host].busy = false;
    SSL_free(c->ssl);
    close(c->fd);
    free(c->out);
    c->ssl = NULL;
    c->out = NULL;
    c->phase = FREE;
}

/* The host tries again later. */
static void host_fail(struct host *h)
{
    const uint64_t most = (uint64_t)BACK_OFF_MS << (h->failures < BACK_OFF_MOST ? h->failures : BACK_OFF_MOST);

    h->due = now_ms() + most / 2 + (uint64_t)rand() % (most / 2 + 1);
    h->failures++;
}

/* The next batch of the host. Before the centre is known, it is empty. */
static void connection_make(struct simulation *s, struct connection *c)
{
    const struct host *h = &s->host[c->host];
    uint8_t *bytes = NULL;
    char head[512];
    size_t size = 0;
    struct simulate_batch batch = {.centre = s->has_centre ? s->centre : NULL,
                                   .named = s->token_count == 1,
                                   .host = c->host,
                                   .first = h->first,
                                   .uploads = s->has_centre ? s->uploads : 0,
                                   .programs = s->programs,
                                   .arcs = s->arcs};

    simulate_make_batch(&batch, &bytes, &size);
    const int n = snprintf(head, sizeof head,
                           "POST /api/v1/uploads HTTP/1.1\r\nHost: localhost:%u\r\nAuthorization: Bearer %s\r\n"
                           "Content-Type: application/x-protobuf\r\nContent-Length: %zu\r\n\r\n",
                           s->port, s->token[c->host % s->token_count], size);
    c->out_size = (size_t)n + size;
    c->made = true;
    c->out = realloc(c->out, c->out_size);
    if (!c->out) {
        abort();
    }
    memcpy(c->out, head, (size_t)n);
    memcpy(c->out + n, bytes, size);
    free(bytes);
}

static void connection_ask(struct simulation *s, struct connection *c)
{
    if (!c->made) {
        connection_make(s, c);
    }
    c->out_at = c->in_size = 0;
    c->phase = ASKING;
    c->deadline = now_ms() + PATIENCE_MS;
}

static unsigned count_of(const char *text, const char *word)
{
    unsigned n = 0;

    for (const char *at = text; (at = strstr(at, word)); at += strlen(word)) {
        n++;
    }
    return n;
}

/* The name of the centre behind this word. */
static bool read_centre(const char *text, const char *word, uint8_t out[CENTRE_SIZE])
{
    const char *at = strstr(text, word);

    for (unsigned i = 0; at && i < CENTRE_SIZE; i++) {
        unsigned byte;

        if (sscanf(at + strlen(word) + 2 * i, "%2x", &byte) != 1) {
            return false;
        }
        out[i] = (uint8_t)byte;
    }
    return at != NULL;
}

/* A whole answer has come. False: the connection ends. */
static bool connection_take(struct simulation *s, struct connection *c, unsigned status, const char *body, bool close)
{
    struct host *h = &s->host[c->host];
    const bool learns = !s->has_centre;
    const unsigned n =
        status == 200 ? count_of(body, "\"outcome\":\"counted\"") + count_of(body, "\"outcome\":\"known\"") : 0;

    s->requests++;
    c->phase = RESTING;
    c->in_size = 0;
    c->deadline = UINT64_MAX;
    if (status == 200 && learns) {
        s->has_centre = read_centre(body, "\"centre\":\"", s->centre);
        c->made = false;
    } else if (status == 200 && n == s->uploads) {
        s->acknowledged += n;
        h->first += n;
        h->failures = 0;
        c->batches++;
        c->made = false;
        if (s->herd || c->batches == s->batches) {
            h->done = s->herd;
            s->done++;
            return false;
        }
    } else {
        if (!s->refused++) {
            snprintf(s->said, sizeof s->said, "%u %.300s", status, body);
        }
        host_fail(h);
    }
    return !close;
}

/* Takes an answer if it is complete. False: the connection ends. */
static bool connection_parse(struct simulation *s, struct connection *c)
{
    static const char sized[] = "\r\ncontent-length:", ends[] = "\r\nconnection: close";
    char *text = (char *)c->in, *body, *length, *close;
    unsigned status;
    size_t size;

    c->in[c->in_size] = '\0';
    body = strstr(text, "\r\n\r\n");
    if (!body) {
        return c->in_size < INPUT - 1;
    }
    body += 4;
    length = strcasestr(text, sized);
    close = strcasestr(text, ends);
    if (sscanf(text, "HTTP/1.1 %u", &status) != 1 || !length || length >= body) {
        fprintf(stderr, "simulate: an answer without a length: %.300s\n", text);
        return false;
    }
    size = strtoul(length + sizeof sized - 1, NULL, 10);
    if (c->in_size - (size_t)(body - text) < size) {
        return c->in_size < INPUT - 1;
    }
    return connection_take(s, c, status, body, close && close < body);
}

/* 1: done, 0: it waits, -1: it has failed. */
static int judge(struct connection *c, int n)
{
    const int why = n > 0 ? SSL_ERROR_NONE : SSL_get_error(c->ssl, n);

    if (n <= 0) {
        ERR_clear_error();
    }
    return n > 0 ? 1 : why == SSL_ERROR_WANT_READ || why == SSL_ERROR_WANT_WRITE ? 0 : -1;
}

/* False: the connection has ended. */
static bool connection_run(struct simulation *s, struct connection *c)
{
    int n = 1;

    if (c->phase <= HANDSHAKE) {
        c->phase = HANDSHAKE;
        n = judge(c, SSL_connect(c->ssl));
        if (n <= 0) {
            return n == 0;
        }
        s->handshakes++;
        c->phase = RESTING;
        c->deadline = UINT64_MAX;
    }
    for (;;) {
        if (c->phase == RESTING && s->host[c->host].due <= now_ms()) {
            connection_ask(s, c);
        }
        n = 1;
        while (c->phase == ASKING && c->out_at < c->out_size && n > 0) {
            const int put = SSL_write(c->ssl, c->out + c->out_at, (int)(c->out_size - c->out_at));

            n = judge(c, put);
            c->out_at += n > 0 ? (size_t)put : 0;
        }
        const int got = n < 0 ? -1 : SSL_read(c->ssl, c->in + c->in_size, (int)(INPUT - 1 - c->in_size));

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

static void connection_fail(struct simulation *s, struct connection *c)
{
    const bool open = c->phase != RESTING;

    /* A server may end a connection on which nothing is asked. */
    if (open) {
        s->failed++;
        s->unopened += c->phase != ASKING;
        host_fail(&s->host[c->host]);
    }
    connection_close(s, c);
}

static void connection_open(struct simulation *s, struct connection *c, size_t host)
{
    struct sockaddr_in to = {.sin_family = AF_INET, .sin_port = htons((uint16_t)s->port)};
    struct epoll_event event = {.events = EPOLLIN | EPOLLOUT | EPOLLET, .data.ptr = c};

    to.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    c->phase = CONNECTING;
    c->host = host;
    c->fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    c->ssl = SSL_new(s->context);
    c->out_size = c->out_at = c->in_size = 0;
    c->batches = 0;
    c->made = false;
    c->deadline = now_ms() + PATIENCE_MS;
    s->host[host].busy = true;
    if (c->fd < 0 || !c->ssl || (connect(c->fd, (const struct sockaddr *)&to, sizeof to) && errno != EINPROGRESS) ||
        epoll_ctl(s->epoll, EPOLL_CTL_ADD, c->fd, &event) || SSL_set_fd(c->ssl, c->fd) != 1) {
        connection_fail(s, c);
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

        if (!s->host[host].busy && !s->host[host].done && s->host[host].due <= now) {
            return host;
        }
    }
    return s->hosts;
}

/* Opens what is free, goes on where a host has waited, and ends what took too long. Until the centre is known, there is
 * one connection. */
static void tend(struct simulation *s)
{
    const uint64_t now = now_ms();
    bool more = true;

    for (unsigned i = 0; i < (s->has_centre ? s->connections : 1); i++) {
        struct connection *c = &s->connection[i];

        if (c->phase != FREE && now > c->deadline) {
            connection_fail(s, c);
        }
        if (c->phase == RESTING && s->host[c->host].due <= now && !connection_run(s, c)) {
            connection_fail(s, c);
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
    for (unsigned i = 0; i < s->hosts && s->herd; i++) {
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
                connection_fail(s, c);
            }
        }
        if (now_ms() - tended >= 20) {
            tended = now_ms();
            tend(s);
        }
    }
}

static void read_tokens(struct simulation *s, const char *path)
{
    char line[TOKEN_SIZE];
    FILE *f = fopen(path, "r");

    s->token = calloc(s->hosts, sizeof *s->token);
    while (f && s->token && s->token_count < s->hosts && fgets(line, sizeof line, f)) {
        line[strcspn(line, "\n")] = '\0';
        snprintf(s->token[s->token_count++], TOKEN_SIZE, "%s", line);
    }
    if (!f || (s->token_count != 1 && s->token_count != s->hosts)) {
        fprintf(stderr, "simulate: %s has %zu tokens, not 1 or %u\n", path, s->token_count, s->hosts);
        exit(1);
    }
    fclose(f);
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

static bool option_centre(int argc, char *argv[], uint8_t out[CENTRE_SIZE])
{
    for (int i = 4; i < argc; i++) {
        if (read_centre(argv[i], "centre=", out)) {
            return true;
        }
    }
    return false;
}

static void print(const struct simulation *s)
{
    struct rusage u;
    const double took = (double)(now_ms() - s->began) / 1000;

    getrusage(RUSAGE_SELF, &u);
    printf("seconds %.2f\nuploads %llu\nuploads_per_second %.0f\nrequests %llu\nhandshakes %llu\nhosts_done %zu\n"
           "refused %llu\nfailed %llu\nunopened %llu\ncpu %.2f\n",
           took, (unsigned long long)s->acknowledged, (double)s->acknowledged / took, (unsigned long long)s->requests,
           (unsigned long long)s->handshakes, s->done, (unsigned long long)s->refused, (unsigned long long)s->failed,
           (unsigned long long)s->unopened,
           (double)(u.ru_utime.tv_sec + u.ru_stime.tv_sec) +
               (double)(u.ru_utime.tv_usec + u.ru_stime.tv_usec) / 1000000);
    printf("centre ");
    for (unsigned i = 0; i < CENTRE_SIZE; i++) {
        printf("%02x", s->centre[i]);
    }
    printf("\n");
    if (s->refused) {
        fprintf(stderr, "simulate: the first refusal: %s\n", s->said);
    }
}

int main(int argc, char *argv[])
{
    struct rlimit files;
    struct simulation s = {.port = argc > 3 ? (unsigned)strtoul(argv[1], NULL, 10) : 0};

    s.hosts = option(argc, argv, "hosts", 100);
    s.connections = option(argc, argv, "connections", 100);
    s.uploads = option(argc, argv, "uploads", 20);
    s.batches = option(argc, argv, "batches", 5);
    s.programs = option(argc, argv, "programs", 20);
    s.arcs = option(argc, argv, "arcs", 100);
    s.seconds = option(argc, argv, "seconds", 0);
    s.herd = option(argc, argv, "herd", 0);
    s.has_centre = option_centre(argc, argv, s.centre);
    if (!s.port || !s.hosts || !s.connections || !s.uploads || s.uploads > 256 || !s.batches || !s.programs ||
        !s.seconds == !s.herd) {
        fprintf(stderr, "simulate PORT CA TOKENS hosts=N connections=M uploads=1-256 batches=B programs=P arcs=A "
                        "[centre=HEX] "
                        "seconds=T | herd=1\n");
        return 64;
    }
    getrlimit(RLIMIT_NOFILE, &files);
    files.rlim_cur = files.rlim_max;
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
    read_tokens(&s, argv[3]);
    uint8_t *input = malloc((size_t)s.connections * INPUT);
    for (unsigned i = 0; i < s.connections && input; i++) {
        s.connection[i].in = input + (size_t)i * INPUT;
    }
    if (!input) {
        abort();
    }
    SSL_CTX_set_verify(s.context, SSL_VERIFY_PEER, NULL);
    SSL_CTX_set_mode(s.context,
                     SSL_MODE_RELEASE_BUFFERS | SSL_MODE_ENABLE_PARTIAL_WRITE | SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER);
    run(&s);
    print(&s);
    return 0;
}
