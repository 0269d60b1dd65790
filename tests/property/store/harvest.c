/* Whatever happens between harvests of live processes, what they counted is there once: both engines against a model
 * that adds up. */
#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "core/rollup.h"
#include "store/store.h"
#include "tests/rounds.h"

#define HOUR INT64_C(3600000000000)
#define DAY (24 * HOUR)
#define MINUTE (HOUR / 60)
#define MIDNIGHT (INT64_C(20000) * DAY)

enum {
    USERS = 2,
    PROCESSES = 5,
    VARIANTS = 4,
    DAYS = 64,
    KEPT = 4000,
    BUILDS = 3,
    ADDRESSES = 5,
    BINS = 16,
    SHAPES = 2,
    BATCH = 6
};
enum { ARCS = (BUILDS + 1) * ADDRESSES * BUILDS * ADDRESSES, NUMBERS = ARCS + BUILDS * SHAPES * BINS };

/* What was counted, number by number. */
struct numbers {
    uint64_t of[NUMBERS], ticks, calls, processes;
};

/* A process as it should be known. */
struct process {
    uint64_t generation;
    int64_t seen;
    unsigned variant;
    bool ended;
    char snapshot[32];
};
static struct store *store;
static char path[96];
static struct numbers stored[USERS][VARIANTS][DAYS], accepted, retired;
/* What is stored, harvest by harvest. */
static struct {
    unsigned uid, variant;
    int64_t end;
    uint64_t ticks, calls, processes;
} kept[KEPT];
static unsigned kept_count;
static struct process processes[USERS][PROCESSES];
static unsigned seed;
static int64_t now;
static struct profd_error e;

#define OK(call) cr_assert_eq((call), PROFD_OK, "seed %u: %s: %s", seed, #call, e.sentence)
#define SAME(x, y)                                                                                                     \
    cr_assert_eq((x), (y), "seed %u: " #x ": %llu and %llu", seed, (unsigned long long)(x), (unsigned long long)(y))

static unsigned pick(unsigned n)
{
    return (unsigned)rand() % n;
}

static unsigned arc_number(uint32_t from_build, uint64_t from, uint32_t to_build, uint64_t to)
{
    unsigned f = from_build == COUNTS_NOWHERE ? BUILDS : from_build;
    cr_assert(f <= BUILDS && from < ADDRESSES && to_build < BUILDS && to < ADDRESSES);
    return (unsigned)(((f * ADDRESSES + from) * BUILDS + to_build) * ADDRESSES + to);
}

static unsigned bin_number(uint32_t build, uint64_t high, uint32_t bin)
{
    cr_assert(build < BUILDS && bin < BINS);
    return ARCS + (build * SHAPES + (high == 0x2000)) * BINS + bin;
}

static void add_numbers(struct numbers *to, const struct numbers *more)
{
    for (unsigned i = 0; i < NUMBERS; i++) {
        to->of[i] += more->of[i];
    }
    to->ticks += more->ticks;
    to->calls += more->calls;
    to->processes += more->processes;
}

/* --- harvests
 * ------------------------------------------------------------------------------------------------------------ */

struct made {
    struct store_upload h;
    struct store_build builds[BUILDS];
    char snapshot[32];
    unsigned process;
    struct numbers numbers;
};

static const struct store_label label = {"service", "web"};

static void make_bins(struct counts *c, struct made *m)
{
    for (uint32_t i = 0, n = 0; i < c->histogram_count; i++) {
        struct counts_histogram *h = &c->histograms[i];
        *h = (struct counts_histogram){.build = pick((unsigned)m->h.build_count),
                                       .bins = BINS,
                                       .low = 0x1000,
                                       .high = pick(2) ? 0x2000 : 0x3000,
                                       .rate = 100,
                                       .dimension = "seconds",
                                       .abbreviation = 's',
                                       .first = n};
        for (uint32_t bin = pick(4); bin < BINS && n < c->bin_count; bin += 1 + pick(5), n++, h->used++) {
            c->bin_index[n] = bin;
            c->bin_ticks[n] = 1 + pick(50);
            m->numbers.of[bin_number(h->build, h->high, bin)] += c->bin_ticks[n];
            m->builds[h->build].nanoseconds += c->bin_ticks[n] * 10000000;
        }
    }
}

/* Arcs and histograms at random, of which some come twice. */
static void make_counts(struct made *m)
{
    struct counts c;
    uint8_t *bytes;
    struct store_upload *u = &m->h;
    uint32_t builds = (uint32_t)u->build_count;
    OK(counts_init(&c, pick(4), 3 * 16, pick(20), &e));
    make_bins(&c, m);
    for (uint32_t i = 0; i < c.arc_count; i++) {
        c.from_build[i] = pick(4) == 0 ? COUNTS_NOWHERE : pick(builds);
        c.from[i] = pick(ADDRESSES);
        c.to_build[i] = pick(builds);
        c.to[i] = pick(ADDRESSES);
        c.calls[i] = pick(1000);
        m->numbers.of[arc_number(c.from_build[i], c.from[i], c.to_build[i], c.to[i])] += c.calls[i];
        m->builds[c.to_build[i]].calls += c.calls[i];
    }
    OK(counts_encode(&c, &bytes, &u->counts_size, &e));
    u->counts = bytes;
    counts_totals(&c, &u->ticks, &u->calls);
    m->numbers.ticks = u->ticks;
    m->numbers.calls = u->calls;
    counts_done(&c);
}

static void make_harvest(struct made *m, uint32_t uid, unsigned process)
{
    static const char *const ids[BUILDS] = {"abcd1111", "abcd2222", "eeee0123"};
    struct process *p = &processes[uid][process];
    struct store_upload *u = &m->h;
    memset(m, 0, sizeof *m);
    m->process = process;
    if (pick(6) == 0) {
        p->variant = pick(VARIANTS); /* it loaded or unloaded something */
    }
    *u = (struct store_upload){.uid = uid,
                               .received = now,
                               .end = now - pick(4) * (HOUR / 7),
                               .builds = m->builds,
                               .build_count = 2 + p->variant % 2,
                               .labels = &label,
                               .label_count = p->variant / 2,
                               .host = "h",
                               .group = process,
                               .processes_started = p->generation == 0};
    u->end = u->end < MIDNIGHT ? MIDNIGHT : u->end;
    u->start = u->end - pick(90) * (HOUR / 60);
    for (unsigned k = 0; k < u->build_count; k++) {
        m->builds[k].name = "x";
        snprintf(m->builds[k].id.text, sizeof m->builds[k].id.text, "%s", ids[k]);
    }
    m->numbers.processes = u->processes_started;
    if (pick(8) > 0) {
        make_counts(m);
    }
    m->h.base = pick(12) ? p->generation : pick(8);
    m->h.live = true;
    m->h.ended = pick(15) == 0;
    m->h.instance[3] = (uint8_t)process;
    snprintf(m->snapshot, sizeof m->snapshot, "%llx", (unsigned long long)rand());
    m->h.snapshot = (const uint8_t *)m->snapshot;
    m->h.snapshot_size = strlen(m->snapshot) * pick(2);
}

/* What the model makes of it. */
static enum store_outcome expect(const struct made *m)
{
    const struct store_upload *u = &m->h;
    struct process *p = &processes[u->uid][m->process];
    if (m->h.base != p->generation) {
        return STORE_STALE;
    }
    p->generation++;
    p->ended = m->h.ended;
    p->seen = now;
    snprintf(p->snapshot, sizeof p->snapshot, "%.*s", (int)m->h.snapshot_size, m->snapshot);
    if (u->counts_size > 0) {
        int64_t day = u->end / DAY - MIDNIGHT / DAY;
        cr_assert_lt(day, DAYS);
        add_numbers(&stored[u->uid][p->variant][day], &m->numbers);
        add_numbers(&accepted, &m->numbers);
        cr_assert_lt(kept_count, KEPT);
        kept[kept_count].uid = u->uid;
        kept[kept_count].variant = p->variant;
        kept[kept_count].end = u->end;
        kept[kept_count].ticks = m->numbers.ticks;
        kept[kept_count].calls = m->numbers.calls;
        kept[kept_count++].processes = m->numbers.processes;
    }
    return STORE_STORED;
}

static void harvest_some(void)
{
    static struct made made[BATCH];
    struct store_upload list[BATCH];
    enum store_outcome outcomes[BATCH], expected[BATCH];
    unsigned n = 1 + pick(BATCH), first = pick(USERS * PROCESSES);
    for (unsigned i = 0; i < n; i++) {
        unsigned who = (first + i) % (USERS * PROCESSES);
        make_harvest(&made[i], who / PROCESSES, who % PROCESSES);
        list[i] = made[i].h;
        expected[i] = expect(&made[i]);
    }
    OK(store_put_uploads(store, list, n, outcomes, &e));
    for (unsigned i = 0; i < n; i++) {
        SAME(outcomes[i], expected[i]);
        free((void *)(uintptr_t)made[i].h.counts);
    }
}

/* --- what is there
 * --------------------------------------------------------------------------------------------------------- */

static struct numbers found[USERS][VARIANTS];

static enum profd_status take_row(void *context, const struct store_row *row, struct profd_error *why)
{
    struct arena *a = context;
    struct counts c;
    struct counts r;
    cr_assert(row->uid < USERS && row->build_count >= 2 && row->build_count <= BUILDS && row->label_count <= 1);
    struct numbers *n = &found[row->uid][row->build_count - 2 + 2 * row->label_count];
    n->processes += row->processes_started;
#define ADD(x)                                                                                                         \
    do {                                                                                                               \
        for (uint32_t i = 0; i < (x).arc_count; i++) {                                                                 \
            n->of[arc_number((x).from_build[i], (x).from[i], (x).to_build[i], (x).to[i])] += (x).calls[i];             \
        }                                                                                                              \
        for (uint32_t i = 0; i < (x).histogram_count; i++) {                                                           \
            for (uint32_t k = (x).histograms[i].first, m = k + (x).histograms[i].used; k < m; k++) {                   \
                n->of[bin_number((x).histograms[i].build, (x).histograms[i].high, (x).bin_index[k])] +=                \
                    (x).bin_ticks[k];                                                                                  \
            }                                                                                                          \
        }                                                                                                              \
    } while (0)
    if (row->rolled) {
        cr_assert_eq(rollup_decode(a, row->counts, row->counts_size, (uint32_t)row->build_count, false, &r, why),
                     PROFD_OK);
        ADD(r);
    } else {
        cr_assert_eq(counts_decode(row->counts, row->counts_size, (uint32_t)row->build_count, &c, why), PROFD_OK);
        ADD(c);
        counts_done(&c);
    }
    return PROFD_OK;
}

/* Days first … last against the model. */
static void compare_days(unsigned first, unsigned last)
{
    struct store_scope all = {.all = true};
    struct store_filter filter = {
        .build_id = "abcd1111", .since = MIDNIGHT + first * DAY, .until = MIDNIGHT + (last + 1) * DAY};
    struct arena *a = arena_new(0);
    memset(found, 0, sizeof found);
    OK(store_each_upload(store, &all, &filter, take_row, a, &e));
    arena_free(a);
    for (unsigned uid = 0; uid < USERS; uid++) {
        for (unsigned v = 0; v < VARIANTS; v++) {
            struct numbers sum = {.ticks = 0};
            for (unsigned day = first; day <= last; day++) {
                add_numbers(&sum, &stored[uid][v][day]);
            }
            SAME(found[uid][v].processes, sum.processes);
            for (unsigned i = 0; i < NUMBERS; i++) {
                cr_assert_eq(found[uid][v].of[i], sum.of[i], "seed %u: user %u, series %u, number %u: %llu, not %llu",
                             seed, uid, v, i, (unsigned long long)found[uid][v].of[i], (unsigned long long)sum.of[i]);
            }
        }
    }
}

struct total {
    uint64_t ticks, calls, processes;
};

static enum profd_status add_total(void *context, const struct store_row *row, struct profd_error *why)
{
    struct total *t = context;
    uint64_t ticks = 0, calls = 0;
    if (row->rolled) {
        struct arena *a = arena_new(0);
        struct counts r;
        cr_assert_eq(rollup_decode(a, row->counts, row->counts_size, (uint32_t)row->build_count, false, &r, why),
                     PROFD_OK);
        counts_totals(&r, &ticks, &calls);
        arena_free(a);
    } else {
        struct counts c;
        cr_assert_eq(counts_decode(row->counts, row->counts_size, (uint32_t)row->build_count, &c, why), PROFD_OK);
        counts_totals(&c, &ticks, &calls);
        counts_done(&c);
    }
    t->ticks += ticks;
    t->calls += calls;
    t->processes += row->processes_started;
    return PROFD_OK;
}

/* A window with edges anywhere: it holds the harvests whose ends lie between the edges that were used, which lie around
 * it. */
static void compare_window(unsigned uid, int64_t since, int64_t until)
{
    struct store_scope scope = {.uid = uid};
    struct store_filter filter = {.build_id = "abcd1111", .since = since, .until = until};
    struct total have = {.ticks = 0}, want = {.ticks = 0};
    int64_t from, to; /* of what is rolled up the store knows hours only */
    OK(store_get_range(store, &scope, &filter, &from, &to, &e));
    cr_assert(from <= since && from > since - HOUR && to >= until && to < until + HOUR, "seed %u", seed);
    cr_assert((from == since || from % MINUTE == 0) && (to == until || to % MINUTE == 0), "seed %u", seed);
    OK(store_each_upload(store, &scope, &filter, add_total, &have, &e));
    for (unsigned i = 0; i < kept_count; i++) {
        if (kept[i].uid == uid && kept[i].end >= from && kept[i].end < to) {
            want.ticks += kept[i].ticks;
            want.calls += kept[i].calls;
            want.processes += kept[i].processes;
        }
    }
    SAME(have.ticks, want.ticks);
    SAME(have.calls, want.calls);
    SAME(have.processes, want.processes);
}

static bool count_living(void *context, const struct store_instance *i)
{
    cr_assert(i->uid < USERS && i->instance[3] < PROCESSES);
    const struct process *p = &processes[i->uid][i->instance[3]];
    cr_assert(p->generation > 0 && !p->ended, "seed %u", seed);
    SAME(i->generation, p->generation);
    SAME(i->seen, p->seen);
    cr_assert(i->snapshot_size == strlen(p->snapshot) && memcmp(i->snapshot, p->snapshot, i->snapshot_size) == 0);
    ++*(unsigned *)context;
    return true;
}

static void compare_processes(void)
{
    unsigned living = 0, expected = 0;
    for (unsigned uid = 0; uid < USERS; uid++) {
        for (unsigned i = 0; i < PROCESSES; i++) {
            uint8_t name[STORE_INSTANCE_SIZE] = {[3] = (uint8_t)i}, *snapshot;
            uint64_t generation;
            size_t size;
            const struct process *p = &processes[uid][i];
            OK(store_get_instance(store, uid, name, &generation, &snapshot, &size, &e));
            SAME(generation, p->generation);
            cr_assert(generation == 0 || (size == strlen(p->snapshot) && memcmp(snapshot, p->snapshot, size) == 0),
                      "seed %u", seed);
            free(snapshot);
            expected += generation > 0 && !p->ended;
        }
    }
    OK(store_each_instance(store, count_living, &living, &e));
    SAME(living, expected);
}

static void say_mismatch(void *context, const char *sentence)
{
    (void)context;
    cr_assert_fail("seed %u: %s", seed, sentence);
}

static void compare(void)
{
    uint64_t checked;
    struct store_totals t;
    unsigned day = pick((unsigned)((now - MIDNIGHT) / DAY) + 1);
    compare_days(0, DAYS - 1);
    compare_days(day, day);
    for (unsigned i = 0; i < 8; i++) {
        int64_t since = now - pick(30) * (HOUR / 7) - pick(120) * (MINUTE / 2);
        compare_window(pick(USERS), since > 0 ? since : 1, since + (1 + pick(100)) * (pick(2) ? MINUTE / 3 : HOUR));
    }
    OK(store_get_totals(store, &t, &e));
    SAME(t.ticks, accepted.ticks);
    SAME(t.calls, accepted.calls);
    SAME(t.retired_ticks, retired.ticks);
    SAME(t.retired_calls, retired.calls);
    compare_processes();
    for (struct store_cursor c = {.done = false}; !c.done;) {
        OK(store_verify(store, &c, say_mismatch, NULL, &checked, &e));
    }
}

/* --- what happens between harvests
 * -------------------------------------------------------------------------------------------- */

static void compact_some(void)
{
    struct store_policy policy = {.raw_age = pick(2) ? HOUR / 2 : pick(60) * HOUR,
                                  .raw_bytes = pick(3)   ? UINT64_MAX
                                               : pick(2) ? 40000 + pick(400000)
                                                         : pick(20000)};
    struct store_progress p = {.more = true};
    for (unsigned i = pick(4); p.more && i < 4; i++) {
        OK(store_compact(store, &policy, now, &p, &e));
    }
}

static void remove_day(unsigned uid, unsigned day)
{
    for (unsigned v = 0; v < VARIANTS; v++) {
        add_numbers(&retired, &stored[uid][v][day]);
        stored[uid][v][day] = (struct numbers){.ticks = 0};
    }
    for (unsigned i = 0; i < kept_count;) {
        if (kept[i].uid == uid && kept[i].end / DAY - MIDNIGHT / DAY == day) {
            kept[i] = kept[--kept_count];
        } else {
            i++;
        }
    }
}

static void retire_some(void)
{
    struct store_policy policy = {.raw_age = INT64_MAX / 4, .raw_bytes = UINT64_MAX, .keep_age = (2 + pick(4)) * DAY};
    for (struct store_progress p = {.more = true}; p.more;) {
        OK(store_retire(store, &policy, now, &p, &e));
    }
    for (unsigned uid = 0; uid < USERS; uid++) {
        for (int64_t day = 0; day < DAYS && MIDNIGHT / DAY + day < (now - policy.keep_age) / DAY; day++) {
            remove_day(uid, (unsigned)day);
        }
    }
}

static void delete_some(void)
{
    struct store_scope scope = {.all = pick(2), .uid = pick(USERS)};
    uint64_t uploads;
    (void)store_delete_build(store, &scope, "abcd1111", &uploads, &e); /* there may be none */
    for (unsigned uid = 0; uid < USERS; uid++) {
        for (unsigned day = 0; day < DAYS && (scope.all || uid == scope.uid); day++) {
            remove_day(uid, day);
        }
    }
}

static void forget_some(void)
{
    OK(store_remove_ids(store, now - 30 * DAY, &e));
    for (unsigned uid = 0; uid < USERS; uid++) {
        for (unsigned i = 0; i < PROCESSES; i++) {
            struct process *p = &processes[uid][i];
            if (p->ended && p->seen < now - DAY) {
                *p = (struct process){.variant = p->variant};
            }
        }
    }
}

static void live(void)
{
    for (int step = 0; step < 300; step++) {
        now += pick(2) ? pick(5) * (HOUR / 6) : pick(12) * (MINUTE / 6);
        if (pick(40) == 0) {
            now += DAY;
        }
        harvest_some();
        if (pick(8) == 0) {
            compact_some();
        }
        if (pick(30) == 0) {
            retire_some();
        }
        if (pick(60) == 0) {
            delete_some();
        }
        if (pick(20) == 0) {
            forget_some();
        }
        if (pick(25) == 0) {
            store_close(store);
            OK(store_sqlite_open_writer(path, &store, &e));
        }
        if (step % 12 == 11) {
            compare();
        }
    }
}

/* Without a .timeout: of two tests that have one and run side by side, Criterion's runner leaks memory. */
Test(store_harvest, everything_is_there_once)
{
    static const char *const suffixes[] = {"", "-wal", "-shm"};
    char directory[] = "/tmp/profd-harvest-XXXXXX", name[128];
    const unsigned most = rounds(4);
    cr_assert(mkdtemp(directory));
    snprintf(path, sizeof path, "%s/profd.db", directory);
    for (seed = 1; seed <= most; seed++) {
        srand(seed);
        now = MIDNIGHT;
        memset(stored, 0, sizeof stored);
        memset(processes, 0, sizeof processes);
        kept_count = 0;
        accepted = retired = (struct numbers){.ticks = 0};
        OK(store_sqlite_open_writer(path, &store, &e));
        live();
        store_close(store);
        for (size_t i = 0; i < 3 && snprintf(name, sizeof name, "%s%s", path, suffixes[i]) > 0; i++) {
            unlink(name);
        }
    }
    rmdir(directory);
}
