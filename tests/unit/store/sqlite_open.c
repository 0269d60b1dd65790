/* Opening: what is there, what is not, what must not be touched. */
#include <criterion/criterion.h>
#include <fcntl.h>
#include <ftw.h>
#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "store/store_internal.h"
#include "tests/unit/store/faults.h"

static char directory[64], path[96];
static struct profd_error e;

static void enter(void)
{
    faults_directory(directory);
    snprintf(path, sizeof path, "%s/profd.db", directory);
    e.sentence[0] = 0;
}

static int remove_one(const char *name, const struct stat *st, int type, struct FTW *ftw)
{
    (void)st;
    (void)type;
    (void)ftw;
    return remove(name);
}

static void leave(void)
{
    nftw(directory, remove_one, 8, FTW_DEPTH | FTW_PHYS);
}

TestSuite(store_open, .init = enter, .fini = leave);

static const char *beside(const char *suffix)
{
    static char text[128];
    snprintf(text, sizeof text, "%s%s", path, suffix);
    return text;
}

static size_t read_file(const char *name, char **bytes)
{
    struct stat st;
    int fd = open(name, O_RDONLY);
    cr_assert_geq(fd, 0);
    cr_assert_eq(fstat(fd, &st), 0);
    *bytes = malloc((size_t)st.st_size + 1);
    cr_assert_eq(read(fd, *bytes, (size_t)st.st_size), st.st_size);
    close(fd);
    return (size_t)st.st_size;
}

static void write_file(const char *bytes, size_t n)
{
    int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC, 0600);
    cr_assert_eq(write(fd, bytes, n), (ssize_t)n);
    close(fd);
}

/* Opens for writing, expects that status and this word in the sentence, and that nothing in the directory has changed.
 */
static void expect_refusal(enum profd_status status, const char *word)
{
    struct store *s = NULL;
    char *before, *after;
    size_t n = read_file(path, &before);
    cr_assert_eq(store_sqlite_open_writer(path, &s, &e), status, "%s: %s", profd_status_name(status), e.sentence);
    cr_assert_null(s);
    cr_assert(strstr(e.sentence, word) && strstr(e.sentence, path), "%s", e.sentence);
    cr_assert_eq(read_file(path, &after), n);
    cr_assert_eq(memcmp(before, after, n), 0, "the file was changed");
    cr_assert_neq(access(beside("-journal"), F_OK), 0);
    cr_assert_neq(access(beside(".new"), F_OK), 0);
    free(before);
    free(after);
}

static void make_database(void)
{
    struct store *s;
    cr_assert_eq(store_sqlite_open_writer(path, &s, &e), PROFD_OK, "%s", e.sentence);
    struct store_upload u = {.host = "",
                             .sequence = 1,
                             .received = 10,
                             .start = 1,
                             .end = 2,
                             .build_count = 1,
                             .counts = (const uint8_t *)"c",
                             .counts_size = 1};
    struct store_build b = {.id = {.text = "abcd"}, .name = "n"};
    enum store_outcome outcome;
    u.builds = &b;
    for (u.sequence = 1; u.sequence <= 500; u.sequence++) {
        u.sender[0] = (uint8_t)u.sequence;
        cr_assert_eq(store_put_uploads(s, &u, 1, &outcome, &e), PROFD_OK, "%s", e.sentence);
    }
    store_close(s);
}

static void execute(const char *sql)
{
    sqlite3 *db;
    cr_assert_eq(sqlite3_open(path, &db), SQLITE_OK);
    cr_assert_eq(sqlite3_exec(db, sql, NULL, NULL, NULL), SQLITE_OK, "%s", sqlite3_errmsg(db));
    sqlite3_close(db);
}

static int64_t ask(const char *sql)
{
    sqlite3 *db;
    sqlite3_stmt *q;
    cr_assert_eq(sqlite3_open_v2(path, &db, SQLITE_OPEN_READONLY, NULL), SQLITE_OK);
    cr_assert_eq(sqlite3_prepare_v2(db, sql, -1, &q, NULL), SQLITE_OK, "%s", sqlite3_errmsg(db));
    cr_assert_eq(sqlite3_step(q), SQLITE_ROW);
    int64_t v = sqlite3_column_int64(q, 0);
    sqlite3_finalize(q);
    sqlite3_close(db);
    return v;
}

Test(store_open, new_database_is_whole_private_and_marked)
{
    struct stat st;
    make_database();
    cr_assert_neq(access(beside("-wal"), F_OK), 0, "a clean close leaves no log");
    cr_assert_eq(stat(path, &st), 0);
    cr_assert_eq(st.st_mode & 0777, 0600, "others must not read");
    cr_assert_eq(ask("PRAGMA user_version"), 1);
    cr_assert_eq(ask("PRAGMA application_id"), 0x70726664);
    cr_assert_eq(ask("SELECT count(*) FROM upload"), 500);
    cr_assert_eq(ask("SELECT count(*) FROM pragma_quick_check WHERE quick_check='ok'"), 1);
    cr_assert_eq(
        ask("SELECT count(*) FROM pragma_table_list WHERE schema='main' AND name NOT LIKE 'sqlite%' AND strict=0"), 0,
        "all tables are STRICT");
}

Test(store_open, log_and_index_are_private_too)
{
    struct store *s;
    struct stat st;
    make_database();
    cr_assert_eq(store_sqlite_open_writer(path, &s, &e), PROFD_OK);
    cr_assert_eq(store_remove_ids(s, 0, &e), PROFD_OK);
    cr_assert_eq(stat(beside("-wal"), &st), 0);
    cr_assert_eq(st.st_mode & 0777, 0600);
    store_close(s);
}

Test(store_open, empty_file_becomes_a_database)
{
    write_file("", 0);
    make_database();
    cr_assert_eq(ask("SELECT count(*) FROM upload"), 500);
}

Test(store_open, leftovers_of_an_interrupted_creation_do_not_matter)
{
    int fd = open(beside(".new"), O_WRONLY | O_CREAT, 0600);
    cr_assert_eq(write(fd, "half", 4), 4);
    close(fd);
    make_database();
    cr_assert_neq(access(beside(".new"), F_OK), 0);
}

Test(store_open, directory_is_refused)
{
    struct store *s = NULL;
    cr_assert_eq(mkdir(path, 0700), 0);
    cr_assert_eq(store_sqlite_open_writer(path, &s, &e), PROFD_CONFIG);
    cr_assert(strstr(e.sentence, "a directory") && strstr(e.sentence, path), "%s", e.sentence);
    cr_assert_eq(store_sqlite_open_reader(path, &s, &e), PROFD_CONFIG);
    cr_assert_null(s);
    cr_assert_eq(rmdir(path), 0, "nothing was put into it");
}

Test(store_open, device_is_refused)
{
    struct store *s = NULL;
    cr_assert_eq(store_sqlite_open_writer("/dev/null", &s, &e), PROFD_CONFIG, "%s", e.sentence);
}

Test(store_open, missing_directory_and_endless_path)
{
    struct store *s = NULL;
    static char endless[9000];
    cr_assert_eq(store_sqlite_open_writer(beside("/no/profd.db"), &s, &e), PROFD_CANT_CREATE, "%s", e.sentence);
    memset(endless, 'x', sizeof endless - 1);
    cr_assert_eq(store_sqlite_open_writer(endless, &s, &e), PROFD_CANT_CREATE, "%s", e.sentence);
    cr_assert_eq(store_sqlite_open_reader(path, &s, &e), PROFD_NO_INPUT, "%s", e.sentence);
    cr_assert_neq(access(path, F_OK), 0, "a reader makes no file");
}

Test(store_open, text_file_is_refused_untouched)
{
    write_file("hello\n", 6);
    expect_refusal(PROFD_DAMAGED, "is not a profd database");
    char text[5000];
    memset(text, 'a', sizeof text);
    write_file(text, sizeof text);
    expect_refusal(PROFD_DAMAGED, "is not a profd database");
    struct store *s = NULL;
    cr_assert_eq(store_sqlite_open_reader(path, &s, &e), PROFD_DAMAGED, "%s", e.sentence);
}

Test(store_open, foreign_database_is_refused_untouched)
{
    execute("PRAGMA journal_mode=WAL; CREATE TABLE addresses (name); INSERT INTO addresses VALUES ('x')");
    expect_refusal(PROFD_DAMAGED, "is not a profd database");
    cr_assert_neq(access(beside("-wal"), F_OK), 0);
    cr_assert_neq(access(beside("-shm"), F_OK), 0);
}

Test(store_open, newer_schema_is_refused_by_name_untouched)
{
    make_database();
    execute("PRAGMA user_version=2");
    expect_refusal(PROFD_NEWER, "version 2");
    cr_assert(strstr(e.sentence, "up to 1"), "%s", e.sentence);
    struct store *s = NULL;
    cr_assert_eq(store_sqlite_open_reader(path, &s, &e), PROFD_NEWER, "%s", e.sentence);
    execute("PRAGMA user_version=1");
    make_database();
}

/* The newer version stands in the log only: the file must not be touched all the same. */
Test(store_open, newer_schema_in_the_log_is_refused)
{
    sqlite3 *db;
    struct store *s = NULL;
    char *before, *after;
    make_database();
    cr_assert_eq(sqlite3_open(path, &db), SQLITE_OK);
    sqlite3_db_config(db, SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 1, NULL);
    cr_assert_eq(sqlite3_exec(db, "PRAGMA user_version=2", NULL, NULL, NULL), SQLITE_OK);
    sqlite3_close(db);
    size_t n = read_file(path, &before);
    cr_assert_eq(store_sqlite_open_writer(path, &s, &e), PROFD_NEWER, "%s", e.sentence);
    cr_assert_eq(read_file(path, &after), n);
    cr_assert_eq(memcmp(before, after, n), 0);
    cr_assert_eq(ask("PRAGMA user_version"), 2, "the log is still there");
    free(before);
    free(after);
}

Test(store_open, log_without_database_is_refused)
{
    struct store *s = NULL;
    make_database();
    cr_assert_eq(rename(path, beside("-wal")), 0);
    cr_assert_eq(store_sqlite_open_writer(path, &s, &e), PROFD_CONFIG);
    cr_assert(strstr(e.sentence, "-wal"), "%s", e.sentence);
    cr_assert_neq(access(path, F_OK), 0);
}

/* A database with a page of rubbish: opening says so, or using it does; never a crash, never a changed file at opening.
 */
Test(store_open, damaged_pages_are_noticed)
{
    char *good, *bad;
    make_database();
    size_t n = read_file(path, &good);
    int refused = 0;
    bad = malloc(n);
    srand(3);
    for (size_t page = 1; page < n / 4096; page++) {
        memcpy(bad, good, n);
        for (int i = 0; i < 4096; i++) {
            bad[page * 4096 + (size_t)i] = (char)rand();
        }
        write_file(bad, n);
        struct store *s = NULL;
        enum profd_status status = store_sqlite_open_writer(path, &s, &e);
        if (status != PROFD_OK) {
            char *after;
            cr_assert_eq(status, PROFD_DAMAGED, "page %zu: %s", page, e.sentence);
            cr_assert_eq(read_file(path, &after), n);
            cr_assert_eq(memcmp(bad, after, n), 0, "page %zu: the damaged file was changed", page);
            free(after);
            refused++;
        } else {
            refused += store_sqlite_bad_page(s) != 0; /* what needs the page will be refused */
        }
        store_close(s);
        unlink(beside("-wal"));
        unlink(beside("-shm"));
    }
    cr_assert_eq((size_t)refused, n / 4096 - 1, "every page of a small database is looked at");
    write_file(good, n / 2);
    expect_refusal(PROFD_DAMAGED, "");
    free(good);
    free(bad);
}

static enum profd_status count_row(void *context, const struct store_row *row, struct profd_error *why)
{
    (void)row;
    (void)why;
    ++*(int *)context;
    return PROFD_OK;
}

/* Damage that comes while the database is open: what needs those pages is refused, and nothing else. */
Test(store_open, damage_met_in_use_is_refused)
{
    struct store *s;
    int rows = 0;
    static uint8_t counts[100000];
    struct store_build b = {.id = {.text = "abcd"}, .name = "n"};
    struct store_upload u = {
        .sequence = 1, .build_count = 1, .builds = &b, .counts = counts, .counts_size = sizeof counts};
    enum store_outcome outcome;
    make_database();
    cr_assert_eq(store_sqlite_open_writer(path, &s, &e), PROFD_OK, "%s", e.sentence);
    for (u.sequence = 1; u.sequence <= 400; u.sequence++) { /* more than it keeps in memory */
        cr_assert_eq(store_put_uploads(s, &u, 1, &outcome, &e), PROFD_OK, "%s", e.sentence);
    }
    struct store_scope all = {.all = true};
    struct store_filter filter = {.build_id = "abcd"};
    int fd = open(path, O_WRONLY);
    char rubbish[4096];
    memset(rubbish, 0x5a, sizeof rubbish);
    for (off_t at = 4096; at < lseek(fd, 0, SEEK_END); at += 4096) {
        cr_assert_eq(pwrite(fd, rubbish, sizeof rubbish, at), (ssize_t)sizeof rubbish);
    }
    cr_assert_eq(store_each_upload(s, &all, &filter, count_row, &rows, &e), PROFD_DAMAGED, "%s", e.sentence);
    cr_assert(strstr(e.sentence, path) && strstr(e.sentence, "does not have its checksum"), "%s", e.sentence);
    cr_assert_gt(store_sqlite_bad_page(s), 0);
    cr_assert_eq(store_look(s, NULL), PROFD_OK, "what was committed is as it was");
    store_close(s);
    close(fd);
}

/* Every page of the file has its checksum. */
static void expect_sealed(const char *name)
{
    struct store *s;
    int64_t page = 0, bad = 0;
    cr_assert_eq(store_sqlite_open_writer(name, &s, &e), PROFD_OK, "%s", e.sentence);
    do {
        cr_assert_eq(sqlite_seal_scan(s, 1000, &page, &bad, &e), PROFD_OK, "%s", e.sentence);
        cr_assert_eq(bad, 0, "%s: page %lld", name, (long long)bad);
    } while (page > 0);
    store_close(s);
}

/* More than SQLite keeps in memory, so that it writes pages before the header of the file. */
Test(store_open, large_copies_have_checksums)
{
    struct store *s;
    struct store_backup *b;
    uint64_t left = 1;
    char copy[128];
    make_database();
    execute("CREATE TABLE large(a); INSERT INTO large SELECT randomblob(100000) FROM build_set, "
            "(SELECT 1 FROM upload LIMIT 200)");
    expect_sealed(path);
    snprintf(copy, sizeof copy, "%s", beside("-copy"));
    cr_assert_eq(store_sqlite_open_writer(path, &s, &e), PROFD_OK, "%s", e.sentence);
    cr_assert_eq(store_backup_begin(s, copy, &b, &e), PROFD_OK, "%s", e.sentence);
    while (left > 0) {
        cr_assert_eq(store_backup_step(b, 1 << 20, &left, &e), PROFD_OK, "%s", e.sentence);
    }
    store_backup_end(b);
    store_close(s);
    expect_sealed(copy);
}

/* A database that another program made has no checksums: it is refused until it is sealed. */
Test(store_open, large_databases_of_others_are_sealed)
{
    sqlite3 *db;
    struct stat after;
    sqlite_seal_register();
    cr_assert_eq(sqlite3_open_v2(path, &db, SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE, "unix"), SQLITE_OK);
    for (const char *const *step = sqlite_schema_newest.steps; step < sqlite_schema_newest.steps + 1; step++) {
        cr_assert_eq(sqlite3_exec(db, *step, NULL, NULL, NULL), SQLITE_OK, "%s", sqlite3_errmsg(db));
    }
    cr_assert_eq(sqlite3_exec(db,
                              "PRAGMA application_id=0x70726664; PRAGMA user_version=1; CREATE TABLE large(a);"
                              "WITH n(i) AS (VALUES(1) UNION ALL SELECT i+1 FROM n WHERE i<200)"
                              "INSERT INTO large SELECT randomblob(100000) FROM n",
                              NULL, NULL, NULL),
                 SQLITE_OK, "%s", sqlite3_errmsg(db));
    sqlite3_close(db);
    expect_refusal(PROFD_CONFIG, "profd --restore");
    cr_assert_eq(store_sqlite_seal(path, &e), PROFD_OK, "%s", e.sentence);
    cr_assert_eq(stat(path, &after), 0);
    cr_assert_eq(after.st_mode & 07777, 0600);
    cr_assert_eq(ask("SELECT count(*) FROM large"), 200);
    expect_sealed(path);
    cr_assert_neq(access(beside("-sealed"), F_OK), 0);
}

Test(store_open, reader_refuses_to_write)
{
    struct store *w, *r;
    make_database();
    cr_assert_eq(store_sqlite_open_writer(path, &w, &e), PROFD_OK);
    cr_assert_eq(store_sqlite_open_reader(path, &r, &e), PROFD_OK);
    struct store_build b = {.id = {.text = "abcd"}, .name = "n"};
    struct store_upload u = {.sequence = 1, .build_count = 1, .builds = &b};
    struct store_object o = {.name = "", .note = ""};
    enum store_outcome outcome;
    cr_assert_eq(store_put_uploads(r, &u, 1, &outcome, &e), PROFD_INTERNAL);
    struct store_upload h = {.received = 1, .live = true};
    cr_assert_eq(store_put_uploads(r, &h, 1, &outcome, &e), PROFD_INTERNAL);
    cr_assert_eq(store_put_object(r, &o, &e), PROFD_INTERNAL);
    cr_assert_eq(store_remove_ids(r, 0, &e), PROFD_INTERNAL);
    store_close(r);
    store_close(w);
}

/* A reader that stays open neither holds up the log's end nor sees half a batch. */
Test(store_open, readers_hold_no_transaction_between_verbs)
{
    struct store *w, *r;
    struct store_totals t;
    make_database();
    cr_assert_eq(store_sqlite_open_writer(path, &w, &e), PROFD_OK);
    cr_assert_eq(store_sqlite_open_reader(path, &r, &e), PROFD_OK);
    struct store_build b = {.id = {.text = "abcd"}, .name = "n"};
    static uint8_t counts[200000];
    enum store_outcome outcome;
    for (uint32_t i = 0; i < 600; i++) {
        struct store_upload u = {.uid = 9,
                                 .sequence = i + 1,
                                 .build_count = 1,
                                 .builds = &b,
                                 .counts = counts,
                                 .counts_size = sizeof counts};
        cr_assert_eq(store_put_uploads(w, &u, 1, &outcome, &e), PROFD_OK, "%s", e.sentence);
        cr_assert_eq(store_get_totals(r, &t, &e), PROFD_OK, "%s", e.sentence);
        cr_assert_eq(t.uploads, 501 + i);
        cr_assert_lt(t.wal_bytes, 40u << 20, "the log grows without end");
    }
    store_close(r);
    store_close(w);
}

/* In a child without privileges, because root may write anywhere. */
static int as_nobody(int (*run)(void))
{
    pid_t child = fork();
    if (child == 0) {
        _exit(setgid(65534) == 0 && setuid(65534) == 0 ? run() : 99);
    }
    int status = 0;
    cr_assert_eq(waitpid(child, &status, 0), child);
    return WIFEXITED(status) ? WEXITSTATUS(status) : 98;
}

static int open_and_tell(void)
{
    struct store *s = NULL;
    enum profd_status status = store_sqlite_open_writer(path, &s, &e);
    return strstr(e.sentence, path) ? (int)status : 97;
}

Test(store_open, without_permission_nothing_is_made)
{
    if (geteuid() != 0) {
        cr_skip_test("needs root to become another user");
    }
    cr_assert_eq(chmod(directory, 0755), 0);
    cr_assert_eq(as_nobody(open_and_tell), PROFD_CANT_CREATE);
    cr_assert_neq(access(path, F_OK), 0);
    make_database();
    cr_assert_eq(as_nobody(open_and_tell), PROFD_CANT_CREATE, "a database of somebody else");
    cr_assert_eq(chmod(path, 0644), 0);
    cr_assert_eq(as_nobody(open_and_tell), PROFD_CANT_CREATE, "readable is not writable");
}

/* The tables are compared with those of the version that the file claims before anything is changed. */
Test(store_open, a_version_that_is_not_that_of_the_tables_is_damage)
{
    static const struct {
        const char *sql, *says;
    } cases[] = {
        {"PRAGMA user_version=0", "schema version 0"},
        {"ALTER TABLE ledger ADD COLUMN more INTEGER", "table ledger is not"},
        {"DROP INDEX upload_by_series", "index upload_by_series of schema version 1 is missing"},
        {"DROP INDEX slice_by_time; CREATE INDEX slice_by_time ON slice (width, series)", "index slice_by_time is"},
        {"ALTER TABLE slice RENAME COLUMN width TO wide", "slice"}};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct store *s = NULL;
        unlink(path);
        make_database();
        execute(cases[i].sql);
        cr_assert_eq(store_sqlite_open_writer(path, &s, &e), PROFD_DAMAGED, "%s", cases[i].sql);
        cr_assert(strstr(e.sentence, cases[i].says) && strstr(e.sentence, path), "%s: %s", cases[i].sql, e.sentence);
    }
}

Test(store_open, blanks_comments_and_tables_of_others_do_not_matter)
{
    struct store *s;
    make_database();
    execute(
        "PRAGMA writable_schema=ON; UPDATE sqlite_schema SET sql=replace(sql, ' INTEGER', '\n  INTEGER -- a number\n') "
        "WHERE name='ledger'; PRAGMA writable_schema=RESET; CREATE TABLE notes (text)");
    cr_assert_eq(store_sqlite_open_writer(path, &s, &e), PROFD_OK, "%s", e.sentence);
    store_close(s);
}
