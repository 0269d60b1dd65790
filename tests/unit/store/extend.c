/* A database of version 2 or 3 becomes one of the newest version where it is, in one transaction; older rows are
 * brought up later. */
#include <criterion/criterion.h>
#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "proto/counts.h"
#include "store/store.h"
#include "tests/unit/store/faults.h"

extern const unsigned char embed_schema_001_initial_sql[], embed_schema_002_rollup_sql[],
    embed_schema_003_instance_sql[], embed_schema_004_truth_sql[], embed_schema_005_segment_sql[],
    embed_schema_006_centre_sql[], embed_schema_007_attest_sql[];

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
    faults_directory(directory);
    snprintf(path, sizeof path, "%s/profd.db", directory);
}

static void leave(void)
{
    wipe();
    rmdir(directory);
}

TestSuite(store_extend, .init = enter, .fini = leave);

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

/* Copies what the tables of an older schema hold. */
static void copy_tables(sqlite3 *db)
{
    sqlite3_stmt *q;
    const char *list =
        "SELECT m.name, group_concat('\"' || c.name || '\"') FROM main.sqlite_schema m, pragma_table_info(m.name) c "
        "WHERE m.type='table' AND m.name NOT LIKE 'sqlite_%' GROUP BY m.name";
    cr_assert_eq(sqlite3_prepare_v2(db, list, -1, &q, NULL), SQLITE_OK, "%s", sqlite3_errmsg(db));
    while (sqlite3_step(q) == SQLITE_ROW) {
        char *sql = sqlite3_mprintf("DELETE FROM main.%s; INSERT INTO main.%s (%s) SELECT %s FROM now.%s",
                                    sqlite3_column_text(q, 0), sqlite3_column_text(q, 0), sqlite3_column_text(q, 1),
                                    sqlite3_column_text(q, 1), sqlite3_column_text(q, 0));
        run(db, sql);
        sqlite3_free(sql);
    }
    sqlite3_finalize(q);
}

/* What is at path becomes what profd of an older version would have left: the same rows in its tables. */
static void make_older(int version)
{
    static const unsigned char *const steps[] = {embed_schema_001_initial_sql,  embed_schema_002_rollup_sql,
                                                 embed_schema_003_instance_sql, embed_schema_004_truth_sql,
                                                 embed_schema_005_segment_sql,  embed_schema_006_centre_sql,
                                                 embed_schema_007_attest_sql};
    char newest[128], sql[256];
    sqlite3 *db;
    snprintf(newest, sizeof newest, "%s/newest", directory);
    cr_assert_eq(rename(path, newest), 0);
    cr_assert_eq(sqlite3_open(path, &db), SQLITE_OK);
    run(db, "PRAGMA auto_vacuum=INCREMENTAL; BEGIN");
    for (int i = 0; i < version; i++) {
        run(db, (const char *)steps[i]);
    }
    snprintf(sql, sizeof sql, "COMMIT; ATTACH '%s' AS now; BEGIN", newest);
    run(db, sql);
    copy_tables(db);
    snprintf(sql, sizeof sql, "PRAGMA application_id=0x70726664; PRAGMA user_version=%d; COMMIT", version);
    run(db, sql);
    sqlite3_close(db);
    unlink(newest);
}

static void make_version(int version, uint32_t uploads)
{
    struct store *s;
    enum store_outcome outcome;
    cr_assert_eq(store_sqlite_open_writer(path, &s, &e), PROFD_OK, "%s", e.sentence);
    for (uint32_t i = 1; i <= uploads; i++) {
        cr_assert_eq(put(s, i, &outcome), PROFD_OK);
    }
    store_close(s);
    make_older(version);
}

static void say_mismatch(void *context, const char *sentence)
{
    (void)context;
    cr_assert_fail("%s", sentence);
}

static void verify(struct store *s)
{
    uint64_t checked;
    for (struct store_cursor c = {.done = false}; !c.done;) {
        cr_assert_eq(store_verify(s, &c, say_mismatch, NULL, &checked, &e), PROFD_OK, "%s", e.sentence);
    }
}

static void check(struct store *s, uint32_t uploads)
{
    struct store_totals t;
    enum store_outcome outcome;
    verify(s);
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

static void extend(int version)
{
    struct stat before, after;
    struct store *s;
    char said[16];
    make_version(version, 300);
    cr_assert_eq(ask("PRAGMA user_version"), version);
    cr_assert_eq(stat(path, &before), 0);
    cr_assert_eq(store_sqlite_open_reader(path, &s, &e), PROFD_CONFIG, "a reader changes nothing");
    snprintf(said, sizeof said, "version %d", version);
    cr_assert(strstr(e.sentence, said), "%s", e.sentence);
    cr_assert_eq(store_sqlite_open_writer(path, &s, &e), PROFD_OK, "%s", e.sentence);
    cr_assert_eq(stat(path, &after), 0);
    cr_assert_eq(before.st_ino, after.st_ino, "it was not copied");
    check(s, 300);
    store_close(s);
    cr_assert_eq(ask("PRAGMA user_version"), 13);
    cr_assert_eq(ask("SELECT count(*) FROM instance"), 1);
    cr_assert_eq(store_sqlite_open_writer(path, &s, &e), PROFD_OK, "%s", e.sentence);
    store_close(s);
    cr_assert_eq(ask("SELECT count(*) FROM instance"), 1, "once is enough");
}

Test(store_extend, version_2_is_extended_where_it_is)
{
    extend(2);
}

Test(store_extend, version_3_is_extended_where_it_is)
{
    extend(3);
}

Test(store_extend, version_7_is_extended_where_it_is)
{
    extend(7);
    cr_assert_eq(ask("SELECT id FROM tenant WHERE name='default'"), 1);
}

/* Up to version 3 the salt of ETags had 18 bits: it could be guessed, and with it how much other users had uploaded. */
Test(store_extend, a_salt_that_can_be_guessed_is_replaced)
{
    struct store *s;
    sqlite3 *db;
    int wide = 0;
    int64_t drawn[4];
    for (int i = 0; i < 4; i++) {
        make_version(2, 1);
        cr_assert_eq(sqlite3_open(path, &db), SQLITE_OK);
        run(db, "UPDATE state SET salt=5");
        sqlite3_close(db);
        cr_assert_eq(store_sqlite_open_writer(path, &s, &e), PROFD_OK, "%s", e.sentence);
        store_close(s);
        drawn[i] = ask("SELECT salt FROM state");
        wide += drawn[i] < 0 || drawn[i] >= INT64_C(1) << 32;
        for (int j = 0; j < i; j++) {
            cr_assert_neq(drawn[i], drawn[j]);
        }
        cr_assert_eq(store_sqlite_open_writer(path, &s, &e), PROFD_OK, "%s", e.sentence);
        store_close(s);
        cr_assert_eq(ask("SELECT salt FROM state"), drawn[i], "drawn once");
        wipe();
    }
    cr_assert_geq(wide, 3, "64 bits: one draw in 2^31 is smaller than this");
}

/* The n-th write, sync or truncation fails: the next start finds version 2 or the newest, and everything in it. */
Test(store_extend, every_failure_leaves_one_version_or_the_other)
{
    char kept[128];
    struct store *s = NULL;
    snprintf(kept, sizeof kept, "%s/kept", directory);
    make_version(2, 40);
    faults_copy_file(path, kept);
    faults_install();
    for (int kind = 0; kind < 2; kind++) {
        bool hit = true;
        int hits = 0, failed = 0;
        faults_kind = kind == 0 ? SQLITE_IOERR_FSYNC : SQLITE_FULL;
        for (int n = 0; hit;
             n += FAULTS_STEP * (n < 60 ? 1 + 2 * kind : 7)) { /* the first steps wholly, then samples */
            wipe();
            faults_copy_file(kept, path);
            faults_countdown = n;
            faults_happened = 0;
            enum profd_status status = store_sqlite_open_writer(path, &s, &e);
            hit = faults_happened > 0;
            hits += hit;
            cr_assert(hit || status == PROFD_OK);
            faults_countdown = -1;
            if (status == PROFD_OK) {
                store_close(s);
            } else {
                failed++;
            }
            int64_t version = ask("PRAGMA user_version");
            cr_assert(version == 2 || version == 13);
            cr_assert_eq(ask("SELECT count(*) FROM sqlite_schema WHERE name='instance'"), version == 13);
            cr_assert_eq(store_sqlite_open_writer(path, &s, &e), PROFD_OK, "after fault %d: %s", n, e.sentence);
            check(s, 40);
            store_close(s);
        }
        cr_assert_gt(hits, 5);
        cr_assert_gt(failed, 2);
    }
    unlink(kept);
}

/* A harvest of live process i, whose n-th it is, counts i calls. */
static void harvest(struct store *s, uint32_t i, uint64_t n, int64_t end)
{
    struct counts c;
    struct store_build b = {.id = {.text = "abcd"}, .name = "n", .calls = i};
    struct store_harvest h = {.upload = {.received = end,
                                         .start = end,
                                         .end = end,
                                         .build_count = 1,
                                         .builds = &b,
                                         .calls = i,
                                         .processes_started = n == 0,
                                         .group = i % 16},
                              .base = n,
                              .snapshot = (const uint8_t *)"s",
                              .snapshot_size = 1};
    enum store_harvest_outcome outcome;
    uint8_t *bytes;
    memcpy(h.instance, &i, sizeof i);
    cr_assert_eq(counts_init(&c, 0, 0, 1, &e), PROFD_OK);
    c.from_build[0] = COUNTS_NOWHERE;
    c.calls[0] = i;
    cr_assert_eq(counts_encode(&c, &bytes, &h.upload.counts_size, &e), PROFD_OK);
    counts_done(&c);
    h.upload.counts = bytes;
    cr_assert_eq(store_put_harvests(s, &h, 1, &outcome, &e), PROFD_OK, "%s", e.sentence);
    cr_assert_eq(outcome, STORE_HARVESTED);
    free(bytes);
}

static enum profd_status add_calls(void *context, const struct store_row *row, struct profd_error *why)
{
    struct counts c;
    uint64_t ticks, calls;
    cr_assert_eq(counts_decode(row->counts, row->counts_size, 1, &c, why), PROFD_OK);
    counts_totals(&c, &ticks, &calls);
    *(uint64_t *)context += calls;
    counts_done(&c);
    return PROFD_OK;
}

static uint64_t calls_between(struct store *s, int64_t since, int64_t until, int64_t used_since, int64_t used_until)
{
    struct store_scope all = {.all = true};
    struct store_filter filter = {.build_id = "abcd", .since = since, .until = until};
    int64_t edges[2];
    uint64_t calls = 0;
    cr_assert_eq(store_get_range(s, &all, &filter, &edges[0], &edges[1], &e), PROFD_OK, "%s", e.sentence);
    cr_assert(edges[0] == used_since && edges[1] == used_until, "%lld %lld", (long long)edges[0], (long long)edges[1]);
    cr_assert_eq(store_each_upload(s, &all, &filter, add_calls, &calls, &e), PROFD_OK, "%s", e.sentence);
    return calls;
}

struct seen_groups {
    uint64_t rows, processes;
    struct random_groups groups;
};

static enum profd_status add_groups(void *context, const struct store_row *row, struct profd_error *why)
{
    (void)why;
    struct seen_groups *seen = context;
    seen->rows++;
    seen->processes += row->processes_started;
    random_groups_add(&seen->groups, &row->groups);
    return PROFD_OK;
}

/* Sums of before say that they know no groups; those that they become part of say of how many processes. */
Test(store_extend, processes_by_group_are_known_from_now_on)
{
    const struct store_policy all = {.raw_age = 0, .raw_bytes = 0};
    const int64_t minute = INT64_C(60000000000), noon = 20000 * 1440 * minute + 720 * minute;
    struct store_scope scope = {.all = true};
    struct store_filter filter = {.build_id = "abcd"};
    struct store *s;
    cr_assert_eq(store_sqlite_open_writer(path, &s, &e), PROFD_OK, "%s", e.sentence);
    for (uint32_t i = 1; i <= 40; i++) {
        harvest(s, i, 0, noon);
    }
    for (struct store_progress p = {.more = true}; p.more;) {
        cr_assert_eq(store_compact(s, &all, noon + 4000 * minute, &p, &e), PROFD_OK, "%s", e.sentence);
    }
    for (uint32_t i = 41; i <= 43; i++) {
        harvest(s, i, 0, noon + minute);
    }
    store_close(s);
    make_older(3);
    cr_assert_eq(store_sqlite_open_writer(path, &s, &e), PROFD_OK, "%s", e.sentence);
    for (int round = 0; round < 3; round++) {
        struct seen_groups seen = {.rows = 0};
        cr_assert_eq(store_each_upload(s, &scope, &filter, add_groups, &seen, &e), PROFD_OK, "%s", e.sentence);
        cr_assert_eq(seen.rows, round == 0 ? 4 : 1);
        cr_assert_eq(seen.processes, 43);
        cr_assert_eq(seen.groups.unknown, 40);
        cr_assert(seen.groups.of[9] == 1 && seen.groups.of[10] == 1 && seen.groups.of[11] == 1,
                  "41, 42 and 43 modulo 16");
        verify(s);
        for (struct store_progress p = {.more = true}; p.more;) {
            cr_assert_eq(store_compact(s, &all, noon + 4000 * minute, &p, &e), PROFD_OK, "%s", e.sentence);
        }
        store_close(s);
        cr_assert_eq(store_sqlite_open_writer(path, &s, &e), PROFD_OK, "%s", e.sentence);
    }
    store_close(s);
}

/* More live processes than one slice can do; between slices uploads come, and the daemon is closed now and then. */
Test(store_extend, older_rows_are_brought_up_slice_by_slice)
{
    enum { MANY = 1500 };
    const int64_t minute = INT64_C(60000000000), noon = 20000 * 1440 * minute + 720 * minute;
    struct store *s;
    enum store_outcome outcome;
    struct store_totals t;
    uint32_t slices = 0;
    uint64_t calls = 0, rows = 0;
    cr_assert_eq(store_sqlite_open_writer(path, &s, &e), PROFD_OK, "%s", e.sentence);
    for (uint32_t i = 1; i <= MANY; i++) {
        harvest(s, i, 0, noon + 10 * minute);
        calls += i;
    }
    store_close(s);
    make_older(3);
    cr_assert_eq(store_sqlite_open_writer(path, &s, &e), PROFD_OK, "%s", e.sentence);
    cr_assert_eq(store_get_totals(s, &t, &e), PROFD_OK);
    cr_assert(t.migration_steps > 0 && t.migration_done == 0 && t.migration_total >= MANY);
    for (struct store_progress p = {.more = true}; p.more; slices++) {
        cr_assert_eq(store_migrate(s, &p, &e), PROFD_OK, "%s", e.sentence);
        rows += p.rows;
        cr_assert_eq(put(s, 1 + slices, &outcome), PROFD_OK);
        calls += 1 + slices;
        if (slices == 1) { /* counted while it waits, or when its turn is over: the old upload grows on */
            harvest(s, 1, 1, noon + 11 * minute);
            harvest(s, MANY, 1, noon + 11 * minute);
            calls += 1 + MANY;
        }
        verify(s);
        cr_assert_eq(calls_between(s, 0, 0, 0, 0), calls);
        store_close(s);
        cr_assert_eq(store_sqlite_open_writer(path, &s, &e), PROFD_OK, "%s", e.sentence);
    }
    cr_assert_gt(slices, 3);
    cr_assert_geq(rows, MANY);
    cr_assert_eq(store_get_totals(s, &t, &e), PROFD_OK);
    cr_assert(t.migration_steps == 0 && t.migration_done == 0 && t.migration_total == 0);
    cr_assert_eq(t.uploads, MANY + slices);
    uint64_t live = calls_between(s, noon + 10 * minute + 5, noon + 10 * minute + 6, noon, noon + 60 * minute);
    cr_assert_eq(live, MANY * (MANY + 1) / 2 + 1 + MANY, "an upload of before is of its whole hour, and says so");
    store_close(s);
    cr_assert_eq(ask("SELECT count(*) FROM slice WHERE width=60"), MANY);
    cr_assert_eq(ask("SELECT count(*) FROM migration"), 0);
}
