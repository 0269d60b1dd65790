/* The store alone, for make bench: rollup PATH PROCESSES SERIES BATCH [STACKS]. So many processes each send one upload
 * of a Lua's size within one hour, with so many ticks that have stacks; then everything is rolled up, and time goes on
 * until the day and all of it are one sum. PATH must not exist; it is removed. Prints rates a second and bytes. */
#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "core/rollup.h"
#include "proto/counts_tree.h"
#include "store/store.h"

#define HOUR INT64_C(3600000000000)
#define MIDNIGHT (INT64_C(20000) * 24 * HOUR)

enum { FUNCTIONS = 900, ARCS = 1149, BINS = 60, BATCH_MAX = 4096, FRAMES = 3000 };

static struct profd_error e;
static uint64_t draw_state = 88172645463325252u;

static uint64_t draw(void)
{
    draw_state ^= draw_state << 13;
    draw_state ^= draw_state >> 7;
    draw_state ^= draw_state << 17;
    return draw_state;
}

static void check(enum profd_status status)
{
    if (status == PROFD_OK) {
        return;
    }
    fprintf(stderr, "rollup: %s\n", e.sentence);
    exit(1);
}

static double now(void)
{
    struct timespec t;
    /* Of this process: the disk is another row's matter. */
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
    return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

/* The same arcs in every process, some of them not taken; calls over six decades; ticks in a few dozen places. */
static struct counts arcs_of_all;

static void make_shape(void)
{
    check(counts_init(&arcs_of_all, 1, BINS, ARCS, &e));
    for (uint32_t i = 0; i < ARCS; i++) {
        uint64_t caller = (uint64_t)i * FUNCTIONS / ARCS, callee = draw() % 3 ? draw() % FUNCTIONS : draw() % 20;
        arcs_of_all.from[i] = 0x401000 + caller * 204 + draw() % 200;
        arcs_of_all.to[i] = 0x401000 + callee * 204;
        arcs_of_all.calls[i] = 1 + draw() % (UINT64_C(1) << draw() % 20);
    }
    for (uint32_t i = 0; i < BINS; i++) {
        arcs_of_all.bin_index[i] = i * 760 + (uint32_t)(draw() % 700);
    }
}

/* Frames that call each other: 0 is main; of a stack of any depth there is a prefix in many others. */
static struct counts_frame frames[FRAMES];
static uint32_t parents[FRAMES];

static void make_frames(void)
{
    for (uint32_t i = 0; i < FRAMES; i++) {
        frames[i] = (struct counts_frame){.address = 0x401000 + draw() % (FUNCTIONS * 204)};
        parents[i] = i == 0 ? 0 : draw() % 4 ? i - 1 - (uint32_t)(draw() % (i < 20 ? i : 20)) : (uint32_t)(draw() % i);
    }
}

/* Most ticks are in a few stacks, as in any program. */
static void add_stack(struct counts_stacks *to)
{
    struct counts_frame path[128];
    uint32_t n = 0, at = (uint32_t)(draw() % (1 + draw() % (1 + draw() % FRAMES)));
    struct counts_frame last = frames[at];
    last.kind = COUNTS_NODE_PC;
    path[127 - n++] = last;
    for (; at != 0 && n < 128; at = parents[at]) {
        path[127 - n++] = frames[parents[at]];
    }
    check(counts_stacks_add(to, 100, "seconds", 's', path + 128 - n, n, 1, &e));
}

static uint32_t stacks; /* of each upload */

static uint8_t *make_counts(struct store_upload *u, size_t *size)
{
    struct counts c;
    uint8_t *bytes;
    uint32_t n = 0;
    struct counts_sizes sizes = {.histograms = 1, .bins = BINS, .arcs = ARCS};
    struct counts_stacks *s = counts_stacks_new();
    for (uint32_t i = 0; i < stacks; i++) {
        add_stack(s);
    }
    check(counts_stacks_finish(s, &sizes, &e));
    check(counts_init_sizes(&c, &sizes, &e));
    counts_stacks_copy(s, &c);
    counts_stacks_free(s);
    c.histograms[0] = (struct counts_histogram){.bins = 46000,
                                                .low = 0x401000,
                                                .high = 0x401000 + 46000 * 4,
                                                .rate = 100,
                                                .dimension = "seconds",
                                                .abbreviation = 's',
                                                .used = BINS};
    for (uint32_t i = 0; i < BINS; i++) {
        c.bin_index[i] = arcs_of_all.bin_index[i];
        c.bin_ticks[i] = 1 + draw() % 40;
    }
    for (uint32_t i = 0; i < ARCS; i++) {
        if (draw() % 20 == 0) {
            continue;
        }
        c.from[n] = arcs_of_all.from[i];
        c.to[n] = arcs_of_all.to[i];
        c.calls[n++] = 1 + draw() % (2 * arcs_of_all.calls[i]);
    }
    c.arc_count = n;
    check(counts_encode(&c, &bytes, size, &e));
    counts_totals(&c, &u->ticks, &u->calls);
    counts_done(&c);
    return bytes;
}

static uint64_t content(struct store *s)
{
    struct store_totals t;
    check(store_get_totals(s, &t, &e));
    return t.file_bytes - t.free_bytes;
}

/* Bytes of sums of a level, and of their spread. */
static void print_level(const char *path, int level, const char *name)
{
    sqlite3 *db;
    sqlite3_stmt *q;
    char sql[160];
    snprintf(sql, sizeof sql,
             "SELECT total(length(counts)+length(hosts)), total(length(spread)) FROM rollup WHERE level=%d", level);
    if (sqlite3_open_v2(path, &db, SQLITE_OPEN_READONLY, NULL) == SQLITE_OK &&
        sqlite3_prepare_v2(db, sql, -1, &q, NULL) == SQLITE_OK && sqlite3_step(q) == SQLITE_ROW) {
        printf("%s %.0f\n%s_spread %.0f\n", name, sqlite3_column_double(q, 0), name, sqlite3_column_double(q, 1));
        sqlite3_finalize(q);
    }
    sqlite3_close(db);
}

/* Nodes of stacks of the hours' sums. */
static void print_nodes(const char *path)
{
    sqlite3 *db;
    sqlite3_stmt *q = NULL;
    uint64_t nodes = 0;
    if (sqlite3_open_v2(path, &db, SQLITE_OPEN_READONLY, NULL) == SQLITE_OK &&
        sqlite3_prepare_v2(db, "SELECT counts FROM rollup WHERE level=0", -1, &q, NULL) == SQLITE_OK) {
        while (sqlite3_step(q) == SQLITE_ROW) {
            struct arena *a = arena_new(0);
            struct counts r;
            check(rollup_decode(a, sqlite3_column_blob(q, 0), (size_t)sqlite3_column_bytes(q, 0), 1, false, &r, &e));
            nodes += r.node_count;
            arena_free(a);
        }
    }
    sqlite3_finalize(q);
    sqlite3_close(db);
    printf("nodes %llu\n", (unsigned long long)nodes);
}

static double put_all(struct store *s, uint32_t processes, uint32_t series, uint32_t batch, uint64_t *encoded)
{
    static struct store_upload u[BATCH_MAX];
    static struct store_label labels[BATCH_MAX];
    static char values[BATCH_MAX][16];
    static enum store_outcome outcomes[BATCH_MAX];
    struct store_build build = {.id = {.text = "00112233445566778899aabbccddeeff00112233"}, .name = "/usr/bin/lua"};
    double taken = 0;
    for (uint32_t done = 0; done < processes; done += batch) {
        uint32_t n = processes - done < batch ? processes - done : batch;
        for (uint32_t i = 0; i < n; i++) {
            uint32_t k = done + i;
            u[i] = (struct store_upload){.host = "0123456789abcdef0123456789abcdef",
                                         .sequence = 1,
                                         .build_count = 1,
                                         .builds = &build,
                                         .processes_started = 1,
                                         .labels = &labels[i],
                                         .label_count = 1,
                                         .group = (uint32_t)(draw() % 16)};
            snprintf(values[i], sizeof values[i], "%u", k % series);
            labels[i] = (struct store_label){"instance", values[i]};
            u[i].end = u[i].received = MIDNIGHT + k % 3600 * (HOUR / 3600);
            u[i].start = u[i].end - HOUR / 3600;
            memcpy(u[i].sender, &k, sizeof k);
            u[i].sender[11] = 1;
            u[i].counts = make_counts(&u[i], &u[i].counts_size);
            *encoded += u[i].counts_size;
        }
        double begin = now();
        check(store_put_uploads(s, u, n, outcomes, &e));
        taken += now() - begin;
        for (uint32_t i = 0; i < n; i++) {
            free((void *)(uintptr_t)u[i].counts);
        }
    }
    return taken;
}

static double compact_all(struct store *s, int64_t at, double *longest)
{
    struct store_policy policy = {.raw_age = HOUR, .raw_bytes = UINT64_MAX};
    double begin = now();
    for (struct store_progress p = {.more = true}; p.more;) {
        double slice = now();
        check(store_compact(s, &policy, at, &p, &e));
        slice = now() - slice;
        *longest = slice > *longest ? slice : *longest;
    }
    return now() - begin;
}

int main(int argc, char *argv[])
{
    struct store *s;
    struct stat st;
    uint64_t encoded = 0;
    double longest = 0;
    const bool known = argc == 5 || argc == 6;
    uint32_t processes = known ? (uint32_t)atoi(argv[2]) : 0, series = known ? (uint32_t)atoi(argv[3]) : 0;
    uint32_t batch = known ? (uint32_t)atoi(argv[4]) : 0;
    stacks = argc == 6 ? (uint32_t)atoi(argv[5]) : 0;
    if (processes == 0 || series == 0 || batch == 0 || batch > BATCH_MAX || stat(argv[1], &st) == 0) {
        fprintf(stderr, "usage: rollup PATH PROCESSES SERIES BATCH [STACKS], where PATH is not there\n");
        return 64;
    }
    make_shape();
    make_frames();
    check(store_sqlite_open_writer(argv[1], &s, &e));
    uint64_t empty = content(s);
    double put = put_all(s, processes, series, batch, &encoded);
    uint64_t raw = content(s) - empty;
    double rolling = compact_all(s, MIDNIGHT + 3 * HOUR, &longest);
    double folding = compact_all(s, MIDNIGHT + 72 * HOUR, &longest);
    uint64_t left = content(s) - empty;
    printf("encoded %.0f\nput %.0f\nraw %.0f\nrolled %.0f\nfolding_ms %.1f\nleft %llu\nlongest_ms %.1f\n",
           (double)encoded / processes, processes / put, (double)raw / processes, processes / rolling, 1000 * folding,
           (unsigned long long)left, 1000 * longest);
    print_level(argv[1], 0, "hour");
    print_level(argv[1], 1, "day");
    print_nodes(argv[1]);
    store_close(s);
    unlink(argv[1]);
    return 0;
}
