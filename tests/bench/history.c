/* Segments of simulated hosts for the bench of ClickHouse, through the engine as a daemon has it. Usage:
 *   history URL put HOUR SEGMENTS HOSTS PROGRAMS FIRST STACKS
 *     stores segments of each program that count in the hour, from hosts FIRST to FIRST + HOSTS − 1, with stacks if
 *     STACKS is 1; prints rows, segments and seconds
 *   history URL symbols PROGRAMS
 *     stores the symbols of each program, and of the library that all use
 *   history URL compact HOUR
 *     rolls up the hours before it */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <curl/curl.h>

#include "clickhouse/engine.h"
#include "core/object.h"
#include "core/rollup_segment.h"
#include "proto/counts_tree.h"

#define HOUR INT64_C(3600000000000)
#define BATCH 500u
#define BINS 120u
#define ARCS 350u
#define KINDS 1500u /* different arcs of a program */
#define FUNCTIONS 1024u
#define FUNCTION_BYTES 64u
#define CODE 0x1000u    /* address of the first function */
#define LEVELS 5u       /* of a tree of stacks: functions call up to 4 others */
#define NODES_MOST 700u /* 341 frames, and a tick in each at most */
#define LIBRARY "bb02000000000000000000000000000000000000"

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

static void add_node(struct counts *c, unsigned depth, uint8_t kind, uint64_t address, uint64_t ticks)
{
    const uint32_t i = c->node_count++;
    c->node_depth[i] = (uint8_t)depth;
    c->node_kind[i] = kind;
    c->node_build[i] = 0;
    c->node_address[i] = address;
    c->node_ticks[i] = ticks;
}

/* A function on a stack: a tick in it, then half of the functions that it may call. They have greater addresses. */
static void grow(struct counts *c, unsigned depth, unsigned function)
{
    const uint64_t start = CODE + function * FUNCTION_BYTES;
    add_node(c, depth, COUNTS_NODE_RETURN, start + 8, 0);
    add_node(c, depth + 1, COUNTS_NODE_PC, start + 16 + 4 * draw(4), 1 + draw(3));
    for (unsigned i = 1; i <= 4 && depth + 1 < LEVELS; i++) {
        if (draw(2) == 0) {
            grow(c, depth + 1, 4 * function + i);
        }
    }
}

static void fill_stacks(struct counts *c)
{
    c->node_count = 0;
    grow(c, 0, 0);
    c->trees[0] = (struct counts_tree){.rate = 100, .dimension = "seconds", .abbreviation = 's', .used = c->node_count};
}

static void fill(struct counts *c)
{
    unsigned at = 0;
    c->histograms[0] = (struct counts_histogram){.geometry = {.bins = 16384,
                                                              .low = CODE,
                                                              .high = CODE + 16384 * 4,
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
        c->from[i] = CODE + q * 40;
        c->to[i] = CODE + q % 700 * FUNCTION_BYTES;
        c->calls[i] = 1 + draw(100000);
    }
}

/* A segment of a host: one to three processes. */
static void make(struct made *m, int64_t hour, unsigned program, unsigned host, uint64_t sequence, bool stacks,
                 struct store_delivery *d)
{
    struct arena *a = arena_new(0);
    struct rollup_sum *sum = rollup_sum_new(a);
    struct rollup r;
    struct rollup_spread spread;
    size_t size;
    const struct counts_sizes sizes = {1, BINS, ARCS, stacks, stacks ? NODES_MOST : 0};
    struct segment *x = &m->segment;
    snprintf(m->program, sizeof m->program, "aa%038x", program);
    m->builds[0] = (struct message_build){.build_id = m->program, .name = "/usr/bin/program"};
    m->builds[1] = (struct message_build){.build_id = LIBRARY, .name = "/lib/libc.so.6"};
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
        OK(counts_init_sizes(&c, &sizes, &e));
        fill(&c);
        if (stacks) {
            fill_stacks(&c);
        }
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
    for (unsigned at = 0; at < hosts; at += BATCH) {
        static struct store_arrival list[BATCH];
        static struct store_admission out[BATCH];
        static char names[BATCH][16];
        unsigned n = 0;
        for (; n < BATCH && at + n < hosts; n++) {
            const unsigned host = first + at + n;
            (void)snprintf(names[n], sizeof names[n], "h%05u", host);
            list[n] = (struct store_arrival){.name = names[n], .now = (hour + 1) * HOUR};
            memset(list[n].host, 1, sizeof list[n].host);
            memcpy(list[n].host, &host, sizeof host);
        }
        OK(store_admit_hosts(store, list, n, out, &e));
    }
}

static void put(int64_t hour, unsigned segments, unsigned hosts, unsigned programs, unsigned first, bool stacks)
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
            make(&made[n], hour, at % programs, first + at % hosts, at + 1, stacks, &list[n]);
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

/* Functions of FUNCTION_BYTES each, from CODE on. */
static void put_symbols(const char *build)
{
    static struct object_symbol symbols[FUNCTIONS];
    static char names[1 + FUNCTIONS * 32];
    struct object_range text = {.low = CODE, .high = CODE + FUNCTIONS * FUNCTION_BYTES, .kind = OBJECT_RANGE_TEXT};
    struct object o = {.machine = 62, /* EM_X86_64 */
                       .bits = 64,
                       .has_names = true,
                       .symbol_count = FUNCTIONS,
                       .symbols = symbols,
                       .range_count = 1,
                       .ranges = &text,
                       .names = names,
                       .name_bytes = 1,
                       .note = ""};
    uint8_t *bytes;
    size_t size;
    for (unsigned i = 0; i < FUNCTIONS; i++) {
        const uint32_t name = o.name_bytes;
        o.name_bytes += 1 + (uint32_t)snprintf(names + name, 32, "function_%u", i);
        symbols[i] = (struct object_symbol){.address = CODE + i * FUNCTION_BYTES,
                                            .size = FUNCTION_BYTES,
                                            .name = name,
                                            .demangled = name,
                                            .bind = OBJECT_BIND_GLOBAL,
                                            .type = OBJECT_TYPE_FUNCTION,
                                            .flags = OBJECT_SYMBOL_EXECUTABLE};
    }
    (void)snprintf(o.id.text, sizeof o.id.text, "%s", build);
    memset(o.variant, 'a', sizeof o.variant - 1);
    OK(object_encode(&o, &bytes, &size, &e));
    struct store_object object = {.id = o.id,
                                  .trusted = true,
                                  .has_names = true,
                                  .encoded = bytes,
                                  .encoded_size = size,
                                  .name = "",
                                  .note = "",
                                  .received = INT64_C(1)};
    memcpy(object.variant, o.variant, sizeof object.variant);
    OK(store_put_object(store, &object, &e));
    free(bytes);
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
    if (strcmp(argv[2], "put") == 0 && argc == 9) {
        put(atoll(argv[3]), (unsigned)atoi(argv[4]), (unsigned)atoi(argv[5]), (unsigned)atoi(argv[6]),
            (unsigned)atoi(argv[7]), strcmp(argv[8], "1") == 0);
    } else if (strcmp(argv[2], "symbols") == 0) {
        put_symbols(LIBRARY);
        for (int i = 0; i < atoi(argv[3]); i++) {
            char program[41];
            (void)snprintf(program, sizeof program, "aa%038x", (unsigned)i);
            put_symbols(program);
        }
    } else {
        compact(atoll(argv[3]));
    }
    store_close(store);
    return 0;
}
