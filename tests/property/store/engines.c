/* The two engines say the same, whatever happens to them: thousands of random verbs, every answer compared. */
#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "store/store.h"

enum { ENGINES = 2, BUILDS = 7, USERS = 3 };

static struct store *writers[ENGINES], *readers[ENGINES];
static unsigned seed;
static char answer[ENGINES][1 << 18];
static size_t used;
static int current;

static void say(const char *format, ...) __attribute__((format(printf, 1, 2)));
static void say(const char *format, ...)
{
    va_list ap;
    va_start(ap, format);
    used += (size_t)vsnprintf(answer[current] + used, sizeof answer[0] - used, format, ap);
    va_end(ap);
    cr_assert_lt(used, sizeof answer[0]);
}

static unsigned pick(unsigned n)
{
    return (unsigned)rand() % n;
}

static const char *build_name(unsigned i)
{
    static const char *const ids[BUILDS] = {"abcd1111", "abcd2222", "abcd", "eeee01", "ee", "ffff9999aa", "0123456789"};
    return ids[i];
}

static void make_label(struct store_label *labels, size_t *n)
{
    static const char *const names[] = {"host", "service", "version"}, *const values[] = {"a", "b"};
    *n = 0;
    for (unsigned i = 0; i < 3; i++) {
        if (pick(2)) {
            labels[(*n)++] = (struct store_label){names[i], values[pick(2)]};
        }
    }
}

static void put_random_uploads(void)
{
    struct store_upload u[4];
    struct store_build builds[4][3];
    struct store_label labels[4][3];
    char counts[4][16];
    size_t n = 1 + pick(4);
    for (size_t i = 0; i < n; i++) {
        unsigned first = pick(BUILDS);
        u[i] = (struct store_upload){
            .uid = pick(USERS), .sequence = 1 + pick(60), .received = 1000, .build_count = 1 + pick(3)};
        u[i].start = (int64_t)pick(20) * INT64_C(1200000000000);
        u[i].end = u[i].start + (int64_t)pick(10) * INT64_C(900000000000);
        u[i].processes_started = pick(2);
        u[i].inexact = pick(3);
        u[i].sender[0] = (uint8_t)pick(3);
        snprintf(u[i].host, sizeof u[i].host, "%s", pick(2) ? "h" : "");
        for (unsigned k = 0; k < u[i].build_count; k++) {
            builds[i][k] =
                (struct store_build){.name = pick(2) ? "x" : "y", .nanoseconds = pick(100), .calls = pick(100)};
            snprintf(builds[i][k].id.text, sizeof builds[i][k].id.text, "%s", build_name((first + k) % BUILDS));
        }
        u[i].builds = builds[i];
        u[i].program = pick((unsigned)u[i].build_count);
        make_label(labels[i], &u[i].label_count);
        u[i].labels = labels[i];
        u[i].counts_size = (size_t)snprintf(counts[i], sizeof counts[i], "%d", rand());
        u[i].counts = (const uint8_t *)counts[i];
        u[i].ticks = pick(50);
        u[i].calls = pick(50);
    }
    enum store_outcome outcomes[ENGINES][4];
    struct profd_error e;
    for (int k = 0; k < ENGINES; k++) {
        cr_assert_eq(store_put_uploads(writers[k], u, n, outcomes[k], &e), PROFD_OK, "seed %u: %s", seed, e.sentence);
    }
    cr_assert_eq(memcmp(outcomes[0], outcomes[1], n * sizeof outcomes[0][0]), 0, "seed %u", seed);
}

static void put_random_object(void)
{
    struct profd_error e;
    char content[8];
    snprintf(content, sizeof content, "c%u", pick(3));
    struct store_object o = {
        .uid = pick(USERS), .trusted = pick(5) == 0, .has_names = pick(3) != 0, .name = "n", .note = ""};
    snprintf(o.id.text, sizeof o.id.text, "%s", build_name(pick(BUILDS)));
    if (pick(4) == 0) {
        o.has_names = false;
        o.note = pick(2) ? "bad" : "worse";
    } else {
        /* names follow from the content, as they do in life */
        o.has_names = content[1] != '0';
        snprintf(o.variant, sizeof o.variant, "v%u", pick(2));
        o.encoded = o.bounds = (const uint8_t *)content;
        o.encoded_size = o.bounds_size = strlen(content);
    }
    for (int k = 0; k < ENGINES; k++) {
        cr_assert_eq(store_put_object(writers[k], &o, &e), PROFD_OK, "seed %u: %s", seed, e.sentence);
    }
}

static bool say_build(void *context, const struct build_row *r)
{
    (void)context;
    say("B %s %s %d %lld %lld %llu %llu %llu %llu %x %d '%s'\n", r->build_id.text, r->name, r->is_program,
        (long long)r->first_seen, (long long)r->last_seen, (unsigned long long)r->uploads,
        (unsigned long long)r->processes, (unsigned long long)r->nanoseconds, (unsigned long long)r->calls, r->inexact,
        r->has_names, r->note);
    return true;
}

static bool say_label(void *context, const struct label_row *r)
{
    (void)context;
    say("L %s=%s %llu\n", r->name, r->value, (unsigned long long)r->uploads);
    return true;
}

static bool say_companion(void *context, const char *id, const char *name)
{
    (void)context;
    say("C %s %s\n", id, name);
    return true;
}

static enum profd_status say_upload(void *context, const struct store_row *r, struct profd_error *e)
{
    (void)context;
    (void)e;
    say("U %llu %u %s %lld %lld %x %llu %u %.*s", (unsigned long long)r->commit, r->uid, r->host, (long long)r->start,
        (long long)r->end, r->inexact, (unsigned long long)r->processes_started, r->program, (int)r->counts_size,
        (const char *)r->counts);
    for (size_t i = 0; i < r->build_count; i++) {
        say(" %s(%s)", r->builds[i].id.text, r->builds[i].name);
    }
    say("\n");
    return PROFD_OK;
}

static void say_object(struct store *s, const char *id, unsigned users)
{
    uint32_t uids[USERS];
    struct store_naming naming = {.variants = 0};
    size_t n = 0, size = 0;
    uint8_t *bytes = NULL;
    const uint8_t *bounds;
    bool known;
    struct profd_error e;
    for (uint32_t uid = 0; uid < USERS; uid++) {
        if (users & 1u << uid) {
            uids[n++] = uid;
        }
    }
    const struct store_senders of = {.uids = uids, .uid_count = n};
    enum profd_status status = store_get_object(s, &of, id, &bytes, &size, &naming, &e);
    say("O %s %u: %d %.*s of %u", id, users, status, (int)size, bytes ? (const char *)bytes : "", naming.variants);
    free(bytes);
    for (uint32_t uid = 0; uid < USERS; uid++) {
        cr_assert_eq(store_has_object(s, uid, id, &known, &e), PROFD_OK);
        cr_assert_eq(store_get_bounds(s, uid, id, &bounds, &size, &e), PROFD_OK);
        say(" %d/%.*s", known, (int)size, size > 0 ? (const char *)bounds : "");
    }
    say("\n");
}

static void ask_everything(struct store *s, unsigned choice)
{
    struct profd_error e;
    struct store_totals t;
    for (unsigned view = 0; view <= USERS; view++) {
        struct store_scope scope = {.all = view == USERS, .uid = view};
        struct store_epoch epoch;
        cr_assert_eq(store_each_build(s, &scope, choice % 2 ? "" : "abcd1111", 1 + choice % 9, say_build, NULL, &e),
                     PROFD_OK);
        cr_assert_eq(store_each_label(s, &scope, NULL, say_label, NULL, &e), PROFD_OK);
        cr_assert_eq(store_epoch_all(s, &scope, &epoch, &e), PROFD_OK);
        say("E %llu\n", (unsigned long long)epoch.number);
        for (unsigned i = 0; i < BUILDS; i++) {
            struct store_matcher match = {"host", choice % 3 == 0 ? "" : "a",
                                          choice % 5 < 2 ? STORE_MATCH_EQUAL : STORE_MATCH_NOT_EQUAL, NULL};
            struct store_filter filter = {.build_id = build_name(i),
                                          .as_program = choice % 4 == 0,
                                          .since = (choice % 11) * INT64_C(1500000000000),
                                          .until = choice % 3 == 1 ? (choice % 23) * INT64_C(1100000000000) : 0,
                                          .matcher_count = choice % 2,
                                          .matchers = &match};
            struct buildid found = {.text = ""};
            enum profd_status status = store_find_build(s, &scope, build_name(i), &found, &e);
            say("F %s %d %s\n", build_name(i), status, found.text);
            cr_assert_eq(store_each_upload(s, &scope, &filter, say_upload, NULL, &e), PROFD_OK);
            cr_assert_eq(store_each_label(s, &scope, build_name(i), say_label, NULL, &e), PROFD_OK);
            cr_assert_eq(store_each_companion(s, &scope, build_name(i), say_companion, NULL, &e), PROFD_OK);
            cr_assert_eq(store_epoch(s, &scope, build_name(i), &epoch, &e), PROFD_OK);
            say("E %llu\n", (unsigned long long)epoch.number);
            say_object(s, build_name(i), choice % (1u << USERS));
        }
    }
    cr_assert_eq(store_get_totals(s, &t, &e), PROFD_OK);
    say("T %llu %llu %llu %llu %llu\n", (unsigned long long)t.builds, (unsigned long long)t.builds_without_names,
        (unsigned long long)t.uploads, (unsigned long long)t.ticks, (unsigned long long)t.calls);
}

static void compare_answers(void)
{
    unsigned choice = (unsigned)rand();
    for (current = 0; current < ENGINES; current++) {
        used = 0;
        ask_everything(readers[current], choice);
    }
    for (size_t i = 0, line = 0; answer[0][i] || answer[1][i]; i++) {
        cr_assert_eq(answer[0][i], answer[1][i], "seed %u, choice %u:\nmemory %.200s\nsqlite %.200s", seed, choice,
                     answer[0] + line, answer[1] + line);
        if (answer[0][i] == '\n') {
            line = i + 1;
        }
    }
}

Test(store_engines, agree_on_everything)
{
    char directory[] = "/tmp/profd-engines-XXXXXX", path[64], side[80];
    struct profd_error e;
    cr_assert(mkdtemp(directory));
    snprintf(path, sizeof path, "%s/profd.db", directory);
    for (seed = 1; seed <= 6; seed++) {
        srand(seed);
        cr_assert_eq(store_memory_open(&writers[0], &e), PROFD_OK);
        readers[0] = writers[0];
        cr_assert_eq(store_sqlite_open_writer(path, &writers[1], &e), PROFD_OK, "%s", e.sentence);
        cr_assert_eq(store_sqlite_open_reader(path, &readers[1], &e), PROFD_OK, "%s", e.sentence);
        for (int step = 0; step < 200; step++) {
            if (pick(3)) {
                put_random_uploads();
            } else {
                put_random_object();
            }
            if (step % 10 == 9) {
                compare_answers();
            }
            if (step == 100) {
                store_close(readers[1]);
                store_close(writers[1]);
                cr_assert_eq(store_sqlite_open_writer(path, &writers[1], &e), PROFD_OK, "%s", e.sentence);
                cr_assert_eq(store_sqlite_open_reader(path, &readers[1], &e), PROFD_OK, "%s", e.sentence);
            }
        }
        store_close(writers[0]);
        store_close(readers[1]);
        store_close(writers[1]);
        unlink(path);
        snprintf(side, sizeof side, "%s-wal", path);
        unlink(side);
        snprintf(side, sizeof side, "%s-shm", path);
        unlink(side);
    }
    rmdir(directory);
}
