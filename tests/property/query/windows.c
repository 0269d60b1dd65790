/* Rolling uploads up changes no answer, nor does the cache, nor do days that move to a tier: the same fleet raw in
 * memory and rolled in SQLite is asked the same random questions, with compaction, late uploads, sealing and repeated
 * questions in between. */
#include <sqlite3.h>
#include <stdio.h>
#include <unistd.h>

#include "proto/collector.h"
#include "proto/counts_tree.h"
#include "query/query_internal.h"
#include "tests/memory_tier.h"
#include "tests/rounds.h"
#include "tests/unit/query/fleet.h"

#define SECOND_LIBRARY "77aa00ff12"
#define HOURS 100
#define HOUR (60 * MINUTE)

static uint64_t state;

static uint32_t below(uint32_t n)
{
    state = state * 6364136223846793005u + 1442695040888963407u;
    return (uint32_t)(state >> 33) % n;
}

/* Addresses of the cycle's functions, of the libraries', and of nothing. */
static uint64_t address(uint32_t build)
{
    return build == 0 ? F_START + 4 * (uint64_t)below(24) : L_F + 4 * (uint64_t)below(16);
}

/* The collector's counters, of the program, in every other upload. */
static void random_words(struct counts *c, uint32_t program, uint32_t *first)
{
    struct counts_histogram *h = &c->histograms[c->histogram_count - 1];
    collector_make_histogram(h, program);
    h->first = *first;
    for (uint32_t word = below(4); below(2) == 0 && word < 20 && h->used < 8; word += 1 + below(5), h->used++) {
        c->bin_index[*first] = word;
        c->bin_ticks[(*first)++] = 1 + (uint64_t)below(1000000) * below(1000000);
    }
}

/* Stacks of two clocks. */
static struct counts_stacks *random_stacks(uint32_t builds, struct counts_sizes *sizes)
{
    struct counts_stacks *s = counts_stacks_new();
    for (uint32_t n = below(3) * below(20); n > 0; n--) {
        struct counts_frame f[12];
        uint32_t depth = 1 + below(12);
        for (uint32_t k = 0; k < depth; k++) {
            uint32_t build = below(8) == 0 ? COUNTS_NOWHERE : below(builds);
            f[k] = (struct counts_frame){.build = build,
                                         .address = build == COUNTS_NOWHERE ? COUNTS_FRAME_OUTSIDE : address(build),
                                         .kind = k + 1 == depth && below(5) > 0};
        }
        cr_assert_eq(counts_stacks_add(s, 99 + below(2), "seconds", 's', f, depth, 1 + below(5), NULL), PROFD_OK);
    }
    cr_assert_eq(counts_stacks_finish(s, sizes, NULL), PROFD_OK);
    return s;
}

static void random_counts(uint32_t builds, uint32_t program, uint8_t **bytes, size_t *size, uint64_t *ticks,
                          uint64_t *calls)
{
    struct counts c;
    struct profd_error e;
    uint32_t histograms = below(3), arcs = below(60);
    struct counts_sizes sizes = {.histograms = histograms + 1, .bins = (histograms + 1) * 8, .arcs = arcs};
    struct counts_stacks *stacks = random_stacks(builds, &sizes);
    cr_assert_eq(counts_init_sizes(&c, &sizes, &e), PROFD_OK);
    counts_stacks_copy(stacks, &c);
    counts_stacks_free(stacks);
    uint32_t first = 0;
    for (uint32_t h = 0; h < histograms; h++) {
        uint32_t build = h == 0 ? 0 : below(builds);
        uint64_t low = build == 0 ? F_START : L_F;
        c.histograms[h] = (struct counts_histogram){.build = build,
                                                    .bins = 24,
                                                    .low = low,
                                                    .high = low + 96,
                                                    .rate = 100,
                                                    .dimension = "seconds",
                                                    .abbreviation = 's',
                                                    .first = first};
        if (below(5) == 0) {
            strcpy(c.histograms[h].dimension, "cycles");
        }
        for (uint32_t bin = below(6); bin < 24 && first < (h + 1) * 8; bin += 1 + below(9)) {
            c.bin_index[first] = bin;
            c.bin_ticks[first++] = 1 + below(50);
            c.histograms[h].used++;
        }
    }
    random_words(&c, program, &first);
    c.bin_count = first;
    for (uint32_t i = 0; i < arcs; i++) {
        c.from_build[i] = below(9) == 0 ? COUNTS_NOWHERE : below(builds);
        c.to_build[i] = below(20) == 0 ? COUNTS_NOWHERE : below(builds);
        c.from[i] = address(c.from_build[i]);
        c.to[i] = address(c.to_build[i]);
        c.calls[i] = below(5) == 0 ? 0 : 1 + below(1000);
    }
    counts_totals(&c, ticks, calls);
    cr_assert_eq(counts_encode(&c, bytes, size, &e), PROFD_OK, "%s", e.sentence);
    counts_done(&c);
}

static void put_random(struct store *raw, struct store *rolled, uint32_t number)
{
    static const char *const HOSTS[] = {"db1", "db2", "db3", "web"}, *const SERVICES[] = {"api", "batch"};
    static const char *const SETS[][3] = {{PROGRAM, NULL, NULL},
                                          {PROGRAM, LIBRARY, NULL},
                                          {LIBRARY, PROGRAM, SECOND_LIBRARY},
                                          {PROGRAM, SECOND_LIBRARY, LIBRARY},
                                          {SECOND_LIBRARY, LIBRARY, NULL}};
    struct store_label labels[] = {{"host", HOSTS[below(4)]}, {"service", SERVICES[below(2)]}};
    const char *const *set = SETS[below(5)];
    struct store_build builds[3];
    struct store_upload u = {.uid = below(5) == 0 ? 0 : 1000,
                             .sequence = 1,
                             .builds = builds,
                             .label_count = below(5) == 0 ? 1 : 2,
                             .labels = labels,
                             .group = below(16)};
    uint8_t *bytes;
    enum store_outcome outcome;
    struct profd_error e;
    for (; u.build_count < 3 && set[u.build_count] != NULL; u.build_count++) {
        builds[u.build_count] = (struct store_build){.name = set[u.build_count]};
        strcpy(builds[u.build_count].id.text, set[u.build_count]);
        u.program = strcmp(set[u.build_count], PROGRAM) == 0 ? (uint32_t)u.build_count : u.program;
    }
    random_counts((uint32_t)u.build_count, u.program, &bytes, &u.counts_size, &u.ticks, &u.calls);
    u.counts = bytes;
    memset(u.host, "abcd"[below(4)], 32);
    memcpy(u.sender, &number, sizeof number);
    u.end = FLEET_NOW - (int64_t)below(HOURS * 60) * MINUTE - 1 - below(1000000);
    u.start = u.end - MINUTE * below(30);
    u.received = u.end;
    u.processes_started = below(2);
    u.inexact = below(10) == 0 ? 1 : 0;
    cr_assert_eq(store_put_uploads(raw, &u, 1, &outcome, &e), PROFD_OK, "%s", e.sentence);
    cr_assert_eq(store_put_uploads(rolled, &u, 1, &outcome, &e), PROFD_OK, "%s", e.sentence);
    free(bytes);
}

/* A question: which build, what, which uploads. */
static void random_target(char *target, size_t size, const char *since, const char *until)
{
    static const char *const BUILDS[] = {PROGRAM, PROGRAM, PROGRAM, LIBRARY, SECOND_LIBRARY};
    static const char *const WHAT[] = {"report?limit=0&format=json",
                                       "report?limit=0&format=text",
                                       "report?format=gprof",
                                       "counts?uid=1000",
                                       "report?limit=3&sort=calls&static=1",
                                       "groups?by=host&by=service",
                                       "groups?step=1h&by=host",
                                       "groups?step=1d",
                                       "report?view=flat&limit=0",
                                       "report?dimension=cycles&limit=0",
                                       "groups?by=host&dimension=cycles"};
    static const char *const WHICH[] = {"",
                                        "",
                                        "&match=host%3D~%22db.%2A%22",
                                        "&label.service=api",
                                        "&match=host!%3D%22db1%22",
                                        "&match=service!~%22.%2B%22",
                                        "&scope=everywhere",
                                        "&scope=everywhere&label.host=web"};
    int n = snprintf(target, size, "/api/v1/builds/%s/%s%s", BUILDS[below(5)], WHAT[below(11)], WHICH[below(8)]);
    n += snprintf(target + n, size - (size_t)n, "%s%s", since[0] ? "&since=" : "", since);
    snprintf(target + n, size - (size_t)n, "%s%s", until[0] ? "&until=" : "", until);
}

/* A border of an hour as a parameter, or "". */
static void random_edge(char out[24], bool later, bool aligned)
{
    int64_t at = FLEET_NOW - (int64_t)below(HOURS) * HOUR;
    at -= at % HOUR;
    at += later ? HOUR : 0;
    at += aligned ? 0 : (int64_t)below(3600) * 1000000000;
    snprintf(out, 24, "%lld", (long long)(at / 1000000000));
    if (below(4) == 0) {
        out[0] = '\0';
    }
}

static struct fleet_answer ask(struct store *s, const char *target, struct query_cache *cache)
{
    struct query_request request = {
        .target = target, .if_none_match = "", .scope = {.all = true}, .http = true, .now = FLEET_NOW, .cache = cache};
    struct query_answer answer;
    query_run(s, &request, &answer);
    struct fleet_answer out = {
        .http = answer.http_status, .size = answer.body.size, .body = calloc(1, answer.body.size + 1)};
    memcpy(out.body, answer.body.data, answer.body.size);
    query_answer_done(&answer);
    return out;
}

static void cr_same(const struct fleet_answer *a, const struct fleet_answer *b, const char *target, const char *what)
{
    cr_assert(a->http == b->http && a->size == b->size && memcmp(a->body, b->body, a->size) == 0,
              "%s, %s: %d %d\n%.3000s\n%.3000s", target, what, a->http, b->http, a->body, b->body);
}

static void compare_aligned(struct store *raw, struct store *rolled, struct query_cache *cache, uint32_t *answered)
{
    char target[600], since[24], until[24];
    random_edge(since, false, true);
    random_edge(until, true, true);
    random_target(target, sizeof target, since, until);
    struct fleet_answer a = ask(raw, target, NULL), b = ask(rolled, target, NULL), c = ask(rolled, target, cache),
                        d = ask(rolled, target, cache);
    cr_same(&a, &b, target, "rolled");
    cr_same(&a, &c, target, "with a cache");
    cr_same(&a, &d, target, "from the cache");
    cr_assert(a.http == 200 || a.http == 400 || a.http == 404 || a.http == 409, "%s: %s", target, a.body);
    *answered += a.http == 200;
    free(a.body);
    free(b.body);
    free(c.body);
    free(d.body);
}

/* Edges anywhere: the window that is said is the window that was used. */
static void compare_unaligned(struct store *raw, struct store *rolled, struct query_cache *cache, uint32_t *moved)
{
    char target[300], since[24], until[24];
    random_edge(since, false, false);
    random_edge(until, true, false);
    snprintf(target, sizeof target, "/api/v1/builds/" PROGRAM "/report?limit=0%s%s%s%s", since[0] ? "&since=" : "",
             since, until[0] ? "&until=" : "", until);
    struct fleet_answer a = ask(rolled, target, cache);
    if (a.http == 200) {
        json_t *used = fleet_parse(&a);
        const json_t *from = fleet_at(used, "window/since"), *to = fleet_at(used, "window/until");
        snprintf(target, sizeof target, "/api/v1/builds/" PROGRAM "/report?limit=0%s%s%s%s",
                 json_is_null(from) ? "" : "&since=", json_is_null(from) ? "" : json_string_value(from),
                 json_is_null(to) ? "" : "&until=", json_is_null(to) ? "" : json_string_value(to));
        *moved += !json_equal(from, json_object_get(used, "since")) || !json_equal(to, json_object_get(used, "until"));
        struct fleet_answer b = ask(raw, target, NULL);
        json_t *expected = fleet_parse(&b);
        json_object_set(expected, "since", json_object_get(used, "since"));
        json_object_set(expected, "until", json_object_get(used, "until"));
        cr_assert(json_equal(used, expected), "%s\n%.3000s\n%.3000s", target, a.body, b.body);
        json_decref(expected);
        json_decref(used);
        free(b.body);
    }
    free(a.body);
}

/* Processes by group, asked for as a comparison does. */
static struct random_groups load_groups(struct store *s, struct query_cache *cache, int64_t since, int64_t until)
{
    struct arena *a = arena_new(0);
    struct profd_error e = {""};
    struct load load;
    const struct load_request request = {.store = s,
                                         .scope = {.all = true},
                                         .cache = cache,
                                         .filter = {.build_id = PROGRAM, .since = since, .until = until}};
    cr_assert_eq(load_profile(&request, a, &load, &e), PROFD_OK, "%s", e.sentence);
    struct random_groups groups = load.provenance.groups;
    cr_assert_eq(random_groups_known(&groups) + groups.unknown, load.provenance.processes);
    arena_free(a);
    return groups;
}

static void compare_groups(struct store *raw, struct store *rolled, struct query_cache *cache)
{
    int64_t since = (FLEET_NOW / HOUR - (int64_t)below(HOURS)) * HOUR,
            until = since + (1 + (int64_t)below(HOURS)) * HOUR;
    bool all = below(3) == 0;
    const struct random_groups a = load_groups(raw, NULL, all ? 0 : since, all ? 0 : until),
                               b = load_groups(rolled, cache, all ? 0 : since, all ? 0 : until);
    cr_assert_eq(memcmp(&a, &b, sizeof a), 0);
    cr_assert_eq(a.unknown, 0);
}

static struct profile *load_stacks(struct store *s, struct query_cache *cache, const struct load_request *what,
                                   struct arena *a)
{
    struct profd_error e = {""};
    struct load load;
    struct load_request request = *what;
    request.store = s;
    request.cache = cache;
    cr_assert_eq(load_profile(&request, a, &load, &e), PROFD_OK, "%s", e.sentence);
    return load.profile;
}

static void same_stacks(const struct profile *p, const struct profile *q, enum load_stacks stacks, const char *what)
{
    const struct counts *a = &p->counts, *b = &q->counts;
    const uint64_t *left = p->shares.nodes, *right = q->shares.nodes;
    size_t n = a->node_count;
    cr_assert_eq(p->build_count, q->build_count);
    for (uint32_t i = 0; i < p->build_count; i++) {
        cr_assert_str_eq(p->builds[i], q->builds[i]);
    }
    cr_assert(a->tree_count == b->tree_count && n == b->node_count, "%s: %zu nodes, %u", what, n, b->node_count);
    for (uint32_t i = 0; i < a->tree_count; i++) {
        cr_assert(counts_compare_clocks(&a->trees[i], &b->trees[i]) == 0 && a->trees[i].used == b->trees[i].used);
    }
    if (n == 0) { /* there may be no arrays */
        return;
    }
    cr_assert_arr_eq(a->node_depth, b->node_depth, n);
    cr_assert_arr_eq(a->node_kind, b->node_kind, n);
    cr_assert_arr_eq(a->node_build, b->node_build, n * sizeof *a->node_build);
    cr_assert_arr_eq(a->node_address, b->node_address, n * sizeof *a->node_address);
    cr_assert_arr_eq(a->node_ticks, b->node_ticks, n * sizeof *a->node_ticks);
    cr_assert((left != NULL) == (stacks == LOAD_STACKS_SHARES) && (right != NULL) == (stacks == LOAD_STACKS_SHARES));
    for (size_t i = 0; i < n && left != NULL; i++) {
        uint64_t sum = 0;
        for (size_t g = i * COUNTS_GROUPS; g < (i + 1) * COUNTS_GROUPS; g++) {
            cr_assert_eq(left[g], right[g], "%s: node %zu", what, i);
            sum += left[g];
        }
        cr_assert_eq(sum, a->node_ticks[i]);
    }
}

static void compare_stacks(struct store *raw, struct store *rolled, struct query_cache *cache, uint32_t *nodes)
{
    int64_t since = (FLEET_NOW / HOUR - (int64_t)below(HOURS)) * HOUR,
            until = since + (1 + (int64_t)below(HOURS)) * HOUR;
    bool all = below(3) == 0;
    const struct load_request what = {
        .scope = {.all = true},
        .filter = {.build_id = below(2) ? PROGRAM : LIBRARY, .since = all ? 0 : since, .until = all ? 0 : until},
        .alone = below(3) == 0,
        .stacks = (enum load_stacks)below(3)};
    struct arena *a = arena_new(0);
    const struct profile *p = load_stacks(raw, NULL, &what, a);
    same_stacks(p, load_stacks(rolled, NULL, &what, a), what.stacks, "rolled");
    same_stacks(p, load_stacks(rolled, cache, &what, a), what.stacks, "with a cache");
    same_stacks(p, load_stacks(rolled, cache, &what, a), what.stacks, "from the cache");
    cr_assert(what.stacks != LOAD_STACKS_NONE || p->counts.node_count == 0);
    *nodes += p->counts.node_count;
    arena_free(a);
}

static void lock(void *context)
{
    cr_assert_eq((*(int *)context)++, 0);
}

static void unlock(void *context)
{
    cr_assert_eq(--*(int *)context, 0);
}

static void compact(struct store *s, int64_t age, uint32_t slices)
{
    const struct store_policy policy = {.raw_age = age, .raw_bytes = UINT64_MAX};
    struct store_progress progress = {.more = true};
    struct profd_error e = {""};
    for (; progress.more && slices > 0; slices--) {
        cr_assert_eq(store_compact(s, &policy, FLEET_NOW, &progress, &e), PROFD_OK, "%s", e.sentence);
    }
}

static void remove_database(const char *directory, const char *path)
{
    static const char *const SUFFIX[] = {"", "-wal", "-shm"};
    for (int i = 0; i < 3; i++) {
        char file[240];
        snprintf(file, sizeof file, "%s%s", path, SUFFIX[i]);
        unlink(file);
    }
    cr_assert_eq(rmdir(directory), 0);
}

static void run_fleet(uint64_t seed, size_t cache_size)
{
    char directory[200], path[230];
    struct store *raw = fleet_open(), *rolled = NULL;
    struct profd_error e = {""};
    int held = 0;
    uint32_t answered = 0, moved = 0, nodes = 0;
    const struct query_lock locking = {lock, unlock, &held};
    struct query_cache *cache = query_cache_new(cache_size, &locking);
    struct memory_tier tier;
    snprintf(directory, sizeof directory, "%s/profd-windows-XXXXXX",
             getenv("TMPDIR") != NULL ? getenv("TMPDIR") : "/tmp");
    cr_assert_not_null(mkdtemp(directory));
    snprintf(path, sizeof path, "%s/profd.db", directory);
    cr_assert_eq(store_sqlite_open_writer(path, &rolled, &e), PROFD_OK, "%s", e.sentence);
    memory_tier_init(&tier);
    memory_tier_attach(&tier, rolled);
    store_set_tier(rolled, true);
    state = seed;
    for (int which = 0; which < 2; which++) {
        fleet_put_object(which ? raw : rolled, PROGRAM, 1000);
        fleet_put_object(which ? raw : rolled, LIBRARY, 1000);
    }
    for (uint32_t number = 1; number <= 280; number++) {
        put_random(raw, rolled, number);
        if (below(10) == 0) {
            compact(rolled, (int64_t)below(HOURS) * HOUR, 1 + below(40));
        }
        for (uint32_t i = below(3); i > 0; i--) { /* written so long ago that what came late is sealed, too */
            memory_tier_step(&tier, rolled, FLEET_NOW - (int64_t)below(48) * HOUR, 1, below(1 << 20));
        }
        if (number % 16 == 0) {
            compare_aligned(raw, rolled, cache, &answered);
            compare_unaligned(raw, rolled, cache, &moved);
            compare_groups(raw, rolled, cache);
            compare_stacks(raw, rolled, cache, &nodes);
        }
    }
    compact(rolled, 0, UINT32_MAX);
    memory_tier_seal(&tier, rolled, FLEET_NOW - (int64_t)(seed % 2) * 24 * HOUR, 1);
    for (uint32_t i = 0; i < rounds(40); i++) {
        compare_aligned(raw, rolled, cache, &answered);
        compare_unaligned(raw, rolled, cache, &moved);
        compare_groups(raw, rolled, cache);
        compare_stacks(raw, rolled, cache, &nodes);
    }
    struct query_cache_use use = query_cache_measure(cache);
    cr_assert(answered > rounds(40) / 4 && moved > 5 && nodes > 1000 * rounds(40), "%u answered, %u moved, %u nodes",
              answered, moved, nodes);
    cr_assert(use.missed > 0 && use.bytes <= cache_size && (cache_size < 1000000 || use.found > 50),
              "%llu found, %llu missed", (unsigned long long)use.found, (unsigned long long)use.missed);
    cr_assert_gt(tier.fetched, 300, "%zu sums were fetched", tier.fetched);
    query_cache_free(cache);
    memory_tier_done(&tier);
    store_close(raw);
    store_close(rolled);
    remove_database(directory, path);
}

/* Of the allocations of an answer, how many there are from one that is refused to the next one. */
#ifdef __SANITIZE_ADDRESS__
#define REFUSAL_STEP 13
extern int __lsan_do_recoverable_leak_check(void);
#else
#define REFUSAL_STEP (getenv("PROFD_ROUNDS") ? 1u : 7u)
static int __lsan_do_recoverable_leak_check(void)
{
    return 0;
}
#endif

/* A statement that was left open would have a snapshot, and keep the log. */
static void truncate_log(const char *path)
{
    sqlite3 *db;
    int pages = -1, done = -1;
    cr_assert_eq(sqlite3_open(path, &db), SQLITE_OK);
    cr_assert_eq(sqlite3_exec(db, "SELECT count(*) FROM sqlite_schema", NULL, NULL, NULL), SQLITE_OK);
    const int status = sqlite3_wal_checkpoint_v2(db, "main", SQLITE_CHECKPOINT_TRUNCATE, &pages, &done);
    cr_assert_eq(status, SQLITE_OK, "%s", sqlite3_errmsg(db));
    cr_assert(pages == 0 && done == 0, "%d pages of log, %d in the database", pages, done);
    sqlite3_close(db);
}

/* Asks with the first allocation refused, then with the one that is `step` further, until nothing is refused any more.
 * An answer is right, or says that there was no memory. */
static void refuse_each(struct store *s, const char *path, const char *target, uint64_t step)
{
    int held = 0;
    const struct query_lock locking = {lock, unlock, &held};
    struct fleet_answer right = ask(s, target, NULL);
    uint64_t n = 1, asked = 0, failed = 0;
    cr_assert_eq(right.http, 200, "%s: %s", target, right.body);
    for (bool refused = true; refused; n += step) {
        struct query_cache *cache = ++asked % 2 == 0 ? query_cache_new(1 << 20, &locking) : NULL;
        if (cache && asked % 4 == 0) { /* what is found in the cache is added up while that is locked */
            struct fleet_answer first = ask(s, target, cache);
            free(first.body);
        }
        arena_refuse(n);
        struct fleet_answer a = ask(s, target, cache);
        refused = arena_refuse(0) == 0;
        cr_assert_eq(held, 0);
        if (a.http == 200) {
            cr_assert(a.size == right.size && memcmp(a.body, right.body, a.size) == 0, "%s: %d", target, (int)n);
        } else {
            cr_assert(refused && strstr(a.body, "memory") != NULL, "%s, %d: %s", target, (int)n, a.body);
            failed++;
        }
        free(a.body);
        query_cache_free(cache);
        if (asked % 64 == 0 || !refused) {
            truncate_log(path);
            cr_assert_eq(__lsan_do_recoverable_leak_check(), 0, "%s: %d", target, (int)n);
        }
    }
    cr_assert(failed > 0 && failed * 10 + 20 > asked * 9, "%s: %d of %d", target, (int)failed, (int)asked);
    free(right.body);
}

Test(query_windows, an_answer_without_memory_is_refused_and_leaves_nothing_open)
{
#define REPORT "/api/v1/builds/" PROGRAM
    static const struct {
        const char *target;
        uint64_t step;
    } TARGETS[] = {
        {REPORT "/report?limit=0", 1},
        {REPORT "/report?limit=0&match=host%3D~%22db.%2A%22&since=2020-01-01", 7},
        {REPORT "/report?format=text&view=graph&uid=1000", 11},
        {REPORT "/report?format=gprof&geometry=1&uid=1000", 11},
        {REPORT "/report?format=pprof&uid=1000", 11},
        {REPORT "/report?format=folded&uid=1000", 11},
        {REPORT "/report?format=dot&uid=1000", 11},
        {REPORT "/report?format=speedscope&uid=1000", 11},
        {REPORT "/report?format=callgrind&uid=1000", 11},
        {REPORT "/report?format=csv&uid=1000", 11},
        {REPORT "/groups?by=host&step=1h", 1},
        {REPORT "/cycles", 11},
        {REPORT "/counts?geometry=1", 11},
        {REPORT "/functions/main/addresses?uid=1000", 11},
        {REPORT "/functions/main/callers?uid=1000", 11},
        {REPORT "/functions/main/series?step=1d&uid=1000", 31},
        {REPORT "/never-called", 11},
        {REPORT, 1},
        {"/api/v1/diff?a=" PROGRAM "&b=" PROGRAM "&a.label.service=api&b.label.service=batch", 3},
        {"/api/v1/functions", 11},
        {"/api/v1/labels", 1},
        {"/api/v1/labels?build_id=" PROGRAM "&label.service=api", 1},
        {"/api/v1/builds", 1},
        {"/api/v1/versions", 1},
        {"/api/v1/load?by=host&since=1795000000", 11},
    };
    char directory[200], path[230];
    struct store *rolled = NULL, *raw = fleet_open();
    struct profd_error e = {""};
    snprintf(directory, sizeof directory, "%s/profd-windows-XXXXXX",
             getenv("TMPDIR") != NULL ? getenv("TMPDIR") : "/tmp");
    cr_assert_not_null(mkdtemp(directory));
    snprintf(path, sizeof path, "%s/profd.db", directory);
    cr_assert_eq(store_sqlite_open_writer(path, &rolled, &e), PROFD_OK, "%s", e.sentence);
    state = 7;
    fleet_put_object(rolled, PROGRAM, 1000);
    fleet_put_object(rolled, LIBRARY, 1000);
    for (uint32_t number = 1; number <= 12; number++) {
        put_random(raw, rolled, number);
        if (number == 8) {
            compact(rolled, 0, UINT32_MAX);
        }
    }
    for (size_t i = 0; i < sizeof TARGETS / sizeof *TARGETS; i++) {
        refuse_each(rolled, path, TARGETS[i].target, TARGETS[i].step * REFUSAL_STEP);
    }
    store_close(raw);
    store_close(rolled);
    remove_database(directory, path);
}

Test(query_windows, rolling_up_changes_no_answer)
{
    for (uint64_t seed = 1; seed <= 2; seed++) {
        run_fleet(seed, seed % 2 == 0 ? 20000 : 4000000);
    }
}
