/* A database of version 1 becomes one of an artificial version 2, whole or not at all. */
#include <criterion/criterion.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "store/store_internal.h"
#include "store/store.h"
#include "tests/unit/store/faults.h"

static char directory[64], path[96];
static struct profd_error e;
static const char *steps[2];
static const struct sqlite_schema next = {.steps = steps, .version = 2};

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
    steps[0] = sqlite_schema_newest.steps[0];
    steps[1] =
        "CREATE TABLE extra (a INTEGER NOT NULL) STRICT; ALTER TABLE host ADD COLUMN more INTEGER NOT NULL DEFAULT "
        "7; UPDATE host SET more=id+1; INSERT INTO extra SELECT id FROM host";
}

static void leave(void)
{
    wipe();
    rmdir(directory);
}

TestSuite(store_schema, .init = enter, .fini = leave);

/* A database of this profd, with three hosts. */
static void make(const char *name)
{
    struct store *s;
    sqlite3 *db;
    cr_assert_eq(store_sqlite_open_writer(name, &s, &e), PROFD_OK, "%s", e.sentence);
    store_close(s);
    cr_assert_eq(sqlite3_open(name, &db), SQLITE_OK);
    cr_assert_eq(sqlite3_exec(db, "INSERT INTO host (machine) VALUES ('a'), ('b'), ('c')", NULL, NULL, NULL),
                 SQLITE_OK);
    sqlite3_close(db);
}

static int64_t ask(const char *sql)
{
    sqlite3 *db;
    int64_t value = 0;
    cr_assert_eq(sqlite3_open(path, &db), SQLITE_OK);
    cr_assert_eq(sqlite_direct_integer(db, sql, &value, &e), PROFD_OK, "%s", e.sentence);
    sqlite3_close(db);
    return value;
}

static enum profd_status extend(void)
{
    sqlite3 *db;
    cr_assert_eq(sqlite3_open(path, &db), SQLITE_OK);
    const enum profd_status status = sqlite_schema_extend(db, &next, 1, &e);
    sqlite3_close(db);
    return status;
}

static enum profd_status judge(int64_t version)
{
    sqlite3 *db;
    cr_assert_eq(sqlite3_open(path, &db), SQLITE_OK);
    const enum profd_status status = sqlite_structure_judge(db, &next, path, version, &e);
    sqlite3_close(db);
    return status;
}

/* Version 1 as it was, which this profd opens, or version 2 with all that the step does. */
static void check(int n)
{
    struct store *s = NULL;
    const int64_t version = ask("PRAGMA user_version");
    cr_assert_eq(judge(version), PROFD_OK, "fault %d, version %lld: %s", n, (long long)version, e.sentence);
    cr_assert_eq(ask("SELECT count(*) FROM host"), 3);
    cr_assert_eq(ask("SELECT count(*) FROM sqlite_schema WHERE name='extra'"), version - 1, "fault %d", n);
    if (version == 2) {
        cr_assert_eq(ask("SELECT sum(more) FROM host"), 2 + 3 + 4, "fault %d", n);
        cr_assert_eq(ask("SELECT sum(a) FROM extra"), 1 + 2 + 3, "fault %d", n);
    } else {
        cr_assert_eq(version, 1);
        cr_assert_eq(store_sqlite_open_writer(path, &s, &e), PROFD_OK, "fault %d: %s", n, e.sentence);
        store_close(s);
    }
}

Test(store_schema, a_step_brings_the_next_version)
{
    struct store *s = NULL;
    make(path);
    const int64_t salt = ask("SELECT salt FROM state");
    cr_assert_eq(judge(2), PROFD_DAMAGED);
    cr_assert_eq(extend(), PROFD_OK, "%s", e.sentence);
    cr_assert_eq(ask("PRAGMA user_version"), 2);
    cr_assert_eq(ask("SELECT salt FROM state"), salt, "ETags stay valid");
    check(-1);
    cr_assert_eq(store_sqlite_open_writer(path, &s, &e), PROFD_NEWER);
    cr_assert(strstr(e.sentence, "version 2, from a newer profd"), "%s", e.sentence);
    cr_assert_eq(store_sqlite_open_reader(path, &s, &e), PROFD_NEWER);
}

Test(store_schema, a_new_database_takes_all_steps)
{
    sqlite3 *db;
    make(path);
    cr_assert_eq(extend(), PROFD_OK);
    cr_assert_eq(sqlite3_open(":memory:", &db), SQLITE_OK);
    cr_assert_eq(sqlite_schema_extend(db, &next, 0, &e), PROFD_OK, "%s", e.sentence);
    cr_assert_eq(sqlite_structure_judge(db, &next, "new", 2, &e), PROFD_OK, "%s", e.sentence);
    int64_t salt = 0;
    cr_assert_eq(sqlite_direct_integer(db, "SELECT salt FROM state", &salt, &e), PROFD_OK);
    cr_assert_neq(salt, 0);
    cr_assert_eq(sqlite3_exec(db, "CREATE TABLE zoo (animal)", NULL, NULL, NULL), SQLITE_OK);
    cr_assert_eq(sqlite_structure_judge(db, &next, "new", 2, &e), PROFD_OK, "tables of others do not matter");
    cr_assert_eq(sqlite3_exec(db, "DROP INDEX upload_by_series", NULL, NULL, NULL), SQLITE_OK);
    cr_assert_eq(sqlite_structure_judge(db, &next, "new", 2, &e), PROFD_DAMAGED);
    sqlite3_close(db);
}

Test(store_schema, a_step_that_fails_changes_nothing)
{
    make(path);
    steps[1] = "CREATE TABLE extra (a INTEGER NOT NULL) STRICT; UPDATE host SET machine='d'; CREATE TABLE host (b)";
    cr_assert_neq(extend(), PROFD_OK);
    cr_assert(strstr(e.sentence, "from schema version 1 to 2") && strstr(e.sentence, "host"), "%s", e.sentence);
    check(-1);
    cr_assert_eq(ask("SELECT count(*) FROM host WHERE machine='d'"), 0);
}

/* The n-th write, sync or truncation fails. */
Test(store_schema, every_failure_leaves_one_version_or_the_other)
{
    char kept[128];
    int found[3] = {0, 0, 0};
    snprintf(kept, sizeof kept, "%s/kept", directory);
    make(kept);
    faults_install();
    for (int kind = 0; kind < 2; kind++) {
        bool hit = true;
        faults_kind = kind == 0 ? SQLITE_IOERR_FSYNC : SQLITE_FULL;
        for (int n = 0; hit; n += faults_step()) {
            wipe();
            faults_copy_file(kept, path);
            faults_countdown = n;
            faults_happened = 0;
            const enum profd_status status = extend();
            hit = faults_happened > 0;
            cr_assert(hit || status == PROFD_OK);
            faults_countdown = -1;
            check(n);
            found[ask("PRAGMA user_version")]++;
        }
    }
    cr_assert(found[1] > 3 && found[2] > 1, "%d %d", found[1], found[2]);
    unlink(kept);
}
