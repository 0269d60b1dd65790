/* A database of version 2 becomes one of version 3 where it is, in one transaction. */
#include <criterion/criterion.h>
#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "proto/counts.h"
#include "store/store.h"
#include "store/store_verify.h"
#include "tests/unit/store_faults.h"

extern const unsigned char embed_schema_001_initial_sql[], embed_schema_002_rollup_sql[];

static char directory[64], path[96];
static struct profd_error e;

static void wipe(void)
{
    static const char *const suffixes[] = {"", "-wal", "-shm", ".new", ".new-journal", "-journal"};
    char name[128];
    for (size_t i = 0; i < sizeof suffixes / sizeof suffixes[0]; i++) {
        snprintf(name, sizeof name, "%s%s", path, suffixes[i]);
        unlink(name);
    }
}

static void enter(void)
{
    strcpy(directory, "/tmp/profd-extend-XXXXXX");
    cr_assert(mkdtemp(directory));
    snprintf(path, sizeof path, "%s/profd.db", directory);
}

static void leave(void)
{
    wipe();
    rmdir(directory);
}

TestSuite(store_extend, .init = enter, .fini = leave, .timeout = 1800);

static void run(sqlite3 *db, const char *sql)
{
    char *why = NULL;
    cr_assert_eq(sqlite3_exec(db, sql, NULL, NULL, &why), SQLITE_OK, "%s: %s", sql, why);
}

static int64_t ask(const char *sql)
{
    sqlite3 *db;
    sqlite3_stmt *q;
    cr_assert_eq(sqlite3_open(path, &db), SQLITE_OK);
    cr_assert_eq(sqlite3_prepare_v2(db, sql, -1, &q, NULL), SQLITE_OK, "%s", sqlite3_errmsg(db));
    cr_assert_eq(sqlite3_step(q), SQLITE_ROW);
    int64_t value = sqlite3_column_int64(q, 0);
    sqlite3_finalize(q);
    sqlite3_close(db);
    return value;
}

/* Upload i has i calls. */
static enum profd_status put(struct store *s, uint32_t i, enum store_outcome *outcome)
{
    struct counts c;
    struct store_build b = {.id = {.text = "abcd"}, .name = "n", .calls = i};
    struct store_upload u = {
        .sequence = i, .start = i, .end = i, .build_count = 1, .builds = &b, .calls = i, .sender = {1}};
    uint8_t *bytes;
    cr_assert_eq(counts_init(&c, 0, 0, 1, &e), PROFD_OK);
    c.from_build[0] = COUNTS_NOWHERE;
    c.calls[0] = i;
    cr_assert_eq(counts_encode(&c, &bytes, &u.counts_size, &e), PROFD_OK);
    counts_done(&c);
    u.counts = bytes;
    enum profd_status status = store_put_uploads(s, &u, 1, outcome, &e);
    free(bytes);
    return status;
}

/* What profd of version 2 left: these rows, and its tables only. */
static void make_version_2(uint32_t uploads)
{
    struct store *s;
    enum store_outcome outcome;
    sqlite3 *db;
    char steps[65536];
    cr_assert_eq(store_sqlite_open_writer(path, &s, &e), PROFD_OK, "%s", e.sentence);
    for (uint32_t i = 1; i <= uploads; i++)
        cr_assert_eq(put(s, i, &outcome), PROFD_OK);
    store_close(s);
    cr_assert_eq(sqlite3_open(path, &db), SQLITE_OK);
    run(db, "DROP TABLE instance; DROP TABLE snapshot; PRAGMA user_version=2");
    sqlite3_close(db);
    int64_t has = ask("SELECT count(*) FROM sqlite_schema WHERE sql IS NOT NULL");
    cr_assert_eq(sqlite3_open(":memory:", &db), SQLITE_OK);
    snprintf(steps, sizeof steps, "%s%s", (const char *)embed_schema_001_initial_sql,
             (const char *)embed_schema_002_rollup_sql);
    run(db, steps);
    sqlite3_stmt *q;
    cr_assert_eq(sqlite3_prepare_v2(db, "SELECT count(*) FROM sqlite_schema WHERE sql IS NOT NULL", -1, &q, NULL),
                 SQLITE_OK);
    cr_assert_eq(sqlite3_step(q), SQLITE_ROW);
    cr_assert_eq(sqlite3_column_int64(q, 0), has, "the tables of version 2");
    sqlite3_finalize(q);
    sqlite3_close(db);
}

static void say_mismatch(void *context, const char *sentence)
{
    (void)context;
    cr_assert_fail("%s", sentence);
}

static void check(struct store *s, uint32_t uploads)
{
    struct store_totals t;
    enum store_outcome outcome;
    uint64_t checked;
    for (struct store_cursor c = {.done = false}; !c.done;)
        cr_assert_eq(store_verify(s, &c, say_mismatch, NULL, &checked, &e), PROFD_OK, "%s", e.sentence);
    cr_assert_eq(store_get_totals(s, &t, &e), PROFD_OK);
    cr_assert_eq(t.uploads, uploads);
    cr_assert_eq(t.calls, (uint64_t)uploads * (uploads + 1) / 2);
    cr_assert_eq(put(s, uploads, &outcome), PROFD_OK);
    cr_assert_eq(outcome, STORE_DUPLICATE);
    struct store_harvest h = {
        .upload = {.received = 1}, .instance = {9}, .snapshot = (const uint8_t *)"s", .snapshot_size = 1};
    enum store_harvest_outcome harvested;
    cr_assert_eq(store_put_harvests(s, &h, 1, &harvested, &e), PROFD_OK, "%s", e.sentence);
}

Test(store_extend, version_2_is_extended_where_it_is)
{
    struct stat before, after;
    struct store *s;
    make_version_2(300);
    cr_assert_eq(ask("PRAGMA user_version"), 2);
    cr_assert_eq(stat(path, &before), 0);
    cr_assert_eq(store_sqlite_open_reader(path, &s, &e), PROFD_CONFIG, "a reader changes nothing");
    cr_assert(strstr(e.sentence, "version 2"), "%s", e.sentence);
    cr_assert_eq(store_sqlite_open_writer(path, &s, &e), PROFD_OK, "%s", e.sentence);
    cr_assert_eq(stat(path, &after), 0);
    cr_assert_eq(before.st_ino, after.st_ino, "it was not copied");
    check(s, 300);
    store_close(s);
    cr_assert_eq(ask("PRAGMA user_version"), 3);
    cr_assert_eq(ask("SELECT count(*) FROM instance"), 1);
    cr_assert_eq(store_sqlite_open_writer(path, &s, &e), PROFD_OK, "%s", e.sentence);
    store_close(s);
    cr_assert_eq(ask("SELECT count(*) FROM instance"), 1, "once is enough");
}

static void copy_file(const char *from, const char *to)
{
    char command[256];
    snprintf(command, sizeof command, "cp '%s' '%s'", from, to);
    cr_assert_eq(system(command), 0);
}

/* The n-th write, sync or truncation fails: the next start finds version 2 or 3, and everything in it. */
Test(store_extend, every_failure_leaves_one_version_or_the_other)
{
    char kept[128];
    struct store *s = NULL;
    snprintf(kept, sizeof kept, "%s/kept", directory);
    make_version_2(40);
    copy_file(path, kept);
    faults_install();
    for (int kind = 0; kind < 2; kind++) {
        bool hit = true;
        int hits = 0, failed = 0;
        faults_kind = kind == 0 ? SQLITE_IOERR_FSYNC : SQLITE_FULL;
        for (int n = 0; hit; n++) {
            wipe();
            copy_file(kept, path);
            faults_countdown = n;
            faults_happened = 0;
            enum profd_status status = store_sqlite_open_writer(path, &s, &e);
            hit = faults_happened > 0;
            hits += hit;
            cr_assert(hit || status == PROFD_OK);
            faults_countdown = -1;
            if (status == PROFD_OK)
                store_close(s);
            else
                failed++;
            int64_t version = ask("PRAGMA user_version");
            cr_assert(version == 2 || version == 3);
            cr_assert_eq(ask("SELECT count(*) FROM sqlite_schema WHERE name='instance'"), version == 3);
            cr_assert_eq(store_sqlite_open_writer(path, &s, &e), PROFD_OK, "after fault %d: %s", n, e.sentence);
            check(s, 40);
            store_close(s);
        }
        cr_assert_gt(hits, 5);
        cr_assert_gt(failed, 2);
    }
    unlink(kept);
}
