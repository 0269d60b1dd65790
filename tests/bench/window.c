/* A month of uploads of a large build, rolled up as the daemon would have: window FILE BUILD-ID FIRST FUNCTIONS ARCS
 * NOW DAYS. FIRST: address of the first function in hex, each has 16 bytes; NOW: seconds since the epoch. Three uploads
 * a day, and one an hour in the first day and the last, where a window's edges will be. FILE is a profd database that
 * exists and nobody uses. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "proto/counts.h"
#include "store/store.h"

#define SECOND INT64_C(1000000000)
#define HOUR (3600 * SECOND)
#define DAY (24 * HOUR)

struct shape {
    uint64_t first;
    uint32_t functions, arcs;
};

static uint64_t state = 1;

static uint32_t below(uint32_t n)
{
    state = state * 6364136223846793005u + 1442695040888963407u;
    return (uint32_t)(state >> 33) % n;
}

static void must(enum profd_status status, const struct profd_error *e)
{
    if (status == PROFD_OK) {
        return;
    }
    fprintf(stderr, "window: %s\n", e->sentence);
    exit(1);
}

/* A ring through all functions, and arcs besides that are the same in every upload, with other counts. */
static void make_counts(const struct shape *shape, struct counts *c)
{
    struct profd_error e = {""};
    uint64_t keep = state;
    must(counts_init(c, 1, shape->functions, shape->arcs, &e), &e);
    c->histograms[0] = (struct counts_histogram){.bins = shape->functions * 4,
                                                 .low = shape->first,
                                                 .high = shape->first + 16 * (uint64_t)shape->functions,
                                                 .rate = 100,
                                                 .dimension = "seconds",
                                                 .abbreviation = 's',
                                                 .used = shape->functions};
    state = 7;
    for (uint32_t i = 0; i < shape->arcs; i++) {
        bool ring = i < shape->functions;
        c->from[i] =
            shape->first + 16 * (uint64_t)(ring ? i : below(shape->functions)) + 1 + (ring ? 0 : i / shape->functions);
        c->to[i] = shape->first + 16 * (uint64_t)(ring ? (i + 1) % shape->functions : below(shape->functions));
    }
    state = keep;
    for (uint32_t i = 0; i < shape->arcs; i++) {
        c->calls[i] = 1 + below(1000);
    }
    for (uint32_t i = 0; i < shape->functions; i++) {
        c->bin_index[i] = 4 * i;
        c->bin_ticks[i] = 1 + below(60);
    }
}

static void put(struct store *s, const char *build, const struct shape *shape, int64_t end, uint32_t number)
{
    struct store_build builds[] = {{.name = "/srv/bin/large"}};
    struct store_upload u = {.sequence = 1,
                             .received = end,
                             .start = end - 60 * SECOND,
                             .end = end,
                             .processes_started = 1,
                             .build_count = 1,
                             .builds = builds,
                             .group = number % 16};
    struct counts c;
    uint8_t *bytes;
    enum store_outcome outcome;
    struct profd_error e = {""};
    snprintf(builds[0].id.text, sizeof builds[0].id.text, "%s", build);
    memset(u.host, 'a' + (int)(number % 16), 32);
    memcpy(u.sender, &number, sizeof number);
    make_counts(shape, &c);
    counts_totals(&c, &u.ticks, &u.calls);
    must(counts_encode(&c, &bytes, &u.counts_size, &e), &e);
    u.counts = bytes;
    must(store_put_uploads(s, &u, 1, &outcome, &e), &e);
    counts_done(&c);
    free(bytes);
}

int main(int argc, char **argv)
{
    struct store *s;
    struct profd_error e = {""};
    if (argc != 8) {
        fprintf(stderr, "usage: window FILE BUILD-ID FIRST FUNCTIONS ARCS NOW DAYS\n");
        return 64;
    }
    const struct shape shape = {strtoull(argv[3], NULL, 16), (uint32_t)strtoul(argv[4], NULL, 10),
                                (uint32_t)strtoul(argv[5], NULL, 10)};
    int64_t now = strtoll(argv[6], NULL, 10) * SECOND, begin = now - strtoll(argv[7], NULL, 10) * DAY;
    uint32_t number = 0;
    must(store_sqlite_open_writer(argv[1], &s, &e), &e);
    for (int64_t hour = begin - begin % DAY; hour < now; hour += HOUR) {
        bool edge = hour / DAY == begin / DAY || hour / DAY == now / DAY;
        if (edge || hour / HOUR % 8 == 3) {
            put(s, argv[2], &shape,
                hour + below(60) * 60 * SECOND < now ? hour + below(60) * 60 * SECOND : now - SECOND, ++number);
        }
    }
    const struct store_policy policy = {.raw_bytes = UINT64_MAX};
    struct store_progress progress = {.more = true};
    while (progress.more) {
        must(store_compact(s, &policy, now, &progress, &e), &e);
    }
    printf("uploads %u\n", number);
    store_close(s);
    return 0;
}
