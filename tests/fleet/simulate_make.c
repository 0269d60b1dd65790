/* What a simulated host sends: batches of uploads. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "proto/segment.h"
#include "tests/fleet/simulate.h"

#define ARCS_MOST 4096u

static void *must(void *p, const char *what)
{
    if (!p) {
        fprintf(stderr, "simulate: %s failed\n", what);
        exit(1);
    }
    return p;
}

/* The same in each run of the process. */
static void make_epoch(size_t host, uint8_t out[SEGMENT_EPOCH_SIZE])
{
    static uint32_t start;

    start = start ? start : (uint32_t)time(NULL);
    memset(out, 0, SEGMENT_EPOCH_SIZE);
    for (unsigned i = 0; i < 4; i++) {
        out[i] = (uint8_t)(start >> (24 - 8 * i));
        out[4 + i] = (uint8_t)(host >> (8 * i));
    }
}

/* Rows of which only the numbers change, once. */
static struct counts *shape(unsigned arcs)
{
    static struct counts c;

    if (c.block) {
        return &c;
    }
    if (counts_init_sizes(&c, &(struct counts_sizes){.histograms = 1, .bins = arcs / 2, .arcs = arcs, .sorted = true},
                          NULL)) {
        must(NULL, "no memory");
    }
    c.histograms[0] = (struct counts_histogram){
        .geometry = {0, 4 * ARCS_MOST, 0x1000, 0x1000 + 16 * ARCS_MOST, 100, "seconds", 's'}, .used = arcs / 2};
    for (unsigned i = 0; i < arcs; i++) {
        c.rank[i] = i;
        c.from[i] = 0x1010 + 48 * i;
        c.to[i] = 0x1000 + 16 * (i * 7 % arcs);
        if (i < c.bin_count) {
            c.bin_index[i] = i;
        }
    }
    return &c;
}

/* All of the numbers is of one group. */
static void fill(uint64_t *numbers, uint32_t n, uint64_t first, size_t group, uint64_t *shares)
{
    memset(shares, 0, n * COUNTS_GROUPS * sizeof *shares);
    for (uint32_t i = 0; i < n; i++) {
        numbers[i] = shares[i * COUNTS_GROUPS + group] = 1 + (first + i) % 100;
    }
}

static void make_upload(size_t host, uint64_t sequence, unsigned programs, unsigned arcs, uint8_t **out, size_t *size)
{
    static uint64_t bin_shares[ARCS_MOST * COUNTS_GROUPS], arc_shares[ARCS_MOST * COUNTS_GROUPS];
    char id[41];
    const struct message_build build = {id, "/usr/bin/simulated"};
    const struct counts_shares spread = {bin_shares, arc_shares, NULL};
    const size_t group = host % SEGMENT_GROUPS;
    struct counts *c = shape(arcs < ARCS_MOST ? arcs : ARCS_MOST);
    struct timespec now;
    struct segment s = {.kind = SEGMENT_COUNTS, .sequence = sequence, .uid = 1000, .build_count = 1, .builds = &build};
    struct profd_error e = {""};
    uint8_t *shares = NULL;

    clock_gettime(CLOCK_REALTIME, &now);
    make_epoch(host, s.epoch);
    snprintf(id, sizeof id, "%08x%032x", (unsigned)(sequence % programs), 0x51u);
    s.last = (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
    s.first = s.last - 1000000000;
    s.ended = s.last;
    s.uploads = 1;
    s.processes[group] = sequence % programs == 0;
    fill(c->bin_ticks, c->bin_count, host + sequence, group, bin_shares);
    fill(c->calls, c->arc_count, host + sequence + c->bin_count, group, arc_shares);
    s.counts = *c;
    if (counts_encode_shares(c, &spread, &shares, &s.shares.size, &e)) {
        must(NULL, e.sentence);
    }
    s.shares.data = shares;
    if (segment_encode(&s, out, size, &e)) {
        must(NULL, e.sentence);
    }
    free(shares);
}

/* Appends to a message of protobuf. */
struct writing {
    uint8_t *bytes;
    size_t size, capacity;
};

static void put(struct writing *w, const void *bytes, size_t n)
{
    if (w->size + n > w->capacity) {
        w->capacity = 2 * (w->size + n) + 4096;
        w->bytes = must(realloc(w->bytes, w->capacity), "realloc");
    }
    memcpy(w->bytes + w->size, bytes, n);
    w->size += n;
}

static void put_number(struct writing *w, uint64_t n)
{
    do {
        const uint8_t byte = (uint8_t)(n & 127) | (n > 127 ? 128 : 0);

        put(w, &byte, 1);
        n >>= 7;
    } while (n);
}

static void put_bytes(struct writing *w, unsigned field, const void *bytes, size_t n)
{
    put_number(w, field << 3 | 2);
    put_number(w, n);
    put(w, bytes, n);
}

void simulate_make_batch(const struct simulate_batch *batch, uint8_t **out, size_t *size)
{
    struct writing w = {NULL, 0, 0};
    struct timespec now;
    char name[64];

    clock_gettime(CLOCK_REALTIME, &now);
    const uint64_t clock = (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;

    if (batch->centre) {
        put_bytes(&w, 1, batch->centre, 16);
    }
    if (batch->named) {
        put_bytes(&w, 3, name, (size_t)snprintf(name, sizeof name, "simulated-%zu", batch->host));
    }
    put_number(&w, 6 << 3 | 1);
    put(&w, &clock, sizeof clock);
    put_number(&w, 7 << 3);
    put_number(&w, batch->first + batch->uploads + 1);
    put_bytes(&w, 10, "simulate", 8);
    for (unsigned i = 0; i < batch->uploads; i++) {
        uint8_t *bytes = NULL;
        size_t n = 0;

        make_upload(batch->host, batch->first + i + 1, batch->programs, batch->arcs, &bytes, &n);
        put_bytes(&w, 11, bytes, n);
        free(bytes);
    }
    *out = w.bytes;
    *size = w.size;
}
