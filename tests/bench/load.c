/* The load generator of make bench: a real client of profd's protocol on many connections at once.
 *   load [-c CONNECTIONS] [-w WINDOW] [-t SECONDS | -n COUNT] [-r RATE] [-s SERIES] [-u UPLOADS] [-q TARGET -Q ASKERS]
 * SOCKET PAYLOAD PAYLOAD is the payload of an UPLOAD frame (tests/bench/template writes one). Each upload has its own
 * id, times and one label of SERIES. WINDOW uploads of a connection are on their way at once; -u: a connection takes a
 * new sender after so many, as if another process had begun (0: never). -r: so many a second, latencies from the
 * planned moment; else as fast as answers come. -Q connections ask TARGET again and again meanwhile. Prints one `name
 * value` a line; status 1 if the daemon broke the protocol. */
#include <errno.h>
#include <fcntl.h>
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/random.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

#include "load.h"
#include "proto/limits.h"
#include "proto/varint.h"

#define SECOND UINT64_C(1000000000)
#define TICK (SECOND / 200)
#define DRAIN_SECONDS 30

uint64_t load_now(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * SECOND + (uint64_t)t.tv_nsec;
}

/* xorshift128+ */
uint64_t load_random(struct load *l)
{
    uint64_t a = l->random[0], b = l->random[1];

    l->random[0] = b;
    a ^= a << 23;
    l->random[1] = a ^ b ^ (a >> 18) ^ (b >> 5);
    return l->random[1] + b;
}

void load_complain(struct load *l, const char *what)
{
    if (!l->failed) {
        fprintf(stderr, "load: %s\n", what);
    }
    l->failed = true;
}

static unsigned latency_bucket(uint64_t ns)
{
    unsigned shift = ns < LOAD_SUB ? 0 : 63u - (unsigned)__builtin_clzll(ns) - 6u;

    return ns < LOAD_SUB ? (unsigned)ns : (shift + 1) * LOAD_SUB + (unsigned)(ns >> shift) - LOAD_SUB;
}

void load_latency_add(struct load_latency *l, uint64_t ns)
{
    l->buckets[latency_bucket(ns)]++;
    l->count++;
    l->most = ns > l->most ? ns : l->most;
}

uint64_t load_latency_at(const struct load_latency *l, double share)
{
    uint64_t rank = (uint64_t)(share * (double)l->count), seen = 0;

    for (unsigned i = 0; i < 64 * LOAD_SUB; i++) {
        seen += l->buckets[i];
        if (seen > rank) {
            return i < LOAD_SUB ? i : (uint64_t)(LOAD_SUB + i % LOAD_SUB) << (i / LOAD_SUB - 1);
        }
    }
    return l->most;
}

/* The template without the fields that each upload has of its own. */
static bool read_payload(struct load *l)
{
    static const uint64_t own = 1u << 1 | 1u << 2 | 1u << 3 | 1u << 4 | 1u << 10;
    int fd = open(l->options.payload, O_RDONLY | O_CLOEXEC);
    struct stat st;
    uint8_t *bytes = fd >= 0 && fstat(fd, &st) == 0 ? malloc((size_t)st.st_size + 1) : NULL;
    ssize_t n = bytes ? read(fd, bytes, (size_t)st.st_size) : -1;
    const uint8_t *at = bytes, *end = bytes + (n > 0 ? n : 0);

    if (fd >= 0) {
        close(fd);
    }
    l->common = n > 0 ? malloc((size_t)n) : NULL;
    while (l->common && at < end) {
        const uint8_t *field = at;
        uint64_t key, value;

        if (!varint_get(&at, end, &key) || ((key & 7) != 1 && !varint_get(&at, end, &value)) || (key & 7) > 2) {
            return false;
        }
        value = (key & 7) == 2 ? value : (key & 7) == 1 ? 8 : 0;
        if (value > (uint64_t)(end - at)) {
            return false;
        }
        at += value;
        if (key >> 3 < 64 && (own >> (key >> 3) & 1)) {
            continue;
        }
        memcpy(l->common + l->common_size, field, (size_t)(at - field));
        l->common_size += (size_t)(at - field);
    }
    free(bytes);
    return l->common_size > 0;
}

static bool make_conns(struct load *l)
{
    struct rlimit limit;

    if (!getrlimit(RLIMIT_NOFILE, &limit) && limit.rlim_cur < limit.rlim_max) {
        limit.rlim_cur = limit.rlim_max;
        setrlimit(RLIMIT_NOFILE, &limit);
    }
    l->conn_count = l->options.connections + l->options.askers;
    l->conns = calloc(l->conn_count, sizeof *l->conns);
    l->epoll = epoll_create1(EPOLL_CLOEXEC);
    for (size_t i = 0; l->conns && i < l->conn_count; i++) {
        struct load_conn *c = &l->conns[i];

        *c = (struct load_conn){.load = l, .fd = -1, .asker = i >= l->options.connections, .window = l->options.window};
        c->slots = calloc(c->window, sizeof *c->slots);
        c->queue = calloc(c->window, sizeof *c->queue);
        if (!c->slots || !c->queue) {
            return false;
        }
    }
    return l->conns && l->epoll >= 0;
}

static void tick(struct load *l, uint64_t now)
{
    for (size_t i = 0; i < l->conn_count; i++) {
        load_conn_tick(&l->conns[i], now);
    }
}

/* Fills every window, or starts what is due by now in turn. *born is the planned moment of the next. */
static void fill(struct load *l, uint64_t now, uint64_t *born, size_t *turn)
{
    const struct load_options *o = &l->options;

    for (size_t tried = 0; tried < l->conn_count && l->filling; tried++) {
        struct load_conn *c = &l->conns[(*turn + tried) % l->conn_count];
        bool started = false;

        if (o->rate > 0 && *born > now) {
            break;
        }
        while ((!o->count || l->started < o->count) && (o->rate <= 0 || *born <= now) &&
               load_conn_start(c, o->rate > 0 ? *born : now)) {
            started = true;
            if (o->rate > 0) {
                *born += (uint64_t)((double)SECOND / o->rate);
                break;
            }
        }
        if (started) {
            load_conn_write(c);
            tried = o->rate > 0 ? (size_t)-1 : tried;
        }
        if (o->rate > 0 && started) {
            *turn = (size_t)(c - l->conns + 1) % l->conn_count;
        }
    }
    if (o->count && l->started >= o->count) {
        l->filling = false;
    }
}

static void poll_once(struct load *l, uint64_t *born, size_t *turn)
{
    struct epoll_event events[512];
    int wait = l->options.rate > 0 && l->filling ? 0 : 2;
    int n = epoll_wait(l->epoll, events, 512, wait);

    for (int i = 0; i < n; i++) {
        struct load_conn *c = events[i].data.ptr;

        if (c->state != CONN_DOWN && (events[i].events & (EPOLLIN | EPOLLHUP | EPOLLERR))) {
            load_conn_read(c);
        }
        if (l->options.rate <= 0 && l->filling && !l->options.count) {
            uint64_t now = load_now();
            while (load_conn_start(c, now)) {
                continue;
            }
        }
        load_conn_write(c);
    }
    if (l->options.rate > 0 || l->options.count) {
        fill(l, load_now(), born, turn);
    }
    if (n == 0 && wait == 0) {
        struct timespec nap = {.tv_nsec = 200000};
        nanosleep(&nap, NULL);
    }
}

static bool outstanding(const struct load *l)
{
    return l->acked < l->started && !l->failed;
}

/* Everybody is connected before the clock starts. */
static bool connect_all(struct load *l)
{
    uint64_t deadline = load_now() + 60 * SECOND, none = 0;
    size_t turn = 0;

    for (size_t i = 0; i < l->conn_count; i++) {
        load_conn_open(&l->conns[i]);
        if (i % 64 == 63) {
            poll_once(l, &none, &turn);
        }
    }
    while (l->up < l->conn_count && load_now() < deadline && !l->failed) {
        poll_once(l, &none, &turn);
        tick(l, load_now());
    }
    return l->up == l->conn_count;
}

/* Until the time or the count is over and everything is answered. Returns how long it took. */
static double run(struct load *l)
{
    uint64_t began = load_now(), born = began, next = began + TICK, second = began + SECOND, now = began, moved = began;
    uint64_t acked = 0;
    uint64_t stop = l->options.count ? UINT64_MAX : began + (uint64_t)(l->options.seconds * 1e9);
    size_t turn = 0;

    l->filling = true;
    l->slowest = UINT64_MAX;
    fill(l, began, &born, &turn);
    while (!l->failed && (l->filling || outstanding(l))) {
        poll_once(l, &born, &turn);
        now = load_now();
        if (l->filling && now >= stop) {
            l->filling = false;
        }
        if (l->filling || l->acked != acked) {
            acked = l->acked;
            moved = now;
        }
        if (now > moved + DRAIN_SECONDS * SECOND) {
            load_complain(l, "answers are missing, and none has come for 30 s");
        }
        if (now >= next) {
            tick(l, now);
            next = now + TICK;
        }
        if (l->filling && now >= second) {
            l->slowest = l->acked_in_second < l->slowest ? l->acked_in_second : l->slowest;
            l->acked_in_second = 0;
            second += SECOND;
        }
    }
    return (double)(now - began) / 1e9;
}

static void print_result(const struct load *l, double seconds)
{
    printf("connections %zu\nseconds %.3f\nacks %llu\nacks_per_second %.1f\n", l->conn_count, seconds,
           (unsigned long long)l->acked, (double)l->acked / seconds);
    printf("slowest_second %llu\n", (unsigned long long)(l->slowest == UINT64_MAX ? l->acked : l->slowest));
    printf("p50_ms %.3f\np99_ms %.3f\nmax_ms %.3f\n", (double)load_latency_at(&l->latency, 0.5) / 1e6,
           (double)load_latency_at(&l->latency, 0.99) / 1e6, (double)l->latency.most / 1e6);
    printf("duplicates %llu\nnacks %llu\nbusy %llu\nretries %llu\nrefused %llu\nreconnects %llu\ndeclined "
           "%llu\nanswers %llu\n",
           (unsigned long long)l->duplicates, (unsigned long long)l->nacked, (unsigned long long)l->busy,
           (unsigned long long)l->retries, (unsigned long long)l->refused, (unsigned long long)l->reconnects,
           (unsigned long long)l->declined, (unsigned long long)l->answers);
}

static bool parse(int argc, char *argv[], struct load_options *o)
{
    int c;

    *o = (struct load_options){.connections = 1, .window = 1, .series = 1, .seconds = 10};
    while ((c = getopt(argc, argv, "c:w:t:n:r:s:u:q:Q:")) != -1) {
        double value = optarg && c != 'q' ? strtod(optarg, NULL) : 0;

        if (c == '?' || (c != 'q' && c != 'u' && value <= 0)) {
            return false;
        }
        switch (c) {
        case 'c':
            o->connections = (unsigned)value;
            break;
        case 'w':
            o->window = (unsigned)value;
            break;
        case 't':
            o->seconds = value;
            break;
        case 'n':
            o->count = (uint64_t)value;
            break;
        case 'r':
            o->rate = value;
            break;
        case 's':
            o->series = (unsigned)value;
            break;
        case 'u':
            o->renew = (unsigned)value;
            break;
        case 'q':
            o->target = optarg;
            break;
        default:
            o->askers = (unsigned)value;
            break;
        }
    }
    if (argc - optind != 2 || (o->askers && !o->target)) {
        return false;
    }
    o->socket = argv[optind];
    o->payload = argv[optind + 1];
    return strlen(o->socket) < sizeof((struct sockaddr_un *)0)->sun_path;
}

int main(int argc, char *argv[])
{
    static struct load l;

    if (!parse(argc, argv, &l.options)) {
        fprintf(stderr,
                "usage: load [-c CONNECTIONS] [-w WINDOW] [-t SECONDS | -n COUNT] [-r RATE] [-s SERIES] [-u UPLOADS] "
                "[-q TARGET -Q ASKERS] SOCKET PAYLOAD\n");
        return 64;
    }
    if (getrandom(l.random, sizeof l.random, 0) != (ssize_t)sizeof l.random || !read_payload(&l) || !make_conns(&l)) {
        fprintf(stderr, "load: %s is no payload of an upload, or memory is short\n", l.options.payload);
        return 66;
    }
    if (!connect_all(&l)) {
        fprintf(stderr, "load: %zu of %zu connections\n", l.up, l.conn_count);
        return 69;
    }
    print_result(&l, run(&l));
    return l.failed || l.acked != l.started ? 1 : 0;
}
