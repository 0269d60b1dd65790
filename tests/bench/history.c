/* Segments of simulated hosts for the bench of ClickHouse, through the engine as a daemon has it. Usage:
 *   history URL put HOUR SEGMENTS HOSTS PROGRAMS FIRST   stores segments of each program that count in the hour, from
 * hosts FIRST to FIRST + HOSTS − 1; prints rows, segments and seconds history URL compact HOUR rolls up the hours
 * before it */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <curl/curl.h>

#include "clickhouse/engine.h"
#include "core/rollup_segment.h"

#define HOUR INT64_C(3600000000000)
#define BATCH 500u
#define BINS 120u
#define ARCS 350u
#define KINDS 1500u /* different arcs of a program */

static struct store *store;
static struct profd_error e;

static void check(enum profd_status status, const char *what)
{
    if (status != PROFD_OK) {
        fprintf(stderr, "%s: %s\n", what, e.sentence);
        exit(1);
    }
}
#define OK(call) check((call), #call)

static double now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

static uint64_t draw(uint64_t below)
{
    static uint64_t x = UINT64_C(88172645463325252);
    x ^= x << 13;
    x ^= x >> 7;
    x ^= x << 17;
    return x % below;
}

struct made {
    struct segment segment;
    uint8_t *bytes;
    struct message_build builds[2];
    char program[41];
};

static void fill(struct counts *c)
{
    unsigned at = 0;
    c->histograms[0] = (struct counts_histogram){.geometry = {.bins = 16384,
                                                              .low = 0x1000,
                                                              .high = 0x1000 + 16384 * 4,
                                                              .rate = 100,
                                                              .dimension = "seconds",
                                                              .abbreviation = 's'},
                                                 .used = BINS};
    for (unsigned i = 0; i < BINS; i++) {
        at += 1 + (unsigned)draw(100);
        c->bin_index[i] = at;
        c->bin_ticks[i] = 1 + draw(50);
    }
    for (unsigned i = 0; i < ARCS; i++) {
        const unsigned q = (unsigned)draw(KINDS);
        c->from_build[i] = 0;
        c->to_build[i] = q % 8 == 0;
        c->from[i] = 0x1000 + q * 40;
        c->to[i] = 0x1000 + q % 700 * 64;
        c->calls[i] = 1 + draw(100000);
    }
}

/* A segment of a host: one to three processes. */
static void make(struct made *m, int64_t hour, unsigned program, unsigned host, uint64_t sequence,
                 struct store_delivery *d)
{
    struct arena *a = arena_new(0);
    struct rollup_sum *sum = rollup_sum_new(a);
    struct rollup r;
    struct rollup_spread spread;
    size_t size;
    struct segment *x = &m->segment;
    snprintf(m->program, sizeof m->program, "aa%038x", program);
    m->builds[0] = (struct message_build){.build_id = m->program, .name = "/usr/bin/program"};
    m->builds[1] =
        (struct message_build){.build_id = "bb02000000000000000000000000000000000000", .name = "/lib/libc.so.6"};
    *x = (struct segment){.kind = SEGMENT_COUNTS,
                          .sequence = sequence,
                          .hour = hour,
                          .first = hour * HOUR,
                          .last = hour * HOUR + (int64_t)draw(3600) * INT64_C(1000000000),
                          .uploads = 1 + draw(3),
                          .build_count = 2,
                          .builds = m->builds};
    x->ended = x->last;
    memcpy(x->epoch + 4, &host, sizeof host);
    memcpy(x->epoch + 8, &hour, 4);
    for (uint64_t i = 0; i < x->uploads; i++) {
        struct counts c;
        const unsigned group = (unsigned)draw(SEGMENT_GROUPS);
        OK(counts_init(&c, 1, BINS, ARCS, &e));
        fill(&c);
        OK(rollup_sum_add_upload(sum, &c, i + 1, group, &e));
        x->processes[group]++;
        counts_done(&c);
    }
    OK(rollup_sum_finish(sum, &r, &spread, &e));
    OK(rollup_make_segment(&r, &spread, a, x, &e));
    OK(segment_encode(x, &m->bytes, &size, &e));
    OK(segment_decode(m->bytes, size, x, &e));
    *d = (struct store_delivery){
        .sequence = sequence, .segment = x, .bytes = m->bytes, .size = size, .received = (hour + 1) * HOUR};
    memset(d->host, 1, sizeof d->host);
    memcpy(d->host, &host, sizeof host);
    memcpy(d->epoch, x->epoch, sizeof d->epoch);
    memcpy(d->digest, m->bytes + SEGMENT_DIGEST_AT, sizeof d->digest);
    arena_free(a);
}

static void admit(int64_t hour, unsigned first, unsigned hosts)
{
    const struct store_detail detail = {.when = STORE_DETAIL_NEVER};
    store_set_detail(store, &detail);
    for (unsigned host = first; host < first + hosts; host++) {
        char name[16];
        struct store_arrival a = {.name = name, .now = (hour + 1) * HOUR};
        struct store_admission out;
        snprintf(name, sizeof name, "h%05u", host);
        memset(a.host, 1, sizeof a.host);
        memcpy(a.host, &host, sizeof host);
        OK(store_admit_hosts(store, &a, 1, &out, &e));
    }
}

static void put(int64_t hour, unsigned segments, unsigned hosts, unsigned programs, unsigned first)
{
    static struct made made[BATCH];
    static struct store_delivery list[BATCH];
    static struct store_receipt receipts[BATCH];
    double seconds = 0;
    uint64_t rows = 0, stored = 0;
    admit(hour, first, hosts);
    for (unsigned at = 0; at < segments;) {
        unsigned n = 0;
        for (; n < BATCH && at < segments; n++, at++) {
            make(&made[n], hour, at % programs, first + at % hosts, at + 1, &list[n]);
            for (unsigned g = 0; g < SEGMENT_GROUPS; g++) {
                rows += made[n].segment.processes[g] > 0;
            }
        }
        const double began = now(); /* making them is not what is measured */
        OK(store_put_segments(store, list, n, receipts, &e));
        seconds += now() - began;
        for (unsigned i = 0; i < n; i++) {
            stored += receipts[i].verdict == STORE_ARRIVED && receipts[i].outcome == STORE_SEGMENT_COUNTED;
            segment_done(&made[i].segment);
            free(made[i].bytes);
        }
    }
    printf("%" PRIu64 " %" PRIu64 " %.3f\n", rows, stored, seconds);
}

static void compact(int64_t hour)
{
    const struct store_policy policy = {.raw_age = HOUR};
    struct store_progress progress = {.more = true};
    while (progress.more) {
        OK(store_compact(store, &policy, hour * HOUR, &progress, &e));
    }
}

int main(int argc, char **argv)
{
    struct clickhouse_address address;
    if (argc < 4 || curl_global_init(CURL_GLOBAL_DEFAULT) != CURLE_OK) {
        return 64;
    }
    OK(clickhouse_parse_address(argv[1], &address, &e));
    OK(store_clickhouse_open(&address, NULL, true, &store, &e));
    if (strcmp(argv[2], "put") == 0 && argc == 8) {
        put(atoll(argv[3]), (unsigned)atoi(argv[4]), (unsigned)atoi(argv[5]), (unsigned)atoi(argv[6]),
            (unsigned)atoi(argv[7]));
    } else {
        compact(atoll(argv[3]));
    }
    store_close(store);
    return 0;
}
