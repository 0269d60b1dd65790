/* A database of version 1 becomes one of version 2, whole or not at all. PROFD_V1_UPLOADS makes it larger. */
#include <criterion/criterion.h>
#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "store/store.h"
#include "tests/unit/store/faults.h"
#include "tests/unit/store/v1.h"

static char directory[64], path[96];
static struct profd_error e;

static void wipe(void)
{
    static const char *const suffixes[] = {"", "-wal", "-shm", ".new", ".new-journal", "-journal"};
    char name[128];
    for (size_t i = 0; i < 6; i++) {
        snprintf(name, sizeof name, "%s%s", path, suffixes[i]);
        unlink(name);
    }
}

static void enter(void)
{
    faults_directory(directory);
    snprintf(path, sizeof path, "%s/profd.db", directory);
}

static void leave(void)
{
    wipe();
    rmdir(directory);
}

TestSuite(store_upgrade, .init = enter, .fini = leave);

static void say_mismatch(void *context, const char *sentence)
{
    (void)context;
    cr_assert_fail("%s", sentence);
}

static enum profd_status count_row(void *context, const struct store_row *row, struct profd_error *why)
{
    (void)why;
    *(uint64_t *)context += row->uploads;
    return PROFD_OK;
}

static void check(struct store *s, uint32_t n, uint32_t arcs)
{
    struct store_totals t;
    uint64_t checked = 0, uploads = 0, calls = 0;
    struct store_scope all = {.all = true};
    enum store_outcome outcome;
    struct store_build b = {.id = {.text = "aaaa01"}, .name = "n"};
    for (struct store_cursor c = {.done = false}; !c.done;) {
        cr_assert_eq(store_verify(s, &c, say_mismatch, NULL, &checked, &e), PROFD_OK, "%s", e.sentence);
    }
    cr_assert_eq(store_get_totals(s, &t, &e), PROFD_OK);
    for (uint32_t i = 1; i <= n; i++) {
        calls += v1_calls(i, arcs);
    }
    cr_assert_eq(t.uploads, n);
    cr_assert_eq(t.raw_uploads, n);
    cr_assert_eq(t.calls, calls);
    cr_assert_eq(
        store_each_upload(s, &all,
                          &(struct store_filter){.build_id = "aaaa01", .since = V1_BEGIN, .until = V1_BEGIN + V1_HOUR},
                          count_row, &uploads, &e),
        PROFD_OK, "%s", e.sentence);
    cr_assert_eq(uploads, n < 60 ? n - n / 3 : 39, "two of three of the first 59: %llu", (unsigned long long)uploads);
    struct store_upload u = {.host = "0123456789abcdef0123456789abcdef",
                             .uid = 7,
                             .sender = {1},
                             .sequence = n,
                             .build_count = 1,
                             .builds = &b,
                             .counts = (const uint8_t *)"",
                             .start = V1_BEGIN,
                             .end = V1_BEGIN};
    cr_assert_eq(store_put_uploads(s, &u, 1, &outcome, &e), PROFD_OK, "%s", e.sentence);
    cr_assert_eq(outcome, STORE_DUPLICATE, "ids are remembered");
}

static int64_t pragma(const char *sql)
{
    sqlite3 *db;
    sqlite3_stmt *q;
    cr_assert_eq(sqlite3_open(path, &db), SQLITE_OK);
    cr_assert_eq(sqlite3_prepare_v2(db, sql, -1, &q, NULL), SQLITE_OK);
    cr_assert_eq(sqlite3_step(q), SQLITE_ROW);
    int64_t value = sqlite3_column_int64(q, 0);
    sqlite3_finalize(q);
    sqlite3_close(db);
    return value;
}

Test(store_upgrade, everything_of_version_1_is_kept)
{
    struct store *s;
    struct stat before, after;
    struct timespec begin, end;
    const char *wanted = getenv("PROFD_V1_UPLOADS");
    uint32_t n = wanted ? (uint32_t)atoi(wanted) : 600, arcs = 1149;
    v1_make(path, n, arcs);
    cr_assert_eq(pragma("PRAGMA auto_vacuum"), 0);
    stat(path, &before);
    clock_gettime(CLOCK_MONOTONIC, &begin);
    cr_assert_eq(store_sqlite_open_writer(path, &s, &e), PROFD_OK, "%s", e.sentence);
    clock_gettime(CLOCK_MONOTONIC, &end);
    stat(path, &after);
    check(s, n, arcs);
    struct store_policy policy = {.raw_age = V1_HOUR};
    uint64_t rolled = 0;
    for (struct store_progress p = {.more = true}; p.more; rolled += p.uploads) {
        cr_assert_eq(store_compact(s, &policy, V1_BEGIN + 90000 * V1_HOUR, &p, &e), PROFD_OK, "%s", e.sentence);
    }
    cr_assert_eq(rolled, n);
    for (struct store_progress p = {.more = true}; p.more;) {
        cr_assert_eq(store_shrink(s, 1 << 20, &p, &e), PROFD_OK, "%s", e.sentence);
    }
    store_close(s);
    cr_assert_eq(pragma("PRAGMA user_version"), 13);
    cr_assert_eq(pragma("PRAGMA auto_vacuum"), 2);
    cr_assert_eq(pragma("PRAGMA freelist_count"), 0, "free pages were given back");
    struct stat shrunk;
    stat(path, &shrunk);
    cr_log_info("%u uploads, %lld bytes: upgraded in %.2f s; %lld bytes, after compaction %lld", n,
                (long long)before.st_size,
                (double)(end.tv_sec - begin.tv_sec) + (double)(end.tv_nsec - begin.tv_nsec) / 1e9,
                (long long)after.st_size, (long long)shrunk.st_size);
    cr_assert_lt(shrunk.st_size, after.st_size / 2);
}

/* The n-th write, sync or truncation of the upgrade fails: the next start finds version 1 or 2, and everything in it.
 */
Test(store_upgrade, every_failure_leaves_one_version_or_the_other)
{
    char kept[128];
    struct store *s = NULL;
    snprintf(kept, sizeof kept, "%s/kept", directory);
    v1_make(kept, 40, 50);
    faults_install();
    for (int kind = 0; kind < 2; kind++) {
        bool hit = true;
        faults_kind = kind == 0 ? SQLITE_IOERR_FSYNC : SQLITE_FULL;
        for (int n = 0; hit; n += FAULTS_STEP * (n < 30 ? 1 + 2 * kind : 7)) {
            wipe();
            faults_copy_file(kept, path);
            faults_countdown = n;
            faults_happened = 0;
            enum profd_status status = store_sqlite_open_writer(path, &s, &e);
            hit = faults_happened > 0;
            cr_assert(hit || status == PROFD_OK);
            faults_countdown = -1;
            if (status == PROFD_OK) {
                store_close(s);
            } else if (kind == 1) {
                cr_assert(status == PROFD_FULL || status == PROFD_IO, "fault %d: %d %s", n, status, e.sentence);
            }
            cr_assert_eq(store_sqlite_open_writer(path, &s, &e), PROFD_OK, "after fault %d: %s", n, e.sentence);
            check(s, 40, 50);
            store_close(s);
        }
    }
    unlink(kept);
}

/* A copy that a kill left behind is thrown away. */
Test(store_upgrade, leftover_of_a_killed_upgrade_is_no_matter)
{
    char name[128];
    struct store *s;
    v1_make(path, 40, 50);
    snprintf(name, sizeof name, "%s.new", path);
    FILE *f = fopen(name, "w");
    cr_assert(f && fputs("half a database", f) >= 0 && fclose(f) == 0);
    cr_assert_eq(store_sqlite_open_writer(path, &s, &e), PROFD_OK, "%s", e.sentence);
    check(s, 40, 50);
    store_close(s);
    cr_assert_neq(access(name, F_OK), 0);
}

Test(store_upgrade, reader_does_not_upgrade)
{
    struct store *s;
    v1_make(path, 3, 5);
    cr_assert_eq(store_sqlite_open_reader(path, &s, &e), PROFD_CONFIG);
    cr_assert(strstr(e.sentence, "version 1"), "%s", e.sentence);
    cr_assert_eq(pragma("PRAGMA user_version"), 1);
}
