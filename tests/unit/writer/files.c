/* Backup and restore as files: what is there after each step, and after being interrupted at each. */
#include <criterion/criterion.h>
#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "writer/backup.h"
#include "writer/restore.h"
#include "proto/counts.h"

#define NOW INT64_C(1700000000000000000)

static char directory[] = "/tmp/profd-files-XXXXXX";
static const struct restore_engine engine = {store_sqlite_judge, store_sqlite_seal, store_sqlite_open_writer,
                                             store_sqlite_check, store_sqlite_renew};

static void setup(void)
{
    cr_assert_not_null(mkdtemp(directory));
}

static void teardown(void)
{
    DIR *d = opendir(directory);
    struct dirent *entry;

    while ((entry = readdir(d))) {
        unlinkat(dirfd(d), entry->d_name, 0);
    }
    closedir(d);
    rmdir(directory);
}
TestSuite(writer_files, .init = setup, .fini = teardown);

static char *in(const char *name)
{
    static char paths[8][128];
    static unsigned next;
    char *path = paths[next++ % 8];

    snprintf(path, 128, "%s/%s", directory, name);
    return path;
}

static void write_file(const char *name, const char *text)
{
    FILE *f = fopen(in(name), "w");

    cr_assert_not_null(f);
    fputs(text, f);
    fclose(f);
}

/* The file's first bytes, "" if it is not there. */
static const char *content(const char *name)
{
    static char text[4][32];
    static unsigned next;
    char *out = text[next++ % 4];
    FILE *f = fopen(in(name), "r");

    memset(out, 0, 32);
    if (f) {
        cr_assert_lt(fread(out, 1, 31, f), 32);
        fclose(f);
    }
    return out;
}

static unsigned count_files(const char *prefix)
{
    DIR *d = opendir(directory);
    struct dirent *entry;
    unsigned n = 0;

    while ((entry = readdir(d))) {
        n += entry->d_name[0] != '.' && !strncmp(entry->d_name, prefix, strlen(prefix));
    }
    closedir(d);
    return n;
}

static void put(struct store *s, uint32_t sequence)
{
    static const struct counts nothing;
    struct store_build build = {.name = "/bin/made-up"};
    struct store_upload u = {.uid = 7,
                             .sender = {1},
                             .sequence = sequence,
                             .received = NOW,
                             .start = NOW - 5,
                             .end = NOW,
                             .processes_started = 1,
                             .build_count = 1,
                             .builds = &build};
    enum store_outcome outcome;
    struct profd_error e = {""};
    uint8_t *counts;
    size_t n;

    cr_assert_eq(buildid_parse("abcdef", 6, &build.id, &e), PROFD_OK, "%s", e.sentence);
    cr_assert_eq(counts_encode(&nothing, &counts, &n, &e), PROFD_OK, "%s", e.sentence);
    u.counts = counts;
    u.counts_size = n;
    cr_assert_eq(store_put_uploads(s, &u, 1, &outcome, &e), PROFD_OK, "%s", e.sentence);
    free(counts);
}

static struct store *open_store(const char *name)
{
    struct profd_error e = {""};
    struct store *s;

    cr_assert_eq(store_sqlite_open_writer(in(name), &s, &e), PROFD_OK, "%s", e.sentence);
    return s;
}

static uint64_t uploads(const char *name)
{
    struct store *s = open_store(name);
    struct store_totals t;

    cr_assert_eq(store_get_totals(s, &t, NULL), PROFD_OK);
    store_close(s);
    return t.uploads;
}

static void copy_descriptor(int fd, const char *name)
{
    char block[65536];
    FILE *f = fopen(in(name), "w");
    ssize_t n;

    while ((n = read(fd, block, sizeof block)) > 0) {
        cr_assert_eq(fwrite(block, 1, (size_t)n, f), (size_t)n);
    }
    fclose(f);
}

static unsigned complaints;

static void on_complaint(void *context, const char *sentence)
{
    (void)context;
    cr_assert_neq(*sentence, 0);
    complaints++;
}

static enum profd_status prepare(const char *name, struct profd_error *e)
{
    complaints = 0;
    return restore_prepare(directory, in(name), &engine, on_complaint, NULL, e);
}

/* A whole backup of a store with so many uploads, one step at a time while another upload comes. */
static void make_backup(const char *name, unsigned n)
{
    struct store *s = open_store("source.db");
    struct backup b;
    struct profd_error e = {""};
    bool whole = false;

    for (unsigned i = 1; i <= n; i++) {
        put(s, i);
    }
    cr_assert_eq(backup_init(&b, directory, 1, &e), PROFD_OK);
    cr_assert_eq(b.fd, -1);
    while (!whole) {
        cr_assert_eq(backup_step(&b, s, 8192, &whole, &e), PROFD_OK, "%s", e.sentence);
        cr_assert(whole == (b.fd >= 0) && b.done <= b.total);
    }
    cr_assert_eq(b.done, b.total);
    cr_assert_eq(count_files("backup-"), 0, "it lives by its descriptor");
    copy_descriptor(b.fd, name);
    backup_done(&b);
    backup_done(&b);
    store_close(s);
}

Test(writer_files, a_backup_is_restored)
{
    struct profd_error e = {""};
    char kept[64] = "?";
    struct store *s;
    bool restored = false;

    make_backup("b.db", 3);
    s = open_store("profd.db");
    for (uint32_t i = 1; i <= 5; i++) {
        put(s, i);
    }
    store_close(s);
    cr_assert_eq(prepare("b.db", &e), PROFD_OK, "%s", e.sentence);
    cr_assert_eq(uploads("profd.db"), 5, "nothing has happened yet");
    cr_assert_eq(restore_finish(directory, &restored, kept, sizeof kept, &e), PROFD_OK, "%s", e.sentence);
    cr_assert(restored);
    cr_assert_eq(uploads("profd.db"), 3);
    cr_assert_eq(uploads(kept), 5, "what was there is kept");
    struct stat st;
    cr_assert(!stat(in("profd.db"), &st) && (st.st_mode & 07777) == 0600);
    cr_assert_eq(restore_finish(directory, &restored, kept, sizeof kept, &e), PROFD_OK);
    cr_assert(!restored, "once");
    cr_assert_eq(count_files("profd.db.restore"), 0);
}

Test(writer_files, a_cancelled_backup_leaves_nothing)
{
    struct store *s = open_store("source.db");
    struct backup b;
    bool whole = false;

    put(s, 1);
    cr_assert_eq(backup_init(&b, directory, 7, NULL), PROFD_OK);
    cr_assert_eq(backup_step(&b, s, 4096, &whole, NULL), PROFD_OK);
    cr_assert(!whole && b.total > b.done);
    backup_done(&b);
    cr_assert_eq(count_files("backup-"), 0);
    put(s, 2);
    store_close(s);
}

Test(writer_files, what_a_killed_process_left_is_removed)
{
    write_file("backup-1.db", "x");
    write_file("backup-2.db-journal", "x");
    write_file("backup.conf", "x");
    backup_clean(directory);
    cr_assert_eq(count_files("backup-"), 0);
    cr_assert_eq(count_files("backup.conf"), 1);
    backup_clean("/nonexistent");
}

Test(writer_files, what_is_no_backup_is_refused)
{
    struct profd_error e = {""};

    write_file("profd.db", "old");
    cr_assert_eq(prepare("nothing", &e), PROFD_NO_INPUT);
    cr_assert_not_null(strstr(e.sentence, "nothing"), "%s", e.sentence);
    cr_assert_eq(restore_prepare(directory, "/tmp", &engine, on_complaint, NULL, &e), PROFD_REFUSED, "%s", e.sentence);
    write_file("text",
               "this is text, and it goes on for quite a while, so that it could be a header of a hundred bytes "
               "if it were one at all, but it is not");
    cr_assert_eq(prepare("text", &e), PROFD_REFUSED);
    cr_assert_not_null(strstr(e.sentence, "is not restored"), "%s", e.sentence);
    write_file("nothing-in-it", "");
    cr_assert_eq(prepare("nothing-in-it", &e), PROFD_REFUSED);
    cr_assert_not_null(strstr(e.sentence, "is empty"), "%s", e.sentence);
    make_backup("b.db", 1);
    write_file("b.db-wal", "log");
    cr_assert_eq(prepare("b.db", &e), PROFD_REFUSED);
    cr_assert_not_null(strstr(e.sentence, "b.db-wal"), "%s", e.sentence);
    cr_assert_str_eq(content("profd.db"), "old");
    cr_assert_eq(count_files("profd.db."), 0, "nothing is left beside it");
}

/* Any page of the file overwritten, one after the other: never is damage restored without a word. */
Test(writer_files, damage_is_found)
{
    unsigned refused = 0, harmless = 0;
    struct stat st;

    make_backup("b.db", 40);
    cr_assert_eq(stat(in("b.db"), &st), 0);
    for (off_t at = 0; at < st.st_size; at += 4096) {
        struct profd_error e = {""};
        uint8_t before[64], junk[64];
        int fd = open(in("b.db"), O_RDWR);

        cr_assert_eq(pread(fd, before, sizeof before, at), 64);
        memset(junk, 0x5a, sizeof junk);
        cr_assert_eq(pwrite(fd, junk, sizeof junk, at), 64);
        const enum profd_status status = prepare("b.db", &e);
        if (status) {
            refused++;
            cr_assert_eq(status, PROFD_REFUSED, "page %lld: %s", (long long)at / 4096, e.sentence);
        } else {
            harmless++; /* a page that holds nothing */
            unlink(in("profd.db.restored"));
        }
        cr_assert_eq(pwrite(fd, before, sizeof before, at), 64);
        close(fd);
        cr_assert_eq(count_files("profd.db."), 0);
    }
    cr_assert_gt(refused, 10 * harmless, "%u refused, %u not", refused, harmless);
}

/* Interrupted anywhere behind its point of no return, a restore is finished by whoever starts next. */
Test(writer_files, an_interrupted_restore_is_finished)
{
    for (int step = 0; step < 4; step++) {
        struct profd_error e = {""};
        char kept[64] = "?", log[80];
        bool restored = false;

        write_file("profd.db.restored", "new");
        if (step < 1) {
            write_file("profd.db", "old");
        }
        if (step < 2) {
            write_file("profd.db-wal", "oldlog");
        }
        if (step < 3) {
            write_file("profd.db-shm", "oldindex");
        }
        cr_assert_eq(restore_finish(directory, &restored, kept, sizeof kept, &e), PROFD_OK, "%s", e.sentence);
        cr_assert(restored);
        cr_assert_str_eq(content("profd.db"), "new");
        cr_assert_str_eq(content("profd.db-wal"), "");
        cr_assert_str_eq(content("profd.db-shm"), "");
        cr_assert_eq(count_files("profd.db.restored"), 0);
        if (step < 1) {
            snprintf(log, sizeof log, "%s-wal", kept);
            cr_assert_str_eq(content(kept), "old");
            cr_assert_str_eq(content(log), "oldlog");
        } else {
            cr_assert_str_eq(kept, "");
        }
        unlink(in("profd.db"));
    }
}

Test(writer_files, two_restores_in_one_second_keep_both)
{
    struct profd_error e = {""};
    bool restored;

    for (unsigned i = 1; i <= 3; i++) {
        char kept[64], text[16];

        snprintf(text, sizeof text, "old%u", i);
        write_file("profd.db", text);
        write_file("profd.db.restored", "new");
        cr_assert_eq(restore_finish(directory, &restored, kept, sizeof kept, &e), PROFD_OK);
        cr_assert_str_eq(content(kept), text);
        cr_assert_eq(count_files("profd.db.before-restore-"), i);
    }
}
