/* Whatever upkeep does at whatever moment, the answers are those of a store that never rolls anything up. Past days
 * move to a tier in between, sum by sum, and the store may be closed before each step. */
#include <criterion/criterion.h>
#include <time.h>
#include <sys/syscall.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "core/rollup.h"
#include "store/store.h"
#include "tests/memory_tier.h"
#include "tests/rounds.h"
#include "tests/scratch_store.h"

/* Slices of upkeep end after some CPU time, and each slice of removal takes a number. Here slices end after a number of
 * uploads alone, so that both stores take the same numbers however slow the machine is. */
int clock_gettime(clockid_t clock, struct timespec *out)
{
    if (clock == CLOCK_THREAD_CPUTIME_ID) {
        *out = (struct timespec){0};
        return 0;
    }
    return (int)syscall(SYS_clock_gettime, clock, out);
}

#define HOUR INT64_C(3600000000000)
#define DAY (24 * HOUR)
#define MIDNIGHT (INT64_C(20000) * DAY)

enum { STORES = 2, BUILDS = 5, USERS = 3, SERIES_MAX = 256 };

static struct store *stores[STORES];
static char path[64];
static unsigned seed;
static int64_t now;
static struct profd_error e;

#define OK(call) cr_assert_eq((call), PROFD_OK, "seed %u: %s: %s", seed, #call, e.sentence)

static unsigned pick(unsigned n)
{
    return (unsigned)rand() % n;
}

static const char *build_name(unsigned i)
{
    static const char *const ids[BUILDS] = {"abcd1111", "abcd2222", "eeee0123", "ffff9999aa", "0123456789"};
    return ids[i];
}

/* Counts of so many builds, with some addresses that come again and some that do not. */
static uint8_t *random_counts(struct store_upload *u, struct store_build *builds, size_t *size)
{
    struct counts c;
    uint8_t *bytes;
    uint32_t histograms = pick(3), arcs = pick(6);
    cr_assert_eq(counts_init(&c, histograms, histograms, arcs, &e), PROFD_OK);
    for (uint32_t i = 0; i < histograms; i++) {
        c.histograms[i] = (struct counts_histogram){.build = pick((unsigned)u->build_count),
                                                    .bins = 64,
                                                    .low = 0x1000,
                                                    .high = 0x2000 + 0x1000 * pick(2),
                                                    .rate = 100,
                                                    .dimension = "seconds",
                                                    .abbreviation = 's',
                                                    .first = i,
                                                    .used = 1};
        c.bin_index[i] = pick(64);
        c.bin_ticks[i] = 1 + pick(50);
        builds[c.histograms[i].build].nanoseconds += c.bin_ticks[i] * 10000000;
    }
    for (uint32_t i = 0; i < arcs; i++) {
        c.from_build[i] = pick(4) == 0 ? COUNTS_NOWHERE : pick((unsigned)u->build_count);
        c.from[i] = pick(10);
        c.to_build[i] = pick((unsigned)u->build_count);
        c.to[i] = pick(10);
        c.calls[i] = pick(1000);
        builds[c.to_build[i]].calls += c.calls[i];
    }
    cr_assert_eq(counts_encode(&c, &bytes, size, &e), PROFD_OK);
    counts_totals(&c, &u->ticks, &u->calls);
    counts_done(&c);
    return bytes;
}

static void put_random_upload(void)
{
    struct store_build builds[3] = {{.name = "x"}, {.name = "y"}, {.name = "z"}};
    struct store_label labels[2] = {{"service", pick(2) ? "a" : "b"}, {"version", "1"}};
    unsigned first = pick(BUILDS);
    struct store_upload u = {
        .uid = pick(USERS), .sequence = 1 + pick(400), .received = now, .build_count = 1 + pick(3)};
    u.end = pick(3) ? now - pick(3600) * (HOUR / 3600) : now - pick(7 * 24 * 3600) * (HOUR / 3600);
    u.end = u.end < MIDNIGHT ? MIDNIGHT : u.end;
    u.start = u.end - pick(5) * (HOUR / 7);
    u.processes_started = pick(2);
    u.inexact = pick(4) == 0 ? 1u << pick(3) : 0;
    u.sender[0] = (uint8_t)(1 + pick(4));
    u.group = u.sender[0];
    snprintf(u.host, sizeof u.host, "%s", pick(3) ? "h" : pick(2) ? "g" : "");
    for (unsigned k = 0; k < u.build_count; k++) {
        snprintf(builds[k].id.text, sizeof builds[k].id.text, "%s", build_name((first + k) % BUILDS));
    }
    u.builds = builds;
    u.program = pick(3) ? 0 : pick((unsigned)u.build_count);
    u.labels = labels + pick(2);
    u.label_count = pick(2);
    uint8_t *counts = random_counts(&u, builds, &u.counts_size);
    u.counts = counts;
    enum store_outcome outcomes[STORES];
    for (int k = 0; k < STORES; k++) {
        OK(store_put_uploads(stores[k], &u, 1, &outcomes[k], &e));
    }
    cr_assert_eq(outcomes[0], outcomes[1], "seed %u", seed);
    free(counts);
}

/* Everything that a store gives for a filter, added up by series. */
struct answer {
    struct arena *arena;
    size_t count;
    uint64_t last_commit;
    struct one {
        char name[256];
        struct rollup_sum *sum;
        uint64_t commit, first_commit, uploads, processes;
        int64_t start, end;
        uint32_t inexact, hosts;
    } series[SERIES_MAX];
};

static void name_series(const struct store_row *row, char *name, size_t size)
{
    size_t n = (size_t)snprintf(name, size, "%u %u", row->uid, row->program);
    for (size_t i = 0; i < row->build_count; i++) {
        n += (size_t)snprintf(name + n, size - n, " %s(%s)", row->builds[i].id.text, row->builds[i].name);
    }
    for (size_t i = 0; i < row->label_count; i++) {
        n += (size_t)snprintf(name + n, size - n, " %s=%s", row->labels[i].name, row->labels[i].value);
    }
    cr_assert_lt(n, size);
}

static uint32_t host_bit(const char *host)
{
    return host[0] == 0 ? 1 : host[0] == 'h' ? 2 : 4;
}

static void add_counts(struct answer *a, struct one *one, const struct store_row *row)
{
    struct counts c;
    struct counts r;
    if (row->rolled) {
        OK(rollup_decode(a->arena, row->counts, row->counts_size, (uint32_t)row->build_count, false, &r, &e));
        OK(rollup_sum_add(one->sum, &r, NULL, &e));
        for (size_t i = 0; i < row->host_count; i++) {
            one->hosts |= host_bit(row->hosts[i]);
        }
    } else {
        OK(counts_decode(row->counts, row->counts_size, (uint32_t)row->build_count, &c, &e));
        OK(rollup_sum_add_upload(one->sum, &c, row->commit, 0, &e));
        counts_done(&c);
        one->hosts |= host_bit(row->host);
    }
}

static enum profd_status take_row(void *context, const struct store_row *row, struct profd_error *why)
{
    (void)why;
    struct answer *a = context;
    char name[256];
    size_t i = 0;
    if (!(row->id & MEMORY_TIER_ID)) {
        cr_assert_geq(row->commit, a->last_commit, "seed %u: rows are out of order", seed);
        a->last_commit = row->commit;
    }
    name_series(row, name, sizeof name);
    while (i < a->count && strcmp(a->series[i].name, name) != 0) {
        i++;
    }
    struct one *one = &a->series[i];
    if (i == a->count) {
        cr_assert(!(row->id & MEMORY_TIER_ID), "seed %u: %s was not announced", seed, name);
        cr_assert_lt(a->count++, SERIES_MAX);
        *one = (struct one){
            .sum = rollup_sum_new(a->arena, ROLLUP_PLAIN), .commit = row->commit, .start = INT64_MAX, .end = INT64_MIN};
        one->first_commit = row->commit;
        strcpy(one->name, name);
    }
    if (row->uploads == 0) {
        return PROFD_OK;
    }
    one->commit = row->commit < one->commit ? row->commit : one->commit;
    one->start = row->start < one->start ? row->start : one->start;
    one->end = row->end > one->end ? row->end : one->end;
    one->uploads += row->uploads;
    one->processes += row->processes_started;
    one->inexact |= row->inexact;
    add_counts(a, one, row);
    return PROFD_OK;
}

static int compare_series(const void *x, const void *y)
{
    return strcmp(((const struct one *)x)->name, ((const struct one *)y)->name);
}

static void ask(struct store *s, const struct store_scope *scope, const struct store_filter *filter, struct answer *a)
{
    a->count = 0;
    a->last_commit = 0;
    arena_reset(a->arena);
    OK(store_each_upload(s, scope, filter, take_row, a, &e));
    qsort(a->series, a->count, sizeof a->series[0], compare_series);
}

static void compare_one(struct one *x, struct one *y)
{
    uint8_t *bytes[2];
    size_t size[2];
    struct counts r;
    cr_assert_str_eq(x->name, y->name, "seed %u", seed);
    cr_assert_eq(x->uploads, y->uploads, "seed %u, %s: %llu and %llu uploads", seed, x->name,
                 (unsigned long long)x->uploads, (unsigned long long)y->uploads);
    cr_assert_eq(x->processes, y->processes, "seed %u", seed);
    cr_assert_eq(x->commit, y->commit, "seed %u", seed);
    cr_assert_eq(y->first_commit, y->commit, "seed %u", seed);
    cr_assert_eq(x->start, y->start, "seed %u", seed);
    cr_assert_eq(x->end, y->end, "seed %u", seed);
    cr_assert_eq(x->inexact, y->inexact, "seed %u", seed);
    cr_assert_eq(x->hosts, y->hosts, "seed %u", seed);
    OK(rollup_sum_finish(x->sum, &r, NULL, &e));
    OK(counts_encode(&r, &bytes[0], &size[0], &e));
    OK(rollup_sum_finish(y->sum, &r, NULL, &e));
    OK(counts_encode(&r, &bytes[1], &size[1], &e));
    cr_assert(size[0] == size[1] && memcmp(bytes[0], bytes[1], size[0]) == 0, "seed %u, %s: other counts", seed,
              x->name);
    free(bytes[0]);
    free(bytes[1]);
}

static void compare_rows(void)
{
    static struct answer answers[STORES];
    struct store_matcher match = {.name = "service", .value = pick(2) ? "a" : "", .match = STORE_MATCH_EQUAL};
    struct store_scope scope = {.all = pick(2), .uid = pick(USERS)};
    struct store_filter filter = {
        .build_id = build_name(pick(BUILDS)), .as_program = pick(2), .matcher_count = pick(4) == 0, .matchers = &match};
    int64_t unit = pick(3) ? HOUR : pick(2) ? DAY : HOUR / 60;
    if (pick(3)) {
        filter.since = MIDNIGHT + pick((unsigned)((now - MIDNIGHT) / unit) + 2) * unit;
    }
    if (pick(2)) {
        filter.until = (filter.since ? filter.since : MIDNIGHT) + pick(200) * unit;
    }
    for (int k = 0; k < STORES; k++) {
        answers[k].arena = arena_new(0);
    }
    int64_t since, until;
    OK(store_get_range(stores[1], &scope, &filter, &since, &until, &e));
    if (unit != HOUR / 60) {
        cr_assert(since == filter.since && until == filter.until, "seed %u: an edge at an hour's border moved", seed);
    }
    cr_assert(since <= filter.since && filter.since - since < HOUR && until >= filter.until &&
              until - filter.until < HOUR);
    ask(stores[1], &scope, &filter, &answers[1]);
    filter.since = since;
    filter.until = until;
    ask(stores[0], &scope, &filter, &answers[0]);
    cr_assert_eq(answers[0].count, answers[1].count, "seed %u: %zu and %zu series", seed, answers[0].count,
                 answers[1].count);
    for (size_t i = 0; i < answers[0].count; i++) {
        compare_one(&answers[0].series[i], &answers[1].series[i]);
    }
    for (int k = 0; k < STORES; k++) {
        arena_free(answers[k].arena);
    }
}

static char lists[STORES][1 << 16];
static size_t used;

static bool say_build(void *context, const struct build_row *r)
{
    used += (size_t)snprintf((char *)context + used, sizeof lists[0] - used,
                             "B %s %s %d %lld %lld %llu %llu %llu %llu %x\n", r->build_id.text, r->name, r->is_program,
                             (long long)r->first_seen, (long long)r->last_seen, (unsigned long long)r->uploads,
                             (unsigned long long)r->processes, (unsigned long long)r->nanoseconds,
                             (unsigned long long)r->calls, r->inexact);
    return true;
}

static bool say_label(void *context, const struct label_row *r)
{
    used += (size_t)snprintf((char *)context + used, sizeof lists[0] - used, "L %s=%s %llu\n", r->name, r->value,
                             (unsigned long long)r->uploads);
    return true;
}

static bool say_companion(void *context, const char *id, const char *name)
{
    used += (size_t)snprintf((char *)context + used, sizeof lists[0] - used, "C %s %s\n", id, name);
    return true;
}

static void compare_lists(void)
{
    struct store_totals t;
    for (int k = 0; k < STORES; k++) {
        used = 0;
        for (unsigned view = 0; view <= USERS; view++) {
            struct store_scope scope = {.all = view == USERS, .uid = view};
            OK(store_each_build(stores[k], &scope, "", 99, say_build, lists[k], &e));
            OK(store_each_label(stores[k], &scope, NULL, say_label, lists[k], &e));
            for (unsigned i = 0; i < BUILDS; i++) {
                OK(store_each_label(stores[k], &scope, build_name(i), say_label, lists[k], &e));
                OK(store_each_companion(stores[k], &scope, build_name(i), say_companion, lists[k], &e));
            }
        }
        OK(store_get_totals(stores[k], &t, &e));
        used += (size_t)snprintf(lists[k] + used, sizeof lists[0] - used, "T %llu %llu %llu %llu %llu %llu\n",
                                 (unsigned long long)t.builds, (unsigned long long)t.uploads,
                                 (unsigned long long)t.ticks, (unsigned long long)t.calls,
                                 (unsigned long long)t.retired_uploads, (unsigned long long)t.retired_calls);
        cr_assert_lt(used, sizeof lists[0]);
    }
    cr_assert_str_eq(lists[0], lists[1], "seed %u\n%s\n%s", seed, lists[0], lists[1]);
}

static struct memory_tier tier;

static void open_second(void)
{
    OK(store_sqlite_open_writer(path, &stores[1], &e));
    memory_tier_attach(&tier, stores[1]);
    store_set_tier(stores[1], seed % 2 == 0); /* it may have been taken from the configuration, too */
}

/* Some steps of sealing, of which any may be the last before a restart. */
static void seal_some(void)
{
    for (unsigned i = pick(4); i > 0; i--) {
        if (pick(10) == 0) {
            store_close(stores[1]);
            open_second();
            tier.step = MEMORY_TIER_IDLE;
        }
        memory_tier_step(&tier, stores[1], now - (1 + (int64_t)pick(3)) * DAY, now, pick(4000));
    }
}

/* Some slices of compaction by some policy: not necessarily all there is to do. */
static void compact_some(void)
{
    struct store_policy policy = {.raw_age = pick(2) ? HOUR : pick(60) * HOUR,
                                  .raw_bytes = pick(3) ? UINT64_MAX : pick(20000)};
    struct store_progress p = {.more = true};
    for (unsigned i = pick(4); p.more && i < 4; i++) {
        OK(store_compact(stores[1], &policy, now, &p, &e));
    }
}

static void retire_some(void)
{
    struct store_policy policy = {.raw_age = INT64_MAX / 4, .raw_bytes = UINT64_MAX, .keep_age = (4 + pick(5)) * DAY};
    for (int k = 0; k < STORES; k++) {
        for (struct store_progress p = {.more = true}; p.more;) {
            OK(store_retire(stores[k], &policy, now, &p, &e));
        }
    }
}

static void delete_some(void)
{
    struct store_scope scope = {.all = pick(2), .uid = pick(USERS)};
    const char *id = build_name(pick(BUILDS));
    uint64_t uploads[STORES] = {0, 0};
    enum profd_status status[STORES];
    for (int k = 0; k < STORES; k++) {
        status[k] = store_delete_build(stores[k], &scope, id, &uploads[k], &e);
    }
    cr_assert_eq(status[0], status[1], "seed %u: %d and %d", seed, status[0], status[1]);
    cr_assert_eq(uploads[0], uploads[1], "seed %u", seed);
}

static void say_mismatch(void *context, const char *sentence)
{
    (void)context;
    cr_assert_fail("seed %u: %s", seed, sentence);
}

static void expect_clean(void)
{
    uint64_t checked;
    for (struct store_cursor c = {.done = false}; !c.done;) {
        OK(store_verify(stores[1], &c, say_mismatch, NULL, &checked, &e));
    }
}

static void remove_files(void)
{
    static const char *const suffixes[] = {"", "-wal", "-shm"};
    char name[96];
    for (size_t i = 0; i < 3; i++) {
        snprintf(name, sizeof name, "%s%s", path, suffixes[i]);
        unlink(name);
    }
}

Test(store_upkeep, changes_no_answer)
{
    char directory[] = "/tmp/profd-upkeep-XXXXXX";
    const unsigned most = rounds(3);
    cr_assert(mkdtemp(directory));
    snprintf(path, sizeof path, "%s/profd.db", directory);
    for (seed = 1; seed <= most; seed++) {
        srand(seed);
        now = MIDNIGHT;
        OK(scratch_store_open(&stores[0], &e));
        memory_tier_init(&tier);
        open_second();
        for (int step = 0; step < 500; step++) {
            now += pick(6) * (HOUR / 4);
            put_random_upload();
            if (pick(8) == 0) {
                compact_some();
            }
            seal_some();
            if (pick(60) == 0) {
                retire_some();
            }
            if (pick(150) == 0) {
                delete_some();
            }
            if (step % 10 == 9) {
                compare_rows();
            }
            if (step % 50 == 49) {
                compare_lists();
                expect_clean();
            }
        }
        store_close(stores[0]);
        store_close(stores[1]);
        remove_files();
        cr_assert_gt(tier.fetched, 0, "seed %u: nothing was read from a block", seed);
        memory_tier_done(&tier);
    }
    rmdir(directory);
}
