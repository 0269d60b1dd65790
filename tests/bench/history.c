/* A centre's past for make bench-tier: history PATH DAYS PROGRAMS SERIES HOSTS TOTALS GROWN.
 *
 * Makes the database PATH, which must not exist. REAL hours are real: SERIES series, each of one of PROGRAMS programs,
 * of which the first of each program has 50 uploads with groups, arcs and stacks from 50 hosts; the others get copies
 * of its sum. The other hours of DAYS days, up to the day before yesterday, are copies of these in turn, so that what
 * compresses them does not see one twice in its window. The first program has HOSTS hosts. With TOTALS 1 its totals by
 * host are those of all of them, in each hour. GROWN 1: each sum is written in four lengths, as one is to which hosts
 * add. Days are then added up by the store itself. */
#include <sqlite3.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "core/object.h"
#include "store/store.h"

#define SECOND INT64_C(1000000000)
#define HOUR (3600 * SECOND)
#define UPLOADS 50u
#define REAL 8u
#define BATCH 250u
#define BINS 120u
#define ARCS 350u
#define KINDS 1500u /* different arcs of a program */
#define FUNCTIONS 1024u
#define FUNCTION_BYTES 64u
#define CODE 0x1000u    /* address of the first function */
#define LEVELS 5u       /* of a tree of stacks: functions call up to 4 others */
#define NODES_MOST 700u /* 341 frames, and a tick in each at most */
#define LIBRARY "bb02000000000000000000000000000000000000"

static struct profd_error e;

static void check(enum profd_status status, const char *what)
{
    if (status != PROFD_OK) {
        fprintf(stderr, "history: %s: %s\n", what, e.sentence);
        exit(1);
    }
}
#define OK(call) check((call), #call)

static uint64_t draw(uint64_t below)
{
    static uint64_t x = UINT64_C(88172645463325252);
    x ^= x << 13;
    x ^= x >> 7;
    x ^= x << 17;
    return x % below;
}

static void name_host(unsigned host, uint8_t identity[STORE_HOST_SIZE], char name[16])
{
    memset(identity, 1, STORE_HOST_SIZE);
    memcpy(identity, &host, sizeof host);
    snprintf(name, 16, "h%05u", host);
}

static void name_program(unsigned program, char id[41])
{
    snprintf(id, 41, "aa%038x", program);
}

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

static void fill(struct counts *c)
{
    unsigned at = 0;
    c->histograms[0] = (struct counts_histogram){.bins = 16384,
                                                 .low = CODE,
                                                 .high = CODE + 16384 * 4,
                                                 .rate = 100,
                                                 .dimension = "seconds",
                                                 .abbreviation = 's',
                                                 .used = BINS};
    for (unsigned i = 0; i < BINS; i++) {
        at += 1 + (unsigned)draw(100);
        c->bin_index[i] = at;
        c->bin_ticks[i] = 1 + draw(50);
    }
    for (unsigned i = 0; i < ARCS; i++) { /* ascending, none twice */
        const unsigned q = i * (KINDS / ARCS) + (unsigned)draw(KINDS / ARCS);
        c->rank[i] = i;
        c->to_build[i] = q % 8 == 0;
        c->from[i] = CODE + q * 40;
        c->to[i] = CODE + q % 700 * FUNCTION_BYTES;
        c->calls[i] = 1 + draw(100000);
    }
    c->node_count = 0;
    grow(c, 0, 0);
    c->trees[0] = (struct counts_tree){.rate = 100, .dimension = "seconds", .abbreviation = 's', .used = c->node_count};
}

struct made {
    struct segment segment;
    uint8_t *bytes;
};

static void make(struct made *m, int64_t hour, unsigned program, unsigned series, unsigned host, uint64_t sequence,
                 struct store_delivery *d)
{
    char id[41], name[16];
    const struct message_build builds[] = {{id, "/usr/bin/program"}, {LIBRARY, "/lib/libc.so.6"}};
    char instance[16];
    const struct message_label label = {"instance", instance};
    struct segment x = {.kind = SEGMENT_COUNTS,
                        .sequence = sequence,
                        .hour = hour,
                        .first = hour * HOUR,
                        .last = hour * HOUR + (int64_t)draw(3600) * SECOND,
                        .uploads = 1,
                        .group = (uint32_t)draw(SEGMENT_GROUPS),
                        .build_count = 2,
                        .builds = builds,
                        .label_count = 1,
                        .labels = &label};
    size_t size;
    name_program(program, id);
    snprintf(instance, sizeof instance, "%u", series);
    x.ended = x.last;
    x.processes[x.group] = 1;
    memcpy(x.epoch + 4, &host, sizeof host);
    OK(counts_init_sizes(
        &x.counts,
        &(struct counts_sizes){
            .histograms = 1, .bins = BINS, .arcs = ARCS, .trees = 1, .nodes = NODES_MOST, .sorted = true},
        &e));
    fill(&x.counts);
    OK(segment_encode(&x, &m->bytes, &size, &e));
    counts_done(&x.counts);
    OK(segment_decode(m->bytes, size, &m->segment, &e));
    *d = (struct store_delivery){
        .sequence = sequence, .segment = &m->segment, .bytes = m->bytes, .size = size, .received = (hour + 1) * HOUR};
    name_host(host, d->host, name);
    memcpy(d->epoch, x.epoch, sizeof d->epoch);
    segment_digest(m->bytes, size, d->digest);
}

static void admit(struct store *s, int64_t hour, unsigned hosts)
{
    static struct store_arrival list[BATCH];
    static struct store_admission out[BATCH];
    static char names[BATCH][16];
    store_set_detail(s, &(struct store_detail){.when = STORE_DETAIL_NEVER});
    for (unsigned at = 0; at < hosts;) {
        unsigned n = 0;
        for (; n < BATCH && at < hosts; n++, at++) {
            list[n] = (struct store_arrival){.name = names[n], .now = (hour + 1) * HOUR};
            name_host(at + 1, list[n].host, names[n]);
        }
        OK(store_admit_hosts(s, list, n, out, &e));
    }
}

static void flush(struct store *s, struct made *made, const struct store_delivery *list, unsigned n)
{
    static struct store_receipt receipts[BATCH];
    OK(store_put_segments(s, list, n, receipts, &e));
    for (unsigned i = 0; i < n; i++) {
        if (receipts[i].outcome != STORE_SEGMENT_COUNTED || receipts[i].later || receipts[i].again) {
            fprintf(stderr, "history: an upload was not counted\n");
            exit(1);
        }
        segment_done(&made[i].segment);
        free(made[i].bytes);
    }
}

static void put_hour(struct store *s, int64_t hour, unsigned programs, unsigned series)
{
    static struct made made[BATCH];
    static struct store_delivery list[BATCH];
    unsigned n = 0;
    for (unsigned at = 0; at < series; at++) {
        for (unsigned i = 0; i < (at < programs ? UPLOADS : 1); i++) {
            make(&made[n], hour, at % programs, at, 1 + i, 1 + (uint64_t)hour % REAL * series + at, &list[n]);
            if (++n == BATCH) {
                flush(s, made, list, n);
                n = 0;
            }
        }
    }
    flush(s, made, list, n);
}

/* Functions of FUNCTION_BYTES each, from CODE on. */
static void put_symbols(struct store *s, const char *build)
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
    snprintf(o.id.text, sizeof o.id.text, "%s", build);
    memset(o.variant, 'a', sizeof o.variant - 1);
    OK(object_encode(&o, &bytes, &size, &e));
    struct store_object object = {.id = o.id,
                                  .trusted = true,
                                  .has_names = true,
                                  .encoded = bytes,
                                  .encoded_size = size,
                                  .name = "",
                                  .note = "",
                                  .received = 1};
    memcpy(object.variant, o.variant, sizeof object.variant);
    OK(store_put_object(s, &object, &e));
    free(bytes);
}

static sqlite3 *db;

static __attribute__((format(printf, 1, 2))) void sql(const char *format, ...)
{
    char text[4096], *why = NULL;
    va_list values;
    va_start(values, format);
    (void)vsnprintf(text, sizeof text, format, values);
    va_end(values);
    if (sqlite3_exec(db, text, NULL, NULL, &why) != SQLITE_OK) {
        fprintf(stderr, "history: %s: %s\n", text, why);
        exit(1);
    }
}

#define SERIES_OF "(SELECT id FROM series WHERE labels=CAST('instance'||char(0)||%u||char(0) AS BLOB))"

/* The other series of a program get the sum of its first one; the first program gets all hosts. */
static void complete_hour(unsigned programs, unsigned series, unsigned hosts, bool totals)
{
    sql("BEGIN; CREATE TEMP TABLE like_it AS SELECT b.id AS id, a.id AS of FROM series a JOIN series b "
        "ON a.program=b.program AND a.id<>b.id AND a.id<=(SELECT min(id) FROM series)+%u",
        programs - 1);
    if (series > programs) {
        sql("UPDATE rollup SET (uploads, processes, ticks, calls, first, last, hosts, counts, spread)=(SELECT uploads, "
            "processes, ticks, calls, first, last, hosts, counts, spread FROM rollup a JOIN like_it l ON l.of=a.series "
            "WHERE l.id=rollup.series AND a.level=0 AND a.at=rollup.at) WHERE level=0 AND series IN (SELECT id FROM "
            "like_it)");
        sql("INSERT OR REPLACE INTO rollup_processes SELECT l.id, level, at, groups FROM rollup_processes JOIN like_it "
            "l "
            "ON l.of=series WHERE level=0");
        sql("UPDATE ledger SET (uploads, processes, ticks, calls, first, last, shares)=(SELECT uploads, processes, "
            "ticks, calls, first, last, shares FROM ledger a JOIN like_it l ON l.of=a.series WHERE l.id=ledger.series "
            "AND a.hour=ledger.hour) "
            "WHERE series IN (SELECT id FROM like_it)");
        sql("DELETE FROM host_total WHERE series IN (SELECT id FROM like_it)");
        sql("INSERT INTO host_total SELECT l.id, hour, host, late, uploads, processes, ticks, calls, first, last, "
            "inexact, shares FROM host_total JOIN like_it l ON l.of=series");
    }
    sql("INSERT OR IGNORE INTO host (machine) SELECT lower(hex(identity)) FROM fleet_host ORDER BY id");
    /* All hosts: their row ids are 1, 2, 3 and so on. */
    sql("UPDATE rollup SET hosts=CAST(replace(hex(zeroblob(%u)), '00', char(1)) AS BLOB) WHERE series=" SERIES_OF,
        hosts, 0);
    if (totals) {
        sql("CREATE TEMP TABLE one AS SELECT * FROM host_total WHERE series=" SERIES_OF " GROUP BY hour", 0);
        sql("DELETE FROM host_total WHERE series=" SERIES_OF, 0);
        sql("INSERT INTO host_total SELECT series, hour, h.id, 0, uploads, processes, 100+h.id, 7*h.id, one.first, "
            "one.last, inexact, shares FROM one CROSS JOIN fleet_host h");
        sql("UPDATE ledger SET (uploads, ticks, calls)=(SELECT sum(uploads), sum(ticks), sum(calls) FROM host_total t "
            "WHERE t.series=ledger.series AND t.hour=ledger.hour) WHERE series=" SERIES_OF,
            0);
        sql("UPDATE rollup SET uploads=%u WHERE series=" SERIES_OF, hosts, 0);
    }
    sql("COMMIT");
}

static void copy_hour(int64_t from, int64_t to, bool grown)
{
    const long long k = to - from, ns = k * HOUR;
    sql("BEGIN");
    const int least = grown ? 1 : 4;
    sql("INSERT INTO rollup SELECT NULL, series, level, at+%lld, folded, version, number+%lld, uploads, processes, "
        "ticks, "
        "calls, first+%lld, last+%lld, inexact, hosts, substr(counts, 1, length(counts)*%d/4), "
        "substr(spread, 1, length(spread)*%d/4) FROM rollup WHERE level=0 AND at=%lld",
        k, k, ns, ns, least, least, (long long)from);
    for (int part = least + 1; part <= 4; part++) {
        sql("UPDATE rollup SET (counts, spread)=(SELECT substr(counts, 1, length(counts)*%d/4), "
            "substr(spread, 1, length(spread)*%d/4) FROM rollup a WHERE a.series=rollup.series AND a.level=0 AND "
            "a.at=%lld) WHERE level=0 AND at=%lld",
            part, part, (long long)from, (long long)to);
    }
    sql("INSERT INTO rollup_processes SELECT series, level, at+%lld, groups FROM rollup_processes WHERE level=0 AND "
        "at=%lld",
        k, (long long)from);
    sql("INSERT INTO ledger SELECT series, hour+%lld, uploads, processes, ticks, calls, first+%lld, last+%lld, "
        "inexact, "
        "raw_uploads, raw_bytes, raw_since, shares, live_bytes FROM ledger WHERE hour=%lld",
        k, ns, ns, (long long)from);
    sql("INSERT INTO host_total SELECT series, hour+%lld, host, late, uploads, processes, ticks, calls, first+%lld, "
        "last+%lld, inexact, shares FROM host_total WHERE hour=%lld",
        k, ns, ns, (long long)from);
    sql("COMMIT");
}

/* What the rows of the ledger add up to. */
static void complete(void)
{
    sql("BEGIN; UPDATE series SET (uploads, processes, ticks, calls, first, last)=(SELECT sum(uploads), "
        "sum(processes), "
        "sum(ticks), sum(calls), min(first), max(last) FROM ledger l WHERE l.series=series.id)");
    sql("UPDATE state SET (uploads, ticks, calls)=(SELECT sum(uploads), sum(ticks), sum(calls) FROM series), "
        "rollups=(SELECT count(*) FROM rollup), number=(SELECT max(number) FROM rollup)+1; COMMIT");
}

static void compact(struct store *s, int64_t at)
{
    const struct store_policy policy = {.raw_age = HOUR, .raw_bytes = UINT64_MAX};
    for (struct store_progress p = {.more = true}; p.more;) {
        OK(store_compact(s, &policy, at, &p, &e));
    }
}

static double now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

int main(int argc, char **argv)
{
    struct store *s;
    if (argc != 8) {
        return 64;
    }
    const unsigned days = (unsigned)atoi(argv[2]), programs = (unsigned)atoi(argv[3]), series = (unsigned)atoi(argv[4]),
                   hosts = (unsigned)atoi(argv[5]);
    const int64_t first = (time(NULL) / 86400 - 2 - (int64_t)days) * 24;
    double began = now();
    OK(store_sqlite_open_writer(argv[1], &s, &e));
    store_set_tier(s, true);
    admit(s, first, hosts > UPLOADS ? hosts : UPLOADS);
    put_symbols(s, LIBRARY);
    for (unsigned i = 0; i < programs; i++) {
        char id[41];
        name_program(i, id);
        put_symbols(s, id);
    }
    for (int64_t hour = first; hour < first + REAL; hour++) {
        put_hour(s, hour, programs, series);
    }
    compact(s, (first + REAL + 3) * HOUR);
    store_close(s);
    printf("put %.1f\n", now() - began);
    began = now();
    if (sqlite3_open_v2(argv[1], &db, SQLITE_OPEN_READWRITE, "profd-sealed") != SQLITE_OK) {
        fprintf(stderr, "history: %s\n", sqlite3_errmsg(db));
        return 1;
    }
    sql("PRAGMA synchronous=OFF; PRAGMA cache_size=-262144; PRAGMA temp_store=MEMORY");
    complete_hour(programs, series, hosts, strcmp(argv[6], "1") == 0);
    for (int64_t hour = first + REAL; hour < first + 24 * (int64_t)days; hour++) {
        copy_hour(first + hour % REAL, hour, strcmp(argv[7], "1") == 0);
    }
    complete();
    sqlite3_close(db);
    printf("copied %.1f\n", now() - began);
    began = now();
    OK(store_sqlite_open_writer(argv[1], &s, &e));
    store_set_tier(s, true);
    compact(s, time(NULL) * SECOND);
    store_close(s);
    printf("added %.1f\n", now() - began);
    return 0;
}
